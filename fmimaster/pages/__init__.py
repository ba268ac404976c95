"""Pages about a system before a run, as data and as lines of text."""
