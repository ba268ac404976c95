"""Rejects a program that violates FMI or is incomplete, before any FMU is called."""
