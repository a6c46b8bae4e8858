"""Rewards of its own that an agent gets for what is new, surprising or promising."""
