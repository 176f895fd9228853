"""The stand-in company: what it promises to those who test against it."""
