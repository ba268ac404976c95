"""FMUs that are lost during a run: what the run does then."""
