"""Learning in a tenant's database."""
