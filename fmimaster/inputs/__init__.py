"""Inputs between communication points: polynomials through outputs."""
