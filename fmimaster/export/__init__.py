"""A system as an FMU that runs without Python."""
