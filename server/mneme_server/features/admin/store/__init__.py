"""The administration's part of the disk: the catalog, the tenants' folders."""
