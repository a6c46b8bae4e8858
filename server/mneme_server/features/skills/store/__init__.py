"""Episodes and skills in a tenant's database."""
