"""Forgetting: erasing what is kept of somebody, and saying what was erased."""
