"""The native executor in C, and its build."""
