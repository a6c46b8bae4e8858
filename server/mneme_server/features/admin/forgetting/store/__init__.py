"""What was forgotten, in tenants' databases and in the catalog."""
