"""Indexes that fail while in use: answered from what is left, built again, nobody disturbed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme_server.engine.index.dense import DenseIndex
from mneme_server.engine.index.tenant_index import TenantIndex
from mneme_server.engine.index.words.lexical import LexicalIndex
from structlog.testing import capture_logs
from support.api import Api, grpc
from support.making import event, ids_of, recall, record
from support.server import LocalServer, local_server, server_process

pytestmark = pytest.mark.slow

LEXICAL, DENSE = recall_pb.RECALL_MODE_LEXICAL, recall_pb.RECALL_MODE_DENSE
HYBRID = recall_pb.RECALL_MODE_HYBRID


class PanicException(BaseException):
    """As tantivy's binding raises it."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant()


@pytest.fixture
def watcher(api: Api) -> Iterator[Any]:
    """Somebody who holds the tenant all the time, as a dashboard does."""
    following = api.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=120)
    next(following)
    yield following
    following.cancel()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come about within a minute"
        time.sleep(0.01)


def _whole(api: Api, query: str, mode: int = HYBRID) -> bool:
    return not recall(api, query, mode=mode).partial


def _code(call: Callable[[], Any]) -> grpc.StatusCode | None:
    """Return the status that a call fails with; None when it is answered."""
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return None


def _failing_once(owner: type, name: str, error: BaseException) -> Any:
    """Patch a method so that its first call fails."""
    real, failed = getattr(owner, name), threading.Event()

    def behave(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not failed.is_set():
            failed.set()
            raise error
        return real(self, *args, **kwargs)

    return mock.patch.object(owner, name, behave)


@pytest.mark.parametrize(
    "error", [OSError("no space"), RuntimeError("bug"), PanicException("index out of range")]
)
def test_a_change_that_an_index_missed_is_found_while_a_watcher_holds_the_tenant(
    api: Api, watcher: Any, error: BaseException
) -> None:
    record(api, event("the first message", id="first"), wait=True)
    with _failing_once(TenantIndex, "add_documents", error):
        (receipt,) = record(api, event("the heron stood in the reeds", id="heron"))
    assert receipt.sequence == 2
    _until(lambda: _whole(api, "heron"))
    record(api, event("and flew away", id="away"), wait=True)
    for mode in (LEXICAL, DENSE, HYBRID):
        assert set(ids_of(recall(api, "heron in the reeds", mode=mode))) >= {"heron"}
    assert ids_of(recall(api, "flew away", mode=DENSE))[0] == "away"
    assert [next(watcher).event.id for _ in range(3)] == ["first", "heron", "away"]


@pytest.mark.parametrize(
    ("owner", "method", "mode", "left"),
    [
        (LexicalIndex, "search_counted", HYBRID, DENSE),
        (LexicalIndex, "parse", LEXICAL, DENSE),
        (DenseIndex, "search", HYBRID, LEXICAL),
    ],
)
def test_a_question_that_an_index_cannot_answer_is_answered_from_what_is_left(
    api: Api, watcher: Any, owner: type, method: str, mode: int, left: int
) -> None:
    record(api, *[event(f"heron {n} stood in the reeds", id=f"h{n}") for n in range(200)],
           wait=True)  # fmt: skip
    with capture_logs() as logs:
        with _failing_once(owner, method, PanicException("byte index 7 is out of bounds")):
            answer = recall(api, "heron in the reeds", mode=mode)
            assert answer.partial
            if mode == HYBRID:
                assert len(answer.results) == 10
            assert ids_of(recall(api, "heron 7", mode=left))
        _until(lambda: _whole(api, "heron"))
    assert len(ids_of(recall(api, "heron in the reeds", mode=mode))) == 10
    assert any(entry["event"] == "an index failed" for entry in logs)
    assert any(entry["event"] == "index built again" for entry in logs)


def test_what_is_written_while_an_index_is_built_again_is_found_in_it(api: Api) -> None:
    """The new index is built in steps between which events are recorded and lessons replaced."""
    record(api, *[event(f"heron number {n}", id=f"h{n}") for n in range(50)], wait=True)
    real, building, go_on = TenantIndex.rebuilt, threading.Event(), threading.Event()

    def slowly(self: TenantIndex) -> TenantIndex:
        built = real(self)
        building.set()
        assert go_on.wait(60)
        return built

    with mock.patch.object(TenantIndex, "rebuilt", slowly):
        with _failing_once(LexicalIndex, "search_counted", PanicException("out of bounds")):
            recall(api, "heron")
        assert building.wait(60)
        for n in range(50, 80):  # More changes than are applied in one step.
            record(api, event(f"heron number {n}", id=f"h{n}"))
        record(api, event("the last one", id="last"), wait=True)
        assert recall(api, "heron").partial, "reads go on meanwhile"
        go_on.set()
        _until(lambda: _whole(api, "heron"))
    for mode in (LEXICAL, DENSE):
        found = recall(api, "heron number", mode=mode, limit=100)
        assert set(ids_of(found)) >= {f"h{n}" for n in range(80)}
        assert found.searched_count == 81
    assert ids_of(recall(api, "the last one"))[0] == "last"


def test_an_index_that_cannot_be_built_is_tried_again(api: Api) -> None:
    record(api, event("the heron stood in the reeds", id="heron"), wait=True)
    with (
        _failing_once(TenantIndex, "rebuilt", OSError("no space")),
        _failing_once(LexicalIndex, "search_counted", PanicException("out of bounds")),
    ):
        recall(api, "heron")
        _until(lambda: _whole(api, "heron"))
    assert ids_of(recall(api, "heron")) == ["heron"]


def test_a_query_that_always_fails_does_not_keep_others_from_being_answered(api: Api) -> None:
    record(api, *[event(f"heron number {n}", id=f"h{n}") for n in range(20)], wait=True)
    real = LexicalIndex.parse

    def poisoned(self: LexicalIndex, query: str, weights: Any) -> Any:
        if query == "poison":
            raise PanicException("this query")
        return real(self, query, weights)

    with mock.patch.object(LexicalIndex, "parse", poisoned):
        for _ in range(20):
            assert recall(api, "poison").partial
            assert len(ids_of(recall(api, "heron number", mode=LEXICAL))) == 10


def test_a_server_stops_while_an_index_is_built_again(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server:
        api = server.keys.tenant()
        record(api, *[event(f"heron number {n}") for n in range(50)], wait=True)
        with _failing_once(LexicalIndex, "search_counted", PanicException("out of bounds")):
            recall(api, "heron")
        secret = api.secret
    with local_server(tmp_path / "data") as server:
        found = recall(server.keys.api(secret), "heron number", mode=LEXICAL, limit=100)
        assert len(found.results) == 50
        assert not found.partial


def test_truncated_files_end_neither_the_server_nor_another_tenants_calls(tmp_path: Path) -> None:
    with server_process(tmp_path / "data") as server:
        victim, other = server.keys.tenant("victim"), server.keys.tenant("other")
        for api in (victim, other):
            record(api, *[event(f"heron number {n}", id=f"h{n}") for n in range(300)], wait=True)
        assert len(recall(victim, "heron number").results) == 10
        folder = tmp_path / "data" / "tenants" / victim.tenant_id
        files = [file for file in folder.rglob("*") if file.is_file()]
        assert len(files) >= 2
        for file in files:
            with file.open("r+b") as opened:
                opened.truncate(file.stat().st_size // 3)
            for query in ("heron number 7", "something else"):
                recall(other, query)
                record(other, event("one more"))
                for call in (
                    partial(recall, victim, query),
                    partial(record, victim, event("more")),
                ):
                    assert _code(call) in (None, grpc.StatusCode.DATA_LOSS)
            assert server.process.poll() is None, server.log
        assert len(recall(other, "heron number").results) == 10
        assert "internal error" not in server.log
