"""A run: FMUs are called in one thread, while the calling thread handles signals and progress."""
