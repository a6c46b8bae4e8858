"""Proof: a tenant's append-only log of everything that can be recalled, and what it proves."""
