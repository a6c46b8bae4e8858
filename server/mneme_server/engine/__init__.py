"""The engine that features stand on: tenants, their memories and indexes, and whose turn it is."""
