"""Tests of the `refund` command."""
