"""Learning: lessons, reflections on attempts, and the log of experience."""
