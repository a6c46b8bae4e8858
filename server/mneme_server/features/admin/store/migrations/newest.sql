BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0100');
INSERT INTO "alembic_version" VALUES('alertdue_0100');
INSERT INTO "alembic_version" VALUES('discovery_0100');
INSERT INTO "alembic_version" VALUES('forgotten_0100');
INSERT INTO "alembic_version" VALUES('operations_0100');
INSERT INTO "alembic_version" VALUES('proof_0100');
CREATE TABLE alert_due (
	tenant_id VARCHAR NOT NULL, 
	work VARCHAR NOT NULL, 
	due_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, work)
);
CREATE TABLE api_keys (
	id VARCHAR NOT NULL, 
	tenant_id VARCHAR NOT NULL, 
	key_hash BLOB NOT NULL, 
	prefix VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	scopes VARCHAR NOT NULL, 
	rate_limit INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	last_used_at BIGINT, 
	revoked_at BIGINT, 
	bootstrap BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(tenant_id) REFERENCES tenants (id) ON DELETE CASCADE, 
	UNIQUE (key_hash)
);
CREATE TABLE asked_to_forget (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	tenant_id VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	asked TEXT NOT NULL, 
	asked_at BIGINT NOT NULL, 
	erased BOOLEAN NOT NULL
);
CREATE TABLE discovery_schedules (
	tenant_id VARCHAR NOT NULL, 
	minute INTEGER NOT NULL, 
	question TEXT NOT NULL, 
	next_at BIGINT, 
	last_at BIGINT, 
	last_operation VARCHAR NOT NULL, 
	PRIMARY KEY (tenant_id)
);
CREATE TABLE forgetting_salts (
	tenant_id VARCHAR NOT NULL, 
	salt BLOB NOT NULL, 
	PRIMARY KEY (tenant_id)
);
CREATE TABLE log_heads (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	tenant_id VARCHAR NOT NULL, 
	origin VARCHAR NOT NULL, 
	size BIGINT NOT NULL, 
	root BLOB NOT NULL, 
	note TEXT NOT NULL
);
CREATE TABLE log_keys (
	tenant_id VARCHAR NOT NULL, 
	number INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	public_key BLOB NOT NULL, 
	created_at BIGINT NOT NULL, 
	retired_at BIGINT, 
	introduction TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, number)
);
CREATE TABLE log_private_keys (
	tenant_id VARCHAR NOT NULL, 
	number INTEGER NOT NULL, 
	pem BLOB NOT NULL, 
	PRIMARY KEY (tenant_id, number)
);
CREATE TABLE operations (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	owner VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	tenant_id VARCHAR NOT NULL, 
	scope INTEGER NOT NULL, 
	request TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	state INTEGER NOT NULL, 
	cancellable BOOLEAN NOT NULL, 
	cancel_requested BOOLEAN NOT NULL, 
	progress TEXT, 
	attempts INTEGER NOT NULL, 
	started_at BIGINT, 
	ended_at BIGINT, 
	expires_at BIGINT, 
	kept TEXT NOT NULL, 
	result TEXT, 
	error TEXT, 
	key_id VARCHAR DEFAULT '' NOT NULL
);
CREATE TABLE tenant_moves (
	tenant_id VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	place VARCHAR NOT NULL, 
	moved_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id)
);
CREATE TABLE tenant_places (
	tenant_id VARCHAR NOT NULL, 
	place VARCHAR NOT NULL, 
	other VARCHAR, 
	move VARCHAR NOT NULL, 
	PRIMARY KEY (tenant_id)
);
CREATE TABLE tenants (
	id VARCHAR NOT NULL, 
	display_name VARCHAR NOT NULL, 
	created_at BIGINT NOT NULL, 
	state VARCHAR NOT NULL, 
	dirty BOOLEAN NOT NULL, 
	PRIMARY KEY (id)
);
CREATE UNIQUE INDEX ix_asked_to_forget ON asked_to_forget (tenant_id, id);
CREATE UNIQUE INDEX ix_log_heads_origin ON log_heads (tenant_id, origin);
CREATE INDEX ix_discovery_schedules_next ON discovery_schedules (next_at);
CREATE UNIQUE INDEX ix_operations_key ON operations (owner, id);
CREATE INDEX ix_operations_tenant ON operations (tenant_id, number);
CREATE INDEX ix_api_keys_tenant_created ON api_keys (tenant_id, created_at, id);
CREATE INDEX ix_api_keys_created ON api_keys (created_at, id);
DELETE FROM "sqlite_sequence";
COMMIT;
