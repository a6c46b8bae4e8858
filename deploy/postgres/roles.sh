#!/bin/sh
# Run once, as the database is made: the role that tenants' transactions take, and the user that the
# nodes connect as, who is no superuser.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$POSTGRES_PASSWORD" \
    --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE EXTENSION IF NOT EXISTS vector;
CREATE ROLE mneme_tenant NOLOGIN NOBYPASSRLS;
CREATE USER mneme PASSWORD :'password';
GRANT mneme_tenant TO mneme;
ALTER DATABASE mneme OWNER TO mneme;
SQL
