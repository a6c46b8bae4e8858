"""Storage of proof: the log in a tenant's database, the keys in the catalog."""
