"""What keeps tenants alive: opened, lent and closed, and the work behind the calls."""
