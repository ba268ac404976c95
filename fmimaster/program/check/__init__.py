"""Rejects a program that violates FMI or is incomplete, before any FMU is called."""

from fmimaster.program.check.walk import check

__all__ = ["check"]
