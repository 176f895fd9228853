"""Tests of the pure part: what is allowed, who may, how much."""
