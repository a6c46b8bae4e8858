BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0004');
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
	revoked_at BIGINT, bootstrap BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(tenant_id) REFERENCES tenants (id) ON DELETE CASCADE, 
	UNIQUE (key_hash)
);
INSERT INTO "api_keys" VALUES('01HF00000000000000000000KY','acme',X'B857716D2ED6BA14FD55D83FBF6C78E53FBB14D6E0033EA87CC3B26871303C20','mn_abcde','ci','read,write',60,1700000300000000,1700000400000000,NULL,0);
CREATE TABLE tenant_moves (
	tenant_id VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	place VARCHAR NOT NULL, 
	moved_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id)
);
INSERT INTO "tenant_moves" VALUES('left','01HF00000000000000000000MV','postgresql://mneme@db/mneme',1700000500000000);
CREATE TABLE tenant_places (
	tenant_id VARCHAR NOT NULL, 
	place VARCHAR NOT NULL, 
	other VARCHAR, 
	move VARCHAR NOT NULL, 
	PRIMARY KEY (tenant_id)
);
INSERT INTO "tenant_places" VALUES('acme','west',NULL,'01HF00000000000000000000PL');
CREATE TABLE tenants (
	id VARCHAR NOT NULL, 
	display_name VARCHAR NOT NULL, 
	created_at BIGINT NOT NULL, 
	state VARCHAR NOT NULL, 
	dirty BOOLEAN NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "tenants" VALUES('default','',1700000000000000,'active',0);
INSERT INTO "tenants" VALUES('acme','Acme Ltd',1700000100000000,'active',1);
INSERT INTO "tenants" VALUES('going','',1700000200000000,'deleting',0);
INSERT INTO "tenants" VALUES('left','',1,'moved',0);
CREATE INDEX ix_api_keys_tenant_created ON api_keys (tenant_id, created_at, id);
CREATE INDEX ix_api_keys_created ON api_keys (created_at, id);
COMMIT;
