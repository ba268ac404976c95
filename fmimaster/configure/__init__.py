"""The settings of a run: as text, as objects, checked."""
