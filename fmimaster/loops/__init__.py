"""Algebraic loops: how they are solved, as pure functions of what sweeps gave, and as hooks of programs."""
