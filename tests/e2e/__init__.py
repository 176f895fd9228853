"""Tests of the whole, with every process a real one."""
