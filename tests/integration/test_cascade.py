"""Deleting with cascade, looked at in the database itself: nothing is left that names what is gone,
and the log says that it went."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from mneme.v1 import memory_service_pb2 as pb
from mneme.v1 import pattern_pb2, recall_service_pb2
from mneme.v1 import skill_service_pb2 as skill_pb
from support.api import Api
from support.making import create_edge, episode, ids_of, recall, skill, struct
from support.server import LocalServer

ORPHANS = {
    "documents of no item": """
        SELECT kind, source_id FROM documents WHERE
        (kind = 'memory' AND source_id NOT IN (SELECT id FROM memories)) OR
        (kind = 'episode' AND source_id NOT IN (SELECT id FROM episodes)) OR
        (kind = 'skill' AND source_id NOT IN (SELECT id FROM skills))""",
    "vectors of no document": """
        SELECT doc_id FROM vectors WHERE doc_id NOT IN (SELECT doc_id FROM documents)""",
    "waiting without a document": """
        SELECT doc_id FROM embedding_queue WHERE doc_id NOT IN (SELECT doc_id FROM documents)""",
    "tags and values of no memory": """
        SELECT memory_id FROM memory_tags WHERE memory_id NOT IN (SELECT id FROM memories)
        UNION SELECT memory_id FROM memory_values
        WHERE memory_id NOT IN (SELECT id FROM memories)""",
    "verdicts on no memory": """
        SELECT memory_id FROM pattern_verdicts WHERE memory_id NOT IN (SELECT id FROM memories)""",
    "what episodes rest on": """
        SELECT memory_id, episode_id FROM episode_memories
        WHERE memory_id NOT IN (SELECT id FROM memories)
        OR episode_id NOT IN (SELECT id FROM episodes)""",
    "tags of no episode": """
        SELECT episode_id FROM episode_tags WHERE episode_id NOT IN (SELECT id FROM episodes)""",
    "episodes that skills came from": """
        SELECT skills.id, each.value FROM skills, json_each(skills.sources) AS each
        WHERE each.value NOT IN (SELECT id FROM episodes)""",
    "uses, tags and links of no skill": """
        SELECT skill_id FROM skill_uses WHERE skill_id NOT IN (SELECT id FROM skills)
        UNION SELECT skill_id FROM skill_tags WHERE skill_id NOT IN (SELECT id FROM skills)
        UNION SELECT parent_id FROM skill_links WHERE parent_id NOT IN (SELECT id FROM skills)
        UNION SELECT child_id FROM skill_links WHERE child_id NOT IN (SELECT id FROM skills)""",
    "edges that begin or end at nothing": """
        SELECT causal_edges.id FROM causal_edges,
        json_each(json_array(cause, effect)) AS node WHERE
        (node.value LIKE 'memory:%' AND substr(node.value, 8) NOT IN (SELECT id FROM memories)) OR
        (node.value LIKE 'episode:%' AND substr(node.value, 9) NOT IN (SELECT id FROM episodes)) OR
        (node.value LIKE 'skill:%' AND substr(node.value, 7) NOT IN (SELECT id FROM skills))""",
    "memories superseded by nothing": """
        SELECT id FROM memories
        WHERE superseded_by != '' AND superseded_by NOT IN (SELECT id FROM memories)""",
}  # fmt: skip
REMOVED = "SELECT kind, source_id, content FROM log_leaves WHERE content LIKE '%removed_at%'"


@pytest.fixture
def api(server: LocalServer) -> Api:
    """Two memories, each with all that can rest on one."""
    api = server.keys.tenant("orphans")
    store = pattern_pb2.CreatePatternRequest(
        name="any", regex=pattern_pb2.RegexPattern(expression="text")
    )
    api.memory.CreatePattern(store)
    for name in ("a", "b"):
        api.memory.CreateMemory(
            pb.CreateMemoryRequest(
                memory_id=name, text=f"text {name}", tags=["red"], metadata=struct(n=name),
                wait_indexed=True,
            )
        )  # fmt: skip
        episode(api, f"task {name}", episode_id=f"e-{name}", memory_ids=[name], tags=["ci"])
        skill(api, f"s_{name}", skill_id=f"s-{name}", source_episode_ids=[f"e-{name}"], tags=["ci"])
        api.skill.RecordSkillUse(skill_pb.RecordSkillUseRequest(skill_id=f"s-{name}", success=True))
        for number, cause in enumerate((f"memory:{name}", f"episode:e-{name}", f"skill:s-{name}")):
            create_edge(api, cause, "reward", 0.5, edge_id=f"{name}-{number}")
    skill(api, "of_both", skill_id="both", source_episode_ids=["e-a", "e-b"])
    api.skill.LinkSkills(
        skill_pb.LinkSkillsRequest(
            parent_skill_id="s-a",
            child_skill_id="s-b",
            relationship="SKILL_RELATIONSHIP_REFINEMENT",
        )
    )
    verdicts = [pattern_pb2.MatchVerdict(memory_id=name, right=True) for name in ("a", "b")]
    api.memory.RecordPatternMatches(
        pattern_pb2.RecordPatternMatchesRequest(name="any", verdicts=verdicts)
    )
    return api


@pytest.fixture
def database(server: LocalServer, api: Api) -> Iterator[sqlite3.Connection]:
    path = server.data_dir / "tenants" / api.tenant_id / "mneme.db"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        yield connection


def orphans(database: sqlite3.Connection) -> dict[str, list[object]]:
    found = {what: database.execute(query).fetchall() for what, query in ORPHANS.items()}
    return {what: rows for what, rows in found.items() if rows}


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_no_orphan_stays_and_the_log_says_what_went(api: Api, database: sqlite3.Connection) -> None:
    assert orphans(database) == {}
    request = pb.DeleteMemoriesRequest(memory_ids=["a"], cascade=True)
    done = api.memory.DeleteMemories(request)
    assert list(done.episode_ids) == ["e-a"]
    assert list(done.skill_ids) == ["s-a"]
    assert list(done.causal_edge_ids) == ["a-0", "a-1", "a-2"]
    assert orphans(database) == {}
    assert database.execute("SELECT id FROM skills ORDER BY id").fetchall() == [("both",), ("s-b",)]
    went = {(kind, item): json.loads(text) for kind, item, text in database.execute(REMOVED)}
    assert set(went) == {("memory", "a"), ("episode", "e-a"), ("skill", "s-a")}
    for (kind, item), content in went.items():
        assert (content["kind"], content["id"]) == (kind, item)
    scopes = ["memory", "episode", "skill"]
    mode = recall_service_pb2.RECALL_MODE_LEXICAL
    assert set(ids_of(recall(api, "text task a b", scopes=scopes, mode=mode))) <= {
        "b", "e-b", "s-b", "both",
    }  # fmt: skip


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_without_cascade_episodes_stay_and_only_what_was_said_of_the_memory_names_it(
    api: Api, database: sqlite3.Connection
) -> None:
    api.memory.DeleteMemories(pb.DeleteMemoriesRequest(memory_ids=["a"]))
    assert orphans(database) == {"edges that begin or end at nothing": [("a-0",)]}
    assert database.execute("SELECT COUNT(*) FROM episodes").fetchone() == (2,)


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_the_queries_find_orphans(api: Api, database: sqlite3.Connection) -> None:
    """Those of what is here, where rows are taken away behind the server's back."""
    found: set[str] = set()
    for table in ("memories", "episodes", "skills", "documents"):
        with closing(sqlite3.connect(":memory:")) as copy:
            database.backup(copy)
            copy.execute("PRAGMA foreign_keys = OFF")
            copy.execute(f"DELETE FROM {table}")
            found |= set(orphans(copy))
    # Nothing waits here, and nothing is superseded.
    assert set(ORPHANS) - found == {"waiting without a document", "memories superseded by nothing"}
