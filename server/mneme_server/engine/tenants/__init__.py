"""Tenants: opened, lent and closed, and the work on them behind the calls."""
