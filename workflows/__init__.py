"""The refund run: every branch of the story, deterministic."""
