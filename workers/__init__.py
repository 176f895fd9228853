"""The worker process: settings, wiring, start and drain."""
