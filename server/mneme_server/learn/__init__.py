"""Lessons: what agents should remember next time."""
