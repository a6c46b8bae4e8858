"""`mneme episodes`, `mneme skills` and `mneme import agentdb.db` on a real server."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from unit.cli.command import mneme

# AgentDB's own statements, as far as they bear on what is read.
SCHEMA = """
CREATE TABLE vectors (
  id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, embedding BLOB NOT NULL,
  tags TEXT, metadata TEXT,
  created_at INTEGER DEFAULT (strftime('%s', 'now')),
  updated_at INTEGER DEFAULT (strftime('%s', 'now'))
);
CREATE TABLE embedding_cache (
  text_hash TEXT PRIMARY KEY, embedding BLOB NOT NULL, model TEXT NOT NULL,
  dimension INTEGER NOT NULL, cached_at INTEGER DEFAULT (strftime('%s', 'now'))
);
CREATE TABLE patterns (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, description TEXT,
  pattern_type TEXT NOT NULL CHECK(pattern_type IN ('regex', 'semantic', 'structural')),
  pattern_data TEXT NOT NULL, success_rate REAL DEFAULT 0.0, uses INTEGER DEFAULT 0,
  last_used_at INTEGER, created_at INTEGER DEFAULT (strftime('%s', 'now'))
);
CREATE TABLE episodes (
  id INTEGER PRIMARY KEY AUTOINCREMENT, ts INTEGER DEFAULT (strftime('%s', 'now')),
  session_id TEXT NOT NULL, task TEXT NOT NULL, input TEXT, output TEXT, critique TEXT,
  reward REAL NOT NULL, success INTEGER NOT NULL CHECK(success IN (0, 1)),
  latency_ms INTEGER, tokens_used INTEGER, tags TEXT, metadata TEXT
);
CREATE TABLE skills (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, description TEXT,
  signature TEXT NOT NULL, code TEXT, success_rate REAL DEFAULT 0.0, uses INTEGER DEFAULT 0,
  avg_reward REAL DEFAULT 0.0, avg_latency_ms REAL DEFAULT 0.0, created_from_episode INTEGER,
  metadata TEXT, created_at INTEGER DEFAULT (strftime('%s', 'now')), last_used_at INTEGER,
  FOREIGN KEY (created_from_episode) REFERENCES episodes(id)
);
CREATE TABLE skill_links (
  parent_skill_id INTEGER NOT NULL, child_skill_id INTEGER NOT NULL,
  relationship TEXT NOT NULL CHECK(relationship IN
    ('prerequisite', 'alternative', 'refinement', 'composition')),
  weight REAL DEFAULT 1.0, metadata TEXT,
  PRIMARY KEY (parent_skill_id, child_skill_id, relationship)
);
CREATE TABLE causal_edges (
  id INTEGER PRIMARY KEY AUTOINCREMENT, cause TEXT NOT NULL, effect TEXT NOT NULL,
  uplift REAL NOT NULL, confidence REAL NOT NULL, sample_size INTEGER DEFAULT 0,
  evidence_ids TEXT, experiment_ids TEXT, confounder_score REAL, mechanism TEXT, metadata TEXT,
  created_at INTEGER DEFAULT (strftime('%s', 'now'))
);
CREATE TABLE recall_certificates (id TEXT PRIMARY KEY, query_text TEXT NOT NULL);
"""
ROWS = """
INSERT INTO vectors (id, text, embedding, tags, metadata, created_at) VALUES
  (1, 'JWT tokens expire after an hour', x'00', '["auth","jwt"]', '{"priority":"high"}',
   1640995200),
  (2, 'JWT tokens expire after an hour', x'00', NULL, NULL, 1640995300),
  (3, '   ', x'00', '[]', '{}', 1640995400),
  (4, 'Deploys run on Fridays', x'00', 'ops, deploy', 'not json', 1640995500000);
INSERT INTO patterns (name, pattern_type, pattern_data) VALUES
  ('jwt', 'regex', '{"regex":"JWT\\\\w*"}'),
  ('late', 'semantic', '{"text":"a complaint about delays"}'),
  ('urgent', 'structural', '{"schema":{"required":["priority"]}}'),
  ('bad', 'regex', '{"regex":"(?=a)"}');
INSERT INTO episodes (id, ts, session_id, task, critique, reward, success, latency_ms, tags) VALUES
  (1, 1640995200, 's1', 'implement auth', 'PKCE worked', 0.95, 1, 1200, '["auth"]'),
  (2, 1640995300, 's1', 'implement auth again', NULL, 0.1, 0, NULL, NULL);
INSERT INTO skills
  (id, name, description, signature, code, success_rate, uses, created_from_episode)
VALUES
  (1, 'oauth_login', 'Logs in', '{"inputs":{"issuer":"URL"},"outputs":{"token":"JWT"}}', 'login()',
   0.9, 12, 1),
  (2, 'pkce', 'Makes a verifier', '{"inputs":{}}', NULL, 0.0, 0, NULL);
