"""The instructions, each as one class."""
