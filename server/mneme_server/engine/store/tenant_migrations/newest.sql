BEGIN TRANSACTION;
CREATE TABLE agents (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	first_seen_at BIGINT NOT NULL, 
	last_seen_at BIGINT NOT NULL, 
	session_count BIGINT NOT NULL, 
	event_count BIGINT NOT NULL, 
	tool_call_count BIGINT NOT NULL, 
	error_count BIGINT NOT NULL, 
	total_cost_usd FLOAT NOT NULL, 
	PRIMARY KEY (tenant_id, id)
)
 WITHOUT ROWID

;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('alerts_0100');
INSERT INTO "alembic_version" VALUES('causal_0100');
INSERT INTO "alembic_version" VALUES('events_0101');
INSERT INTO "alembic_version" VALUES('forgetting_0100');
INSERT INTO "alembic_version" VALUES('learning_0100');
INSERT INTO "alembic_version" VALUES('memory_0101');
INSERT INTO "alembic_version" VALUES('otlp_0100');
INSERT INTO "alembic_version" VALUES('patterns_0100');
INSERT INTO "alembic_version" VALUES('proof_0100');
INSERT INTO "alembic_version" VALUES('skills_0100');
CREATE TABLE alert_deliveries (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	entry_id TEXT NOT NULL, 
	position BIGINT NOT NULL, 
	channel TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	body TEXT NOT NULL, 
	state SMALLINT NOT NULL, 
	attempts BIGINT NOT NULL, 
	error TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	next_at BIGINT, 
	delivered_at BIGINT, 
	key_id TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (tenant_id, id), 
	FOREIGN KEY(tenant_id, entry_id) REFERENCES alert_history (tenant_id, id) ON DELETE CASCADE
);
CREATE TABLE alert_history (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	rule_id TEXT NOT NULL, 
	rule_name TEXT NOT NULL, 
	condition SMALLINT NOT NULL, 
	agent_id TEXT NOT NULL, 
	triggered_at BIGINT NOT NULL, 
	resolved_at BIGINT, 
	current_value FLOAT NOT NULL, 
	resolved_value FLOAT, 
	threshold FLOAT NOT NULL, 
	message TEXT NOT NULL, 
	resolution SMALLINT NOT NULL, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE alert_rules (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	enabled BOOLEAN NOT NULL, 
	condition SMALLINT NOT NULL, 
	threshold FLOAT NOT NULL, 
	resolve_threshold FLOAT, 
	min_events BIGINT NOT NULL, 
	window_minutes BIGINT NOT NULL, 
	agent_id TEXT NOT NULL, 
	project TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	channels TEXT NOT NULL, 
	pattern TEXT NOT NULL, 
	trend SMALLINT NOT NULL, 
	open_entry TEXT NOT NULL, 
	triggered_at BIGINT, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	key_id TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE alert_secrets (
	tenant_id TEXT NOT NULL, 
	secret TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	old_secret TEXT NOT NULL, 
	old_until BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id)
);
CREATE TABLE causal_assignments (
	tenant_id TEXT NOT NULL, 
	experiment_id TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	treatment BOOLEAN NOT NULL, 
	stratum TEXT NOT NULL, 
	place BIGINT NOT NULL, 
	assigned_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, experiment_id, subject), 
	FOREIGN KEY(tenant_id, experiment_id) REFERENCES causal_experiments (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE causal_edges (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	cause TEXT NOT NULL, 
	effect TEXT NOT NULL, 
	uplift FLOAT NOT NULL, 
	confidence FLOAT NOT NULL, 
	sample_size BIGINT NOT NULL, 
	evidence_ids TEXT NOT NULL, 
	experiment_ids TEXT NOT NULL, 
	confounder_score FLOAT, 
	mechanism TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	origin SMALLINT NOT NULL, 
	low FLOAT, 
	high FLOAT, 
	scope TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE causal_experiments (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	cause TEXT NOT NULL, 
	effect TEXT NOT NULL, 
	description TEXT NOT NULL, 
	block_size BIGINT NOT NULL, 
	treated_per_block BIGINT NOT NULL, 
	seed TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	status SMALLINT NOT NULL, 
	assigned BIGINT NOT NULL, 
	observed BIGINT NOT NULL, 
	result TEXT NOT NULL, 
	edge_id TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	completed_at BIGINT, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE causal_observations (
	tenant_id TEXT NOT NULL, 
	experiment_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	treatment BOOLEAN NOT NULL, 
	assigned BOOLEAN NOT NULL, 
	outcome FLOAT NOT NULL, 
	context TEXT NOT NULL, 
	observed_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, experiment_id, id), 
	FOREIGN KEY(tenant_id, experiment_id) REFERENCES causal_experiments (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE certificate_items (
	tenant_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	source_id TEXT NOT NULL, 
	certificate_id TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, kind, source_id, certificate_id), 
	FOREIGN KEY(tenant_id, certificate_id) REFERENCES certificates (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE certificates (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	text TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	user_id TEXT NOT NULL, 
	agent_id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	project TEXT NOT NULL, 
	bytes BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE counters (
	tenant_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	value BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, name)
)
 WITHOUT ROWID

;
CREATE TABLE documents (
	doc_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	tenant_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	source_id TEXT NOT NULL, 
	text TEXT NOT NULL, 
	timestamp BIGINT NOT NULL, 
	session_id TEXT NOT NULL, 
	position BIGINT NOT NULL, 
	agent_id TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	project TEXT NOT NULL, 
	category TEXT NOT NULL, 
	importance SMALLINT NOT NULL, 
	archived BOOLEAN NOT NULL, 
	tags TEXT NOT NULL, 
	type TEXT DEFAULT '' NOT NULL, 
	name TEXT DEFAULT '' NOT NULL, 
	role TEXT DEFAULT '' NOT NULL, 
	severity SMALLINT DEFAULT '0' NOT NULL, 
	shape BIGINT DEFAULT '0' NOT NULL, 
	value FLOAT DEFAULT '0' NOT NULL, 
	CONSTRAINT documents_source UNIQUE (tenant_id, kind, source_id)
);
CREATE TABLE embedding_queue (
	tenant_id TEXT NOT NULL, 
	doc_id BIGINT NOT NULL, 
	attempts INTEGER NOT NULL, 
	due_at BIGINT NOT NULL, 
	last_error TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, doc_id)
)
 WITHOUT ROWID

;
CREATE TABLE episode_memories (
	tenant_id TEXT NOT NULL, 
	memory_id TEXT NOT NULL, 
	episode_id TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, memory_id, episode_id), 
	FOREIGN KEY(tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE, 
	FOREIGN KEY(tenant_id, episode_id) REFERENCES episodes (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE episode_tags (
	tenant_id TEXT NOT NULL, 
	tag TEXT NOT NULL, 
	episode_id TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, tag, episode_id), 
	FOREIGN KEY(tenant_id, episode_id) REFERENCES episodes (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE episodes (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	agent_id TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	project TEXT NOT NULL, 
	task TEXT NOT NULL, 
	input TEXT NOT NULL, 
	output TEXT NOT NULL, 
	critique TEXT NOT NULL, 
	reward FLOAT NOT NULL, 
	success BOOLEAN NOT NULL, 
	latency_ms BIGINT, 
	tokens_used BIGINT, 
	tools TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	occurred_at BIGINT NOT NULL, 
	created_at BIGINT NOT NULL, 
	filled TEXT NOT NULL, 
	task_vector BLOB NOT NULL, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE events (
	cursor INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	sequence BIGINT NOT NULL, 
	agent_id TEXT NOT NULL, 
	event_type TEXT NOT NULL, 
	severity SMALLINT NOT NULL, 
	timestamp BIGINT NOT NULL, 
	text TEXT NOT NULL, 
	name TEXT NOT NULL, 
	call_id TEXT NOT NULL, 
	error TEXT NOT NULL, 
	model TEXT NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	cost_usd FLOAT NOT NULL, 
	duration BIGINT, 
	payload TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	searchable BOOLEAN NOT NULL, 
	recorded_at BIGINT NOT NULL, 
	prev_hash TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	hash_version SMALLINT DEFAULT '1' NOT NULL, 
	salt BLOB, 
	commitment BLOB, 
	FOREIGN KEY(tenant_id, session_id) REFERENCES sessions (tenant_id, id), 
	CONSTRAINT events_id UNIQUE (tenant_id, id), 
	CONSTRAINT events_chain UNIQUE (tenant_id, session_id, sequence)
);
CREATE TABLE experience_trajectories (
	tenant_id TEXT NOT NULL, 
	session INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	trajectory_id TEXT, 
	place INTEGER NOT NULL, 
	episode BIGINT NOT NULL, 
	actor TEXT NOT NULL, 
	state TEXT NOT NULL, 
	action TEXT NOT NULL, 
	reward DOUBLE NOT NULL, 
	next_state TEXT NOT NULL, 
	terminated BOOLEAN NOT NULL, 
	truncated BOOLEAN NOT NULL, 
	probability DOUBLE, 
	allowed TEXT NOT NULL, 
	available TEXT NOT NULL, 
	prediction TEXT, 
	recorded_at BIGINT NOT NULL, 
	episode_reward DOUBLE, 
	PRIMARY KEY (tenant_id, session, number)
);
CREATE TABLE feed (
	tenant_id TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	mark BIGINT NOT NULL, 
	changes TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, number)
)
 WITHOUT ROWID

;
CREATE TABLE followers (
	tenant_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	mark BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, name)
)
 WITHOUT ROWID

;
CREATE TABLE forgettings (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	counts TEXT NOT NULL, 
	policies TEXT NOT NULL, 
	leaves TEXT NOT NULL, 
	hidden_at BIGINT NOT NULL, 
	erased_at BIGINT, 
	receipt TEXT, 
	places TEXT DEFAULT '{}' NOT NULL, 
	mark TEXT, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE forgotten_events (
	tenant_id TEXT NOT NULL, 
	session TEXT NOT NULL, 
	sequence BIGINT NOT NULL, 
	event TEXT NOT NULL, 
	prev_hash TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	hash_version SMALLINT NOT NULL, 
	commitment BLOB NOT NULL, 
	forgotten_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, session, sequence)
)
 WITHOUT ROWID

;
CREATE TABLE forgotten_sessions (
	tenant_id TEXT NOT NULL, 
	session TEXT NOT NULL, 
	event_count BIGINT NOT NULL, 
	head_hash TEXT NOT NULL, 
	forgotten_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, session)
)
 WITHOUT ROWID

;
CREATE TABLE handovers (
	tenant_id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	project TEXT NOT NULL, 
	agent_id TEXT NOT NULL, 
	content TEXT NOT NULL, 
	weight INTEGER NOT NULL, 
	duration_seconds BIGINT NOT NULL, 
	summary TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, session_id), 
	FOREIGN KEY(tenant_id, session_id) REFERENCES sessions (tenant_id, id)
);
CREATE TABLE knowledge (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	project TEXT NOT NULL, 
	agent_id TEXT NOT NULL, 
	type SMALLINT NOT NULL, 
	context TEXT NOT NULL, 
	command TEXT NOT NULL, 
	lesson TEXT NOT NULL, 
	success_rate TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	timestamp BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE learning_checkpoints (
	tenant_id TEXT NOT NULL, 
	session INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	data BLOB NOT NULL, 
	saved_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, session)
);
CREATE TABLE learning_export_chunks (
	tenant_id TEXT NOT NULL, 
	session INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	data BLOB NOT NULL, 
	PRIMARY KEY (tenant_id, session, number)
);
CREATE TABLE learning_exports (
	tenant_id TEXT NOT NULL, 
	session INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	size BIGINT NOT NULL, 
	exported_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, session)
);
CREATE TABLE learning_sessions (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	algorithm TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	config TEXT NOT NULL, 
	state_space TEXT NOT NULL, 
	action_space TEXT NOT NULL, 
	seed BIGINT NOT NULL, 
	mode SMALLINT NOT NULL, 
	secret BLOB NOT NULL, 
	status SMALLINT NOT NULL, 
	seen TEXT NOT NULL, 
	transitions BIGINT NOT NULL, 
	episodes BIGINT NOT NULL, 
	total_reward DOUBLE NOT NULL, 
	ended_reward DOUBLE NOT NULL, 
	lowest DOUBLE NOT NULL, 
	highest DOUBLE NOT NULL, 
	bytes BIGINT NOT NULL, 
	learned BIGINT NOT NULL, 
	updates BIGINT NOT NULL, 
	training_us BIGINT NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	ended_at BIGINT, 
	CONSTRAINT learning_sessions_id UNIQUE (tenant_id, id)
);
CREATE TABLE learning_trajectories (
	tenant_id TEXT NOT NULL, 
	session INTEGER NOT NULL, 
	first INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	steps BIGINT NOT NULL, 
	total_reward DOUBLE NOT NULL, 
	recorded_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, session, first)
);
CREATE TABLE learning_usage (
	tenant_id TEXT NOT NULL, 
	day INTEGER NOT NULL, 
	training_us BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, day)
);
CREATE TABLE lesson_tags (
	tenant_id TEXT NOT NULL, 
	tag TEXT NOT NULL, 
	lesson_id TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, tag, lesson_id), 
	FOREIGN KEY(tenant_id, lesson_id) REFERENCES lessons (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE lessons (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	agent_id TEXT NOT NULL, 
	project TEXT NOT NULL, 
	category TEXT NOT NULL, 
	title TEXT NOT NULL, 
	content TEXT NOT NULL, 
	context TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	importance SMALLINT NOT NULL, 
	source_session_id TEXT NOT NULL, 
	source_event_id TEXT NOT NULL, 
	access_count BIGINT NOT NULL, 
	last_accessed_at BIGINT, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	archived_at BIGINT, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE log_leaves (
	tenant_id TEXT NOT NULL, 
	leaf BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	source_id TEXT NOT NULL, 
	commitment BLOB, 
	salt BLOB, 
	content TEXT, 
	logged_at BIGINT NOT NULL, 
	forgotten_at BIGINT, 
	PRIMARY KEY (tenant_id, leaf)
);
CREATE TABLE log_runs (
	tenant_id TEXT NOT NULL, 
	first_leaf BIGINT NOT NULL, 
	leaves BIGINT NOT NULL, 
	first_doc BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, first_leaf)
);
CREATE TABLE log_state (
	tenant_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, "key")
)
 WITHOUT ROWID

;
CREATE TABLE log_tiles (
	tenant_id TEXT NOT NULL, 
	level SMALLINT NOT NULL, 
	number BIGINT NOT NULL, 
	hashes BLOB NOT NULL, 
	PRIMARY KEY (tenant_id, level, number)
);
CREATE TABLE memories (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	text TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	agent_id TEXT NOT NULL, 
	project TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	importance SMALLINT NOT NULL, 
	digest BLOB NOT NULL, 
	since BIGINT NOT NULL, 
	superseded_by TEXT NOT NULL, 
	until BIGINT, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, pinned BOOLEAN DEFAULT 0 NOT NULL, confirmed_count INTEGER DEFAULT '0' NOT NULL, last_said BIGINT DEFAULT '0' NOT NULL, standing INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE memory_confirmations (
	tenant_id TEXT NOT NULL, 
	memory_id TEXT NOT NULL, 
	day INTEGER NOT NULL, 
	PRIMARY KEY (tenant_id, memory_id, day), 
	FOREIGN KEY(tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE memory_tags (
	tenant_id TEXT NOT NULL, 
	tag TEXT NOT NULL, 
	memory_id TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, tag, memory_id), 
	FOREIGN KEY(tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE memory_values (
	tenant_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	memory_id TEXT NOT NULL, 
	doc_id BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, "key", value, memory_id), 
	FOREIGN KEY(tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE otlp_inbox (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	trace_id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	span TEXT NOT NULL, 
	patient BOOLEAN NOT NULL, 
	attempts SMALLINT NOT NULL, 
	due_at BIGINT NOT NULL, 
	bytes BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE otlp_known (
	tenant_id TEXT NOT NULL, 
	trace_id TEXT NOT NULL, 
	span_id TEXT NOT NULL, 
	parent_id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	failed BOOLEAN NOT NULL, 
	kept_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, trace_id, span_id)
)
 WITHOUT ROWID

;
CREATE TABLE pattern_verdicts (
	tenant_id TEXT NOT NULL, 
	pattern_id TEXT NOT NULL, 
	memory_id TEXT NOT NULL, 
	"right" BOOLEAN NOT NULL, 
	judged_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, pattern_id, memory_id), 
	FOREIGN KEY(tenant_id, pattern_id) REFERENCES patterns (tenant_id, id) ON DELETE CASCADE, 
	FOREIGN KEY(tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE patterns (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	description TEXT NOT NULL, 
	definition TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	uses BIGINT NOT NULL, 
	matches BIGINT NOT NULL, 
	took_us BIGINT NOT NULL, 
	last_used_at BIGINT NOT NULL, 
	"right" BIGINT NOT NULL, 
	wrong BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE reflection_tags (
	tenant_id TEXT NOT NULL, 
	tag TEXT NOT NULL, 
	reflection_id TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, tag, reflection_id), 
	FOREIGN KEY(tenant_id, reflection_id) REFERENCES reflections (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE reflections (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	project TEXT NOT NULL, 
	agent_id TEXT NOT NULL, 
	task_description TEXT NOT NULL, 
	task_key TEXT NOT NULL, 
	attempt_number INTEGER NOT NULL, 
	outcome SMALLINT NOT NULL, 
	what_worked TEXT NOT NULL, 
	what_did_not_work TEXT NOT NULL, 
	next_strategy TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	related_entity_ids TEXT NOT NULL, 
	applied_reflection_ids TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE sayings (
	tenant_id TEXT NOT NULL, 
	reflection_id TEXT NOT NULL, 
	worked BOOLEAN NOT NULL, 
	place INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	vector BLOB NOT NULL, 
	PRIMARY KEY (tenant_id, reflection_id, worked, place), 
	FOREIGN KEY(tenant_id, reflection_id) REFERENCES reflections (tenant_id, id) ON DELETE CASCADE
);
CREATE TABLE session_grades (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	outcome SMALLINT NOT NULL, 
	reward FLOAT, 
	source SMALLINT NOT NULL, 
	grader TEXT NOT NULL, 
	comment TEXT NOT NULL, 
	graded_at BIGINT NOT NULL, 
	recorded_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, id), 
	FOREIGN KEY(tenant_id, session_id) REFERENCES sessions (tenant_id, id)
);
CREATE TABLE session_summaries (
	tenant_id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	summary TEXT NOT NULL, 
	topics TEXT NOT NULL, 
	tools TEXT NOT NULL, 
	tool_sequence TEXT NOT NULL, 
	error_summary TEXT NOT NULL, 
	errors TEXT NOT NULL, 
	files TEXT NOT NULL, 
	outcome SMALLINT NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, session_id), 
	FOREIGN KEY(tenant_id, session_id) REFERENCES sessions (tenant_id, id)
);
CREATE TABLE session_tags (
	tenant_id TEXT NOT NULL, 
	tag TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, tag, session_id), 
	FOREIGN KEY(tenant_id, session_id) REFERENCES sessions (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE sessions (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	agent_id TEXT NOT NULL, 
	agent_name TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	project TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	status SMALLINT NOT NULL, 
	started_at BIGINT NOT NULL, 
	ended_at BIGINT, 
	last_event_at BIGINT, 
	event_count BIGINT NOT NULL, 
	tool_call_count BIGINT NOT NULL, 
	error_count BIGINT NOT NULL, 
	llm_call_count BIGINT NOT NULL, 
	total_cost_usd FLOAT NOT NULL, 
	total_input_tokens BIGINT NOT NULL, 
	total_output_tokens BIGINT NOT NULL, 
	head_hash TEXT NOT NULL, 
	declared BOOLEAN NOT NULL, 
	system BOOLEAN DEFAULT 0 NOT NULL, observed BOOLEAN DEFAULT 0 NOT NULL, outcome SMALLINT, outcome_by SMALLINT, reward FLOAT, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE settings (
	tenant_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, "key")
)
 WITHOUT ROWID

;
CREATE TABLE skill_links (
	tenant_id TEXT NOT NULL, 
	parent_id TEXT NOT NULL, 
	child_id TEXT NOT NULL, 
	relationship SMALLINT NOT NULL, 
	weight FLOAT NOT NULL, 
	metadata TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, parent_id, child_id, relationship), 
	FOREIGN KEY(tenant_id, parent_id) REFERENCES skills (tenant_id, id) ON DELETE CASCADE, 
	FOREIGN KEY(tenant_id, child_id) REFERENCES skills (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE skill_tags (
	tenant_id TEXT NOT NULL, 
	tag TEXT NOT NULL, 
	skill_id TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, tag, skill_id), 
	FOREIGN KEY(tenant_id, skill_id) REFERENCES skills (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE skill_uses (
	tenant_id TEXT NOT NULL, 
	skill_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	success BOOLEAN NOT NULL, 
	reward FLOAT, 
	latency_ms BIGINT, 
	used_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, skill_id, id), 
	FOREIGN KEY(tenant_id, skill_id) REFERENCES skills (tenant_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE skills (
	tenant_id TEXT NOT NULL, 
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	description TEXT NOT NULL, 
	inputs TEXT NOT NULL, 
	outputs TEXT NOT NULL, 
	code TEXT NOT NULL, 
	project TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	claimed_rate FLOAT, 
	reported TEXT NOT NULL, 
	learned TEXT NOT NULL, 
	value FLOAT NOT NULL, 
	edited BOOLEAN NOT NULL, 
	findings TEXT NOT NULL, 
	sources TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE summary_queue (
	tenant_id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	due_at BIGINT NOT NULL, 
	attempts INTEGER NOT NULL, 
	last_error TEXT NOT NULL, 
	PRIMARY KEY (tenant_id, session_id), 
	FOREIGN KEY(tenant_id, session_id) REFERENCES sessions (tenant_id, id)
)
 WITHOUT ROWID

;
CREATE TABLE totals (
	tenant_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	value BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, name)
)
 WITHOUT ROWID

;
CREATE TABLE training_metrics (
	tenant_id TEXT NOT NULL, 
	session INTEGER NOT NULL, 
	episode INTEGER NOT NULL, 
	transitions BIGINT NOT NULL, 
	episode_reward DOUBLE NOT NULL, 
	moving_avg_reward DOUBLE NOT NULL, 
	convergence_score DOUBLE NOT NULL, 
	loss DOUBLE, 
	value_mean DOUBLE, 
	gradient_norm DOUBLE, 
	exploration_rate DOUBLE, 
	recorded_at BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, session, episode)
);
CREATE TABLE vectors (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	tenant_id TEXT NOT NULL, 
	doc_id BIGINT NOT NULL, 
	content_hash BLOB NOT NULL, 
	vector BLOB NOT NULL, 
	CONSTRAINT vectors_document UNIQUE (tenant_id, doc_id)
);
CREATE INDEX sessions_by_agent ON sessions (tenant_id, agent_id, started_at);
CREATE INDEX sessions_by_project ON sessions (tenant_id, project, started_at);
CREATE INDEX sessions_by_start ON sessions (tenant_id, started_at, id);
CREATE INDEX sessions_of_the_system ON sessions (tenant_id, id) WHERE system;
CREATE INDEX session_tags_by_session ON session_tags (tenant_id, session_id);
CREATE INDEX events_by_agent ON events (tenant_id, agent_id, timestamp, cursor);
CREATE INDEX events_by_session ON events (tenant_id, session_id, timestamp, cursor);
CREATE INDEX events_by_time ON events (tenant_id, timestamp, cursor);
CREATE INDEX events_that_failed ON events (tenant_id, timestamp, cursor) WHERE severity >= 4;
CREATE INDEX documents_by_session ON documents (tenant_id, session_id, position);
CREATE INDEX vectors_by_content ON vectors (tenant_id, content_hash);
CREATE INDEX embeddings_that_failed ON embedding_queue (tenant_id) WHERE attempts > 0;
CREATE INDEX lessons_by_category ON lessons (tenant_id, category, updated_at);
CREATE INDEX lessons_by_update ON lessons (tenant_id, updated_at, id);
CREATE INDEX lesson_tags_by_lesson ON lesson_tags (tenant_id, lesson_id);
CREATE INDEX reflections_by_project ON reflections (tenant_id, project, created_at, id);
CREATE INDEX reflections_by_session ON reflections (tenant_id, session_id, created_at, id);
CREATE INDEX reflections_by_time ON reflections (tenant_id, created_at, id);
CREATE INDEX reflection_tags_by_reflection ON reflection_tags (tenant_id, reflection_id);
CREATE INDEX knowledge_by_project ON knowledge (tenant_id, project, timestamp);
CREATE INDEX handovers_by_project ON handovers (tenant_id, project, created_at, session_id);
CREATE INDEX handovers_by_time ON handovers (tenant_id, created_at, session_id);
CREATE INDEX summary_queue_by_time ON summary_queue (tenant_id, due_at);
CREATE INDEX alert_rules_by_creation ON alert_rules (tenant_id, created_at, id);
CREATE INDEX alert_history_by_time ON alert_history (tenant_id, triggered_at, id);
CREATE INDEX alert_history_by_rule ON alert_history (tenant_id, rule_id, triggered_at, id);
CREATE INDEX alert_deliveries_by_entry ON alert_deliveries (tenant_id, entry_id, position);
CREATE INDEX alert_deliveries_due ON alert_deliveries (tenant_id, next_at);
CREATE INDEX experience_by_trajectory ON experience_trajectories (tenant_id, session, trajectory_id, place);
CREATE UNIQUE INDEX experience_by_prediction ON experience_trajectories (tenant_id, session, prediction);
CREATE INDEX log_leaves_by_source ON log_leaves (tenant_id, kind, source_id, leaf);
CREATE INDEX log_runs_by_document ON log_runs (tenant_id, first_doc);
CREATE INDEX certificates_by_time ON certificates (tenant_id, created_at, id, bytes);
CREATE INDEX certificate_items_by_certificate ON certificate_items (tenant_id, certificate_id);
CREATE UNIQUE INDEX causal_edges_by_cause ON causal_edges (tenant_id, cause, effect);
CREATE INDEX causal_edges_by_effect ON causal_edges (tenant_id, effect);
CREATE INDEX causal_edges_by_time ON causal_edges (tenant_id, created_at, id);
CREATE INDEX causal_experiments_by_time ON causal_experiments (tenant_id, created_at, id);
CREATE UNIQUE INDEX causal_assignments_by_place ON causal_assignments (tenant_id, experiment_id, stratum, place);
CREATE INDEX memories_by_since ON memories (tenant_id, since, id);
CREATE INDEX memories_by_user ON memories (tenant_id, user_id, since, id);
CREATE INDEX memories_by_digest ON memories (tenant_id, digest);
CREATE INDEX memories_by_successor ON memories (tenant_id, superseded_by);
CREATE INDEX memory_tags_by_memory ON memory_tags (tenant_id, memory_id);
CREATE INDEX memory_values_by_memory ON memory_values (tenant_id, memory_id);
CREATE INDEX episodes_by_reward ON episodes (tenant_id, reward);
CREATE INDEX episodes_by_time ON episodes (tenant_id, occurred_at, id);
CREATE INDEX episodes_by_session ON episodes (tenant_id, session_id, occurred_at, id);
CREATE INDEX episode_tags_by_episode ON episode_tags (tenant_id, episode_id);
CREATE INDEX episode_memories_by_episode ON episode_memories (tenant_id, episode_id);
CREATE UNIQUE INDEX skills_by_name ON skills (tenant_id, name);
CREATE INDEX skill_tags_by_skill ON skill_tags (tenant_id, skill_id);
CREATE INDEX skill_links_by_child ON skill_links (tenant_id, child_id);
CREATE UNIQUE INDEX patterns_by_name ON patterns (tenant_id, name);
CREATE INDEX pattern_verdicts_by_memory ON pattern_verdicts (tenant_id, memory_id);
CREATE INDEX memories_by_standing ON memories (tenant_id, user_id, superseded_by, standing, last_said, digest, since, agent_id, project);
CREATE INDEX otlp_inbox_by_due ON otlp_inbox (tenant_id, due_at);
CREATE INDEX otlp_inbox_by_size ON otlp_inbox (tenant_id, bytes);
CREATE INDEX otlp_inbox_by_trace ON otlp_inbox (tenant_id, trace_id);
CREATE INDEX otlp_known_by_time ON otlp_known (tenant_id, kept_at);
CREATE INDEX otlp_known_by_session ON otlp_known (tenant_id, session_id);
CREATE INDEX forgotten_events_by_event ON forgotten_events (tenant_id, event);
CREATE INDEX session_grades_by_session ON session_grades (tenant_id, session_id);
CREATE INDEX session_grades_by_time ON session_grades (tenant_id, graded_at, id);
DELETE FROM "sqlite_sequence";
COMMIT;
