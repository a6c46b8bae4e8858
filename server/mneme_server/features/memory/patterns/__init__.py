"""Patterns: what to look for in memories, kept under a name."""
