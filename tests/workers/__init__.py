"""The worker: its settings, its wiring, its process."""
