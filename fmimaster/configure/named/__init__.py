"""Settings as text: ``"GaussSeidel:mode=lin"``, ``"predictive:near=1e-4"``; the same in Python and on the command line.

A text is a name, or a name with settings: ``NAME:KEY=VALUE,KEY=VALUE``. Case, hyphens and underscores in names and keys
are ignored.
"""
