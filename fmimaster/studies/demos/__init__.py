"""Ready-made systems to simulate, and comparisons of algorithms on them."""
