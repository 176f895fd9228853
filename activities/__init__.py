"""Adapters to the systems outside, one module each, behind the interfaces of one module."""
