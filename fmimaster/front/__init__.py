"""Accuracy of a run: the choice of a step-size controller, and pairs of runs that estimate the error."""
