"""Model Exchange FMUs as instances that step: their equations, integrators, and events."""
