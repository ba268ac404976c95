"""Files from which a run that was ended can be continued."""
