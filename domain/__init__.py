"""The rules of a refund, as pure functions over frozen models: no clock, no I/O, no SDK."""
