"""Event clocks: when state events happen, and who executes them."""
