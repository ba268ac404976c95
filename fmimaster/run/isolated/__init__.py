"""FMUs in processes of their own, for both executors."""
