"""Edges and experiments in a tenant's database."""
