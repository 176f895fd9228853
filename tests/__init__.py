"""Tests mirror the tree; each docstring is the promise that its test keeps."""
