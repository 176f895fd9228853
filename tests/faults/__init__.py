"""Tests of what goes wrong outside: each row of a table is one fault."""
