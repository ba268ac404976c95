"""The interpreter of programs in Python: the specification of every instruction, by example."""
