"""SQL: the catalog and the tenants' databases. The only importer of SQLAlchemy and Alembic."""
