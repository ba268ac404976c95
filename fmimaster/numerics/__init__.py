"""Formulas that both executors compute, written once: tools/translate_numerics.py makes the C of the kernel from them."""
