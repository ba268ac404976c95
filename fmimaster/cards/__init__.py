"""Measurements of what an FMU really does, beside what it declares: its card."""
