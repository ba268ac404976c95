"""The language between algorithms and executors: instructions, emitter, checker, value store."""
