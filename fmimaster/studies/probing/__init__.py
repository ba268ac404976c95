"""What an FMU really does, measured in processes of its own."""
