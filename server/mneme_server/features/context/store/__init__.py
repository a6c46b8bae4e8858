"""Summaries and handovers in a tenant's database."""
