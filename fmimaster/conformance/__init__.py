"""Conformance runs: all FMUs of a folder, each in a process of its own, with a verdict for each."""
