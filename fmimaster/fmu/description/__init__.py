"""Model descriptions: read into models in the terms of FMI 3.0, with what is wrong in them."""