INSERT INTO skill_links VALUES (2, 1, 'prerequisite', 0.8, NULL), (2, 99, 'alternative', 1, NULL);
INSERT INTO causal_edges (cause, effect, uplift, confidence, sample_size, mechanism) VALUES
  ('tag:auth', 'reward', 0.3, 0.9, 40, 'tokens are checked first');
INSERT INTO recall_certificates VALUES ('c1', 'what expires');
"""


@pytest.fixture
def tenant(
    new_tenant: Callable[[], Any], server: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """Makes the command line speak as a tenant that nobody else uses; called: as another."""

    def become() -> None:
        monkeypatch.setenv("MNEME_ADDRESS", server.address)
        monkeypatch.setenv("MNEME_API_KEY", new_tenant().secret)

    become()
    return become


@pytest.fixture
def agentdb(tmp_path: Path) -> Path:
    file = tmp_path / "agentdb.db"
    with closing(sqlite3.connect(file)) as database:
        database.executescript(SCHEMA + ROWS)
        database.commit()
    return file


def documents(*command: str) -> list[Any]:
    result = mneme("--json", *command)
    assert result.code == 0, result.err
    return result.documents


def test_an_agentdb_is_brought_over_with_what_is_not_named(
    tenant: object, agentdb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = mneme("--json", "import", str(agentdb), "--dry-run")
    assert documents("memories", "list") == []
    brought = mneme("--json", "import", str(agentdb))
    assert (tried.code, brought.code) == (1, 1)
    (report,) = brought.documents
    assert report["brought"] == {
        "memories": 3, "episodes": 2, "patterns": 3, "skills": 2, "skill_links": 1,
        "causal_edges": 1,
    }  # fmt: skip
    assert report["not_brought"]["recall_certificates"]["rows"] == 1
    broken = {one["place"]: one["reason"] for one in report["broken"]}
    assert broken["vectors 3"] == "it has no text"
    assert "invalid perl operator" in broken["patterns 4"]
    assert broken["skill_links"] == "it links a skill that was not brought in"
    memories = {one["text"]: one for one in documents("memories", "list", "--limit", "0")}
    jwt = memories["JWT tokens expire after an hour"]
    assert memories["Deploys run on Fridays"]["tags"] == ["deploy", "ops"]
    assert memories["Deploys run on Fridays"]["since"].startswith("2022-01-01T00:05")
    assert len(documents("memories", "list", "--limit", "0")) == 3
    assert jwt["since"].startswith("2022-01-01")
    first = documents("episodes", "list")[-1]
    assert (first["task"], first["reward"], first["latency_ms"]) == ("implement auth", 0.95, 1200)
    skills = {one["name"]: one for one in documents("skills", "list")}
    oauth = skills["oauth_login"]
    assert oauth["signature"]["inputs"] == {"issuer": "URL"}
    assert oauth["claimed_success_rate"] == 0.9
    assert oauth["metadata"]["agentdb_record"]["uses"] == 12
    assert oauth["source_episode_ids"] == [first["id"]]
    (link,) = documents("skills", "get", oauth["id"])[0]["links"]
    assert (link["parent_name"], link["relationship"], link["weight"]) == (
        "pkce", "prerequisite", 0.8,
    )  # fmt: skip
    # Again, by the name in the environment: nothing is there twice.
    monkeypatch.setenv("AGENTDB_PATH", str(agentdb))
    again = mneme("--json", "import", "--agentdb")
    assert again.documents[0]["brought"] == report["brought"]
    assert len(documents("memories", "list", "--limit", "0")) == 3
    assert len(documents("episodes", "list")) == 2
    assert len(documents("skills", "list")) == 2


def test_a_row_of_an_agentdb_that_no_parser_takes_stops_none_of_the_others(
    tenant: object, agentdb: Path
) -> None:
    with closing(sqlite3.connect(agentdb)) as database:
        insert = "INSERT INTO vectors (id, embedding, text, metadata) VALUES"
        database.execute(f"{insert} (7, x'00', CAST(x'636166e9' AS TEXT), '{{}}')")
        database.execute(f"{insert} (8, x'00', 'told of', ?)", ["[" * 100_000])
        database.execute(f"{insert} (9, x'00', 'the last one', '{{}}')")
        database.commit()
    (report,) = mneme("--json", "import", str(agentdb)).documents
    broken = [one["place"] for one in report["broken"] if one["place"].startswith("vectors")]
    assert broken == ["vectors 3", "vectors 8"]
    texts = [one["text"] for one in documents("memories", "list", "--limit", "0")]
    assert {"caf\ufffd", "the last one"} <= set(texts)


def test_what_is_told_of_an_agentdb_reads_well(tenant: object, agentdb: Path) -> None:
    result = mneme("import", str(agentdb), "--dry-run")
    assert result.lines[-1].startswith("dry run, nothing was sent. ")
    assert "3 memories, 2 episodes" in result.lines[-1]
    assert "not brought: 1 row of recall_certificates (" in result.err
    assert "vectors 3: it has no text" in result.err


def test_a_database_that_is_no_agentdb_is_refused(tenant: object, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE things (id INTEGER)")
    result = mneme("import", str(other))
    assert result.code == 2
    assert "no AgentDB" in result.err
    missing = mneme("import", "--agentdb")
    assert missing.code == 2
    assert "agentdb.db" in missing.err


def test_episodes_and_skills_go_round_as_json_lines(
    tenant: Callable[[], None], tmp_path: Path
) -> None:
    stored = mneme("episodes", "store", "find the bug", "--success", "--tag", "debugging")
    assert stored.code == 0
    (episode_id,) = stored.lines
    mneme("episodes", "store", "find another bug", "--failure", "--critique", "no logs")
    (found,) = documents("episodes", "search", "a bug", "--failures")
    assert found["results"][0]["episode"]["critique"] == "no logs"
    shown = mneme("episodes", "get", episode_id)
    assert "find the bug" in shown.out
    first = mneme(
        "skills",
        "create",
        "read_logs",
        "--description",
        "Reads the logs first",
        "--inputs",
        '{"path": "a file"}',
        "--episode",
        episode_id,
    ).lines[0]
    second = mneme("skills", "create", "open_file").lines[0]
    assert mneme("skills", "use", first, "--success").lines[0].startswith("read_logs: 1 of 1")
    mneme("skills", "link", second, first, "--as", "prerequisite", "--weight", "0.5")
    assert "open_file → read_logs: prerequisite, 0.5" in mneme("skills", "get", first).out
    (hit,) = documents("skills", "search", "what do the logs say", "--min-rate", "0.5")
    assert [one["skill"]["name"] for one in hit["results"]] == ["read_logs"]
    episodes, skills = tmp_path / "episodes.jsonl", tmp_path / "skills.jsonl"
    assert "2 episodes written" in mneme("episodes", "export", str(episodes)).err
    assert "2 skills written" in mneme("skills", "export", str(skills)).err
    here = [documents(kind, "list") for kind in ("episodes", "skills")]
    tenant()  # Another one, with nothing in it.
    assert documents("episodes", "list") == []
    for _ in range(2):  # Again changes nothing.
        assert mneme("episodes", "import", str(episodes)).code == 0
        assert mneme("skills", "import", str(skills)).lines == ["2 skills and 1 link in"]
    there = [documents(kind, "list") for kind in ("episodes", "skills")]
    assert there[0] == here[0]
    assert [without_record(one) for one in there[1]] == [without_record(one) for one in here[1]]
    assert {one["name"]: one.get("claimed_success_rate") for one in there[1]} == {
        "open_file": None, "read_logs": 1.0,
    }  # fmt: skip
    again = tmp_path / "again.jsonl"
    mneme("episodes", "export", str(again))
    assert again.read_text() == episodes.read_text()
    assert mneme("episodes", "delete", episode_id, "--yes").code == 0
    assert mneme("skills", "delete", first, "--yes").lines == ["deleted read_logs"]
    assert len(documents("skills", "list")) == 1


def without_record(skill: Any) -> Any:
    """A skill without what a new place counts anew."""
    own = ("record", "created_at", "updated_at", "claimed_success_rate", "etag")
    return {name: value for name, value in skill.items() if name not in own}


@pytest.mark.parametrize(
    ("kind", "line", "said"),
    [
        ("episodes", '{"reward": 1}', "it has no task"),
        ("episodes", '{"task": 1}', "no episode"),
        ("skills", '{"description": "x"}', "it has no name"),
        ("skills", '{"name": "x", "links": 3}', "no skill"),
        ("skills", "{broken", "line 2: not JSON"),
    ],
)
def test_a_line_that_is_none_brings_nothing_in_and_is_named(
    tenant: object, tmp_path: Path, kind: str, line: str, said: str
) -> None:
    file = tmp_path / "file.jsonl"
    good = {"episodes": {"task": "a task"}, "skills": {"name": "a skill"}}[kind]
    file.write_text(f"{json.dumps(good)}\n{line}\n")
    result = mneme(kind, "import", str(file))
    assert result.code != 0
    assert said in result.err
    assert documents(kind, "list") == []


def test_options_that_leave_nothing_and_commands_that_say_nothing_are_refused() -> None:
    assert mneme("episodes", "list", "--failures", "--successes").code == 2
    assert "say the task" in mneme("episodes", "store").err
