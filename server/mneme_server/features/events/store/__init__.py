"""Events, sessions and agents in a tenant's database."""
