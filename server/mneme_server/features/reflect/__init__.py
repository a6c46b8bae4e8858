"""Reflect: what an agent's own record says about how it works."""
