"""Cause and effect: what is believed to bring about what, and how that is found out."""
