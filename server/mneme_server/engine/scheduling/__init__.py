"""Whose turn it is to compute and to send."""
