"""Tenants' stores in one PostgreSQL database. Nothing of it is imported where it is not chosen."""
