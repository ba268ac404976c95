"""Stability of a coupled system at a step size, computed from its FMUs."""
