"""Plan, programs and times of a run, before an FMU is instantiated."""
