"""Deterministic workflow code: it branches and waits; every effect is an Activity."""
