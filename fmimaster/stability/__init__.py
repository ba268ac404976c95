"""Whether a coupled system is stable at a step size, found from its FMUs."""
