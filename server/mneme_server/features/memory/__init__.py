"""Memories: what agents remember, apart from any session."""
