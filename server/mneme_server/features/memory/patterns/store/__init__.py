"""Patterns in a tenant's database."""
