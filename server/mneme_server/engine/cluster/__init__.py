"""Several servers with the same tenants: who has which, and how one moves."""
