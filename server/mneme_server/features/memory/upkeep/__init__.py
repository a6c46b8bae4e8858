"""Upkeep of a tenant's memory: beginning, counting, clearing what is kept to be faster."""
