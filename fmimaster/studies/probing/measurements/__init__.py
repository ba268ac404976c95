"""The measurements: each is a function that runs in a process of its own."""
