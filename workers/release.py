"""Which release of the agent this code is."""

RELEASE = "2"
"""Its histories are saved under this name, and the server lists it with each of its workers."""
