"""The adapters, held against the company as it really answers."""
