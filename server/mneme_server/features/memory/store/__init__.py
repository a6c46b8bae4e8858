"""Memories in a tenant's database."""
