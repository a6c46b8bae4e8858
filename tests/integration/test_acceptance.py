"""The criteria that the first epics were accepted by, in their own words.

Those whose whole promise another file tests are named there: isolation in the folder `isolation`,
queries without a tenant in `test_storage_guard.py`, lessons in `test_lessons.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api
from support.making import (
    MESSAGE,
    TOOL_ERROR,
    event,
    ids_of,
    lesson,
    list_lessons,
    recall,
    record,
    search_lessons,
)
from support.server import LocalServer, local_server

DENSE = recall_pb.RECALL_MODE_DENSE


def database_of(server: LocalServer, api: Api) -> Path:
    return Path(server.data_dir) / "tenants" / api.tenant_id / "mneme.db"


def query(server: LocalServer, api: Api, sql: str) -> Sequence[tuple[object, ...]]:
    with closing(sqlite3.connect(database_of(server, api))) as connection:
        return connection.execute(sql).fetchall()


def test_given_auth_disabled_when_any_request_arrives_the_tenant_is_default(
    tmp_path: Path,
) -> None:
    with local_server(tmp_path / "data", auth="disabled", admin_key=None) as server:
        answer = server.keys.api(None).admin.GetStats(admin_pb.GetStatsRequest())
        assert answer.tenant.tenant_id == "default"


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_when_events_are_ingested_they_are_stamped_with_the_tenant(server: LocalServer) -> None:
    api = server.keys.tenant("stamped")
    record(api, event("words", agent_id="a"), wait=True)
    lesson(api, "title")
    for table in ("events", "sessions", "agents", "lessons", "documents", "vectors"):
        stamps = query(server, api, f"SELECT DISTINCT tenant_id FROM {table}")
        assert stamps == [(api.tenant_id,)], table


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_given_the_local_backend_a_vector_has_384_dimensions_and_equal_texts_equal_vectors(
    server: LocalServer,
) -> None:
    api = server.keys.tenant("vectors")
    record(api, event("the same text", id="1"), event("another one", id="2"), wait=True)
    record(api, event("the same text", "t", id="3"), wait=True)
    rows = query(
        server, api,
        "SELECT source_id, vector FROM vectors JOIN documents USING (tenant_id, doc_id)",
    )  # fmt: skip
    vectors = {str(name): np.frombuffer(bytes(raw), "<f4") for name, raw in rows}  # type: ignore[call-overload]
    assert {vector.size for vector in vectors.values()} == {384}
    assert all(np.linalg.norm(vector) == pytest.approx(1, abs=1e-4) for vector in vectors.values())
    assert np.array_equal(vectors["1"], vectors["3"])
    assert not np.allclose(vectors["1"], vectors["2"])


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_given_a_tool_error_is_ingested_then_it_is_queued_for_embedding(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server:
        server.application.runtime.pipeline.stop()
        api = server.keys.tenant()
        failed = event("", kind=TOOL_ERROR, name="book", error="no seats")
        record(api, failed, failed, failed)  # One alone would be embedded as it is recorded.
        queued = query(
            server, api,
            "SELECT text FROM embedding_queue JOIN documents USING (tenant_id, doc_id)",
        )  # fmt: skip
        assert queued == 3 * [("tool_error: book: no seats",)]


def test_given_a_query_authentication_error_such_events_rank_highest(api: Api) -> None:
    record(
        api,
        event("user could not sign in: wrong password", "a", TOOL_ERROR, id="password"),
        event("the token for the login service was rejected", "b", TOOL_ERROR, id="token"),
        event("the report was written to the disk", "c", MESSAGE, id="report"),
        event("dinner is served at eight", "d", MESSAGE, id="dinner"),
        wait=True,
    )
    for mode in (DENSE, recall_pb.RECALL_MODE_HYBRID):
        found = recall(api, "authentication error", mode=mode, scopes=["event"])
        assert set(ids_of(found)[:2]) == {"password", "token"}


def test_given_min_score_only_results_with_at_least_that_similarity_are_returned(
    api: Api,
) -> None:
    record(api, event("the exact words"), event("nothing of the kind", "t"), wait=True)
    found = recall(api, "the exact words", mode=DENSE, min_score=0.7)
    assert len(found.results) == 1
    assert all(result.similarity >= 0.7 for result in found.results)


def test_given_limit_5_at_most_5_results_are_returned_sorted_by_similarity(api: Api) -> None:
    record(api, *[event(f"text number {n}", f"s{n}") for n in range(12)], wait=True)
    found = recall(api, "text number", mode=DENSE, limit=5)
    similarities = [result.similarity for result in found.results]
    assert len(similarities) == 5
    assert similarities == sorted(similarities, reverse=True)


def test_given_no_relevant_results_the_answer_is_empty_and_says_why(api: Api) -> None:
    record(api, event("dinner is served at eight"), wait=True)
    found = recall(api, "quantum chromodynamics", min_score=0.9)
    assert list(found.results) == []
    assert found.outcome == recall_pb.RECALL_OUTCOME_NOTHING_ABOVE_MIN_SCORE


def test_a_lesson_saved_as_in_a_notebook_is_listed_and_found_by_relevance(api: Api) -> None:
    saved = lesson(
        api, "Always run tests", "Before deploying to prod, always run the test suite",
        category="deployment",
    )  # fmt: skip
    other = lesson(api, "Wrap exceptions", "Keep their cause", category="error-handling")
    assert search_lessons(api, "deployment best practices")[0] == saved.id
    assert [item.id for item in list_lessons(api, category="error-handling")] == [other.id]


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_lesson_is_embedded_as_its_title_and_content(server: LocalServer) -> None:
    api = server.keys.tenant("lesson")
    lesson(api, "The title", "and the content")
    assert query(server, api, "SELECT text FROM documents") == [("The title: and the content",)]
    assert query(server, api, "SELECT count(*) FROM vectors") == [(1,)]
    assert query(server, api, "SELECT count(*) FROM embedding_queue") == [(0,)]
