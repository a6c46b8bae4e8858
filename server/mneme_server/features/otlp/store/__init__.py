"""The tables of what was received."""
