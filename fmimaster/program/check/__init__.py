"""Rejects a program that breaks FMI or forgets something, before any FMU is called."""

from fmimaster.program.check.walk import check

__all__ = ["check"]
