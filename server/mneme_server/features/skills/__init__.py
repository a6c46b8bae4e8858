"""Episodes and skills: what was attempted, and what works."""
