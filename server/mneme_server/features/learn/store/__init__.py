"""Lessons, reflections and the knowledge log in a tenant's database."""
