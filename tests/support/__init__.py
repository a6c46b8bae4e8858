"""What several tests share: servers, tenants of their own, and what a failed call carries."""
