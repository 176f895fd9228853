"""Tests of the whole run, by its effects."""
