"""Files from which a run that was ended goes on."""
