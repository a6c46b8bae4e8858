"""Alerts in a tenant's database, and when they are due in the catalog."""
