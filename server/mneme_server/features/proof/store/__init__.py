"""What proves: the log in a tenant's database."""
