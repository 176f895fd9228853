"""The drill's own parts: a checker that sees nothing would make every drill green."""
