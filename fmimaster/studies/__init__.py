"""What runs simulations to learn from them."""
