"""A tenant's memory as a whole: what is there, what is cleared, what goes with what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mneme.v1 import auth_pb2, episode_pb2
from mneme.v1 import certificate_pb2 as certificate_pb
from mneme.v1 import memory_service_pb2 as pb
from mneme.v1 import memory_stats_pb2 as stats_pb
from mneme.v1 import skill_service_pb2 as skill_pb
from support.api import Api, grpc, refused
from support.making import create_edge, episode, event, record, skill, struct
from support.server import LocalServer, local_server


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("upkeep")


def insert(api: Api, memory_id: str, text: str = "", **fields: Any) -> None:
    api.memory.CreateMemory(
        pb.CreateMemoryRequest(memory_id=memory_id, text=text or f"text {memory_id}", **fields)
    )


def stats(api: Api, **asked: bool) -> pb.GetMemoryStatsResponse:
    return api.memory.GetMemoryStats(stats_pb.GetMemoryStatsRequest(**asked))


def clear(api: Api, *caches: Any, **fields: Any) -> stats_pb.ClearCacheResponse:
    return api.memory.ClearCache(stats_pb.ClearCacheRequest(caches=caches, **fields))


def delete(api: Api, *memory_ids: str, **fields: Any) -> pb.DeleteMemoriesResponse:
    return api.memory.DeleteMemories(pb.DeleteMemoriesRequest(memory_ids=memory_ids, **fields))


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_statistics_count_what_is_there(api: Api) -> None:
    insert(api, "a", tags=["red", "blue"], metadata=struct(kind="x", deep={"n": 1}))
    insert(api, "b", tags=["red"], metadata=struct(kind="y"))
    episode(api, "a task", reward=0.25)
    episode(api, "another task", reward=0.75, success=False)
    used = skill(api, "a skill")
    skill(api, "never used")
    for success in (True, True, False, True):
        api.skill.RecordSkillUse(skill_pb.RecordSkillUseRequest(skill_id=used.id, success=success))
    record(api, event("some words"))
    api.memory.SearchMemories(pb.SearchMemoriesRequest(query="text"))
    api.recall.RecallWithCertificate(certificate_pb.RecallWithCertificateRequest(query="text"))
    answer = stats(api, include_distribution=True, include_quality=True)
    counts = answer.counts
    assert (counts.memories, counts.episodes, counts.skills, counts.events) == (2, 2, 2, 1)
    assert (counts.sessions, counts.patterns, counts.causal_edges) == (1, 0, 0)
    assert counts.certificates == 1
    assert counts.vectors + counts.pending == 7
    assert answer.quality.average_episode_reward == pytest.approx(0.5)
    assert answer.quality.average_skill_success_rate == pytest.approx(0.75)
    assert not answer.quality.HasField("average_causal_confidence")
    assert [(one.name, one.count) for one in answer.distribution.tags] == [("red", 2), ("blue", 1)]
    keys = [(one.name, one.count) for one in answer.distribution.metadata_keys]
    assert keys == [("kind", 2), ("deep.n", 1)]
    assert (answer.distribution.tag_count, answer.distribution.metadata_key_count) == (2, 2)
    database = answer.database
    assert database.engine == "sqlite"
    assert database.path == f"tenants/{database.tenant_id}/mneme.db"
    assert database.wal_mode
    assert 0 < database.size_bytes <= database.folder_bytes
    assert "skills_" in database.schema_version
    assert answer.index.kind == pb.VECTOR_INDEX_KIND_EXACT
    assert answer.index.search_count == 1
    assert answer.index.average_search_ms > 0
    assert (answer.embeddings.dimension, answer.embeddings.cache_misses > 0) == (384, True)


def test_statistics_leave_out_what_was_not_asked_for(api: Api) -> None:
    answer = stats(api)
    assert not answer.HasField("distribution")
    assert not answer.HasField("quality")
    assert not answer.index.HasField("average_search_ms")
    assert not answer.embeddings.HasField("cache_hit_rate")


def test_a_cleared_cache_is_empty_and_what_was_stored_stays(api: Api) -> None:
    insert(api, "a")
    assert stats(api).embeddings.cache_size == 1
    (kept,) = clear(api, older_than_days=1).cleared
    assert (kept.cache, kept.count) == (stats_pb.CACHE_KIND_EMBEDDINGS, 0)
    (cleared,) = clear(api).cleared
    assert cleared.count == 1
    assert stats(api).embeddings.cache_size == 0
    # The vector that is stored with the text spares the model all the same.
    answer = api.memory.CreateMemory(pb.CreateMemoryRequest(text="text a", user_id="ann"))
    assert answer.figures.cache_hits == 1


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_vacuum_gives_back_what_deleted_rows_took_and_loses_nothing(api: Api) -> None:
    new = [
        pb.NewMemory(
            id=f"m{n}", text="a row", keep_copy=True, metadata=struct(filler=str(n) * 4_000)
        )
        for n in range(300)
    ]
    list(api.memory.CreateMemories(pb.CreateMemoriesRequest(memory=one) for one in new))
    delete(api, *(f"m{n}" for n in range(1, 300)))
    before = stats(api).database.size_bytes
    answer = clear(api, stats_pb.CACHE_KIND_PATTERNS, vacuum=True)
    assert answer.vacuumed
    assert answer.reclaimed_bytes == before - stats(api).database.size_bytes > 100_000
    (found,) = api.memory.SearchMemories(pb.SearchMemoriesRequest(query="a row")).results
    assert found.memory.id == "m0"
    assert clear(api, stats_pb.CACHE_KIND_PATTERNS).vacuumed is False


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_large_database_gives_back_its_free_pages(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mneme_server.features.memory.upkeep.upkeep._SMALL_BYTES", 0)
    clear(api, stats_pb.CACHE_KIND_PATTERNS, vacuum=True)
    before = clear(api, stats_pb.CACHE_KIND_PATTERNS, vacuum=True)
    assert (before.vacuumed, before.reclaimed_bytes) == (False, 0)
    names = [f"m{number}" for number in range(60)]
    for name in names:
        insert(api, name, metadata=struct(filler=name * 4_000))
    delete(api, *names[1:])
    after = clear(api, stats_pb.CACHE_KIND_PATTERNS, vacuum=True)
    assert after.vacuumed
    assert after.reclaimed_bytes > 300_000


def test_a_memory_is_ready_for_the_model_that_runs_and_for_no_other(api: Api) -> None:
    insert(api, "a")
    answer = api.memory.OpenMemory(
        stats_pb.OpenMemoryRequest(model="all-MiniLM-L6-v2", dimension=384)
    )
    assert (answer.counts.memories, answer.backup) == (1, "")
    assert {"MemoryService", "SkillService", "RecallService"} <= set(answer.capabilities)
    for wrong, field in (
        ({"model": "all-mpnet-base-v2"}, "model"),
        ({"dimension": 768}, "dimension"),
    ):
        with refused() as failure:
            api.memory.OpenMemory(stats_pb.OpenMemoryRequest(**wrong))  # type: ignore[arg-type]
        assert (failure.reason, failure.field) == ("DIMENSION_MISMATCH", field)


@pytest.mark.on_sqlite("emptying a memory is refused there")
def test_a_reset_needs_the_tenants_name_and_an_administrator(server: LocalServer) -> None:
    api = server.keys.tenant("upkeep")
    insert(api, "a")
    asked = stats_pb.OpenMemoryRequest(reset=True, confirm_tenant_id=api.tenant_id)
    with refused() as failure:
        api.memory.OpenMemory(asked)
    assert failure.code == grpc.StatusCode.PERMISSION_DENIED
    administrator = server.keys.key(
        api.tenant_id, auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_ADMIN
    )
    with refused() as failure:
        administrator.memory.OpenMemory(stats_pb.OpenMemoryRequest(reset=True))
    assert (failure.code, failure.field) == (
        grpc.StatusCode.INVALID_ARGUMENT, "confirm_tenant_id",
    )  # fmt: skip
    assert stats(api).counts.memories == 1
    answer = administrator.memory.OpenMemory(asked)
    assert answer.counts == stats_pb.MemoryCounts()
    assert answer.backup.endswith(".db")
    insert(api, "a", "another text")
    (found,) = api.memory.SearchMemories(pb.SearchMemoriesRequest(query="text")).results
    assert found.memory.text == "another text"


def test_an_episode_names_memories_that_exist_and_forgets_those_that_go(api: Api) -> None:
    insert(api, "a")
    insert(api, "b")
    kept = episode(api, "a task", memory_ids=["b", "a", "b"])
    assert list(kept.memory_ids) == ["a", "b"]
    with refused() as failure:
        episode(api, "another task", memory_ids=["a", "gone"])
    assert (failure.code, failure.field) == (grpc.StatusCode.NOT_FOUND, "memory_ids")
    delete(api, "a")
    listed = api.skill.ListEpisodes(_list_episodes()).episodes
    assert [list(one.memory_ids) for one in listed] == [["b"]]


def _list_episodes() -> episode_pb2.ListEpisodesRequest:
    return episode_pb2.ListEpisodesRequest(page_size=1000)


def state(api: Api) -> tuple[set[str], set[str], set[str]]:
    """The ids of what is there: memories, episodes, skills."""
    memories = api.memory.ListMemories(
        pb.ListMemoriesRequest(page_size=1000, include_superseded=True)
    ).memories
    episodes = api.skill.ListEpisodes(_list_episodes()).episodes
    skills = api.skill.ListSkills(skill_pb.ListSkillsRequest(page_size=1000)).skills
    there = {one.id for one in memories}
    for one in episodes:  # No orphan: nothing names what is gone.
        assert set(one.memory_ids) <= there
    return there, {one.id for one in episodes}, {one.id for one in skills}


PLANS = st.tuples(
    st.lists(st.sets(st.integers(0, 4), max_size=3), max_size=5),  # Each episode's memories.
    st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=3), max_size=4),  # A skill's episodes.
    st.sets(st.integers(0, 5)),  # What is deleted.
    st.booleans(),
)


@given(plan=PLANS)
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_what_a_dry_run_tells_is_what_goes_and_no_orphan_stays(
    server: LocalServer, plan: Any
) -> None:
    episodes, skills, gone, cascade = plan
    api = server.keys.tenant("cascade")
    for number in range(5):
        insert(api, f"m{number}")
    for number, memories in enumerate(episodes):
        named = [f"m{one}" for one in memories]
        episode(api, f"task {number}", episode_id=f"e{number}", memory_ids=named)
    for number, sources in enumerate(skills):
        ids = [f"e{one}" for one in sources if one < len(episodes)]
        skill(api, f"s{number}", skill_id=f"s{number}", source_episode_ids=ids)
    before = state(api)
    asked = [f"m{one}" for one in gone] or ["none"]
    told = delete(api, *asked, dry_run=True, cascade=cascade)
    assert state(api) == before
    done = delete(api, *asked, cascade=cascade)
    told.took_ms = done.took_ms = 0
    told.dry_run = False
    assert told == done
    after = state(api)
    went = [sorted(was - now) for was, now in zip(before, after, strict=True)]
    assert went == [list(done.memory_ids), list(done.episode_ids), list(done.skill_ids)]
    assert [done.deleted_count, done.episode_count, done.skill_count] == list(map(len, went))
    expected = {f"e{n}" for n, memories in enumerate(episodes) if cascade and memories & gone}
    assert set(done.episode_ids) == expected
    for number, sources in enumerate(skills):
        ids = {f"e{one}" for one in sources if one < len(episodes)}
        assert (f"s{number}" in done.skill_ids) == (bool(ids & expected) and ids <= expected)


def test_what_was_deleted_with_all_that_rests_on_it_is_gone_after_a_restart(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as first:
        api = first.keys.tenant("upkeep")
        insert(api, "a")
        insert(api, "b")
        episode(api, "a task", episode_id="of-a", memory_ids=["a"])
        episode(api, "a task", episode_id="of-b", memory_ids=["b"])
        delete(api, "a", cascade=True)
        secret, tenant_id = api.secret, api.tenant_id
    with local_server(tmp_path / "data") as second:
        api = second.keys.api(secret, tenant_id)
        assert state(api) == ({"b"}, {"of-b"}, set())


def test_edges_go_with_what_they_begin_or_end_at(api: Api) -> None:
    insert(api, "a")
    episode(api, "a task", episode_id="of-a", memory_ids=["a"])
    for edge_id, cause, effect in (
        ("from-memory", "memory:a", "reward"),
        ("from-episode", "episode:of-a", "reward"),
        ("apart", "tag:fast", "reward"),
    ):
        create_edge(api, cause, effect, 0.5, edge_id=edge_id)
    assert stats(api, include_quality=True).quality.average_causal_confidence > 0
    told = delete(api, "a", cascade=True, dry_run=True)
    done = delete(api, "a", cascade=True)
    assert list(told.causal_edge_ids) == list(done.causal_edge_ids)
    assert list(done.causal_edge_ids) == ["from-episode", "from-memory"]
    assert stats(api).counts.causal_edges == 1
