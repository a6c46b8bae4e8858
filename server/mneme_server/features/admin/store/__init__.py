"""What of the administration lies on the disk: the catalog, the tenants' folders."""
