"""What is known of a system before a run, as data and as lines of text."""
