"""Estimators of the error of a step: one number, where 1 is the tolerance. Each is imported at its first use."""
