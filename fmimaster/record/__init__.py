"""What happened in a run, as data: causes, events, steps."""
