"""A call that reads does not write on its way: what it counts waits in memory for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from mneme.v1 import auth_pb2, options_pb2
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import reflection_pb2 as reflection_pb
from mneme_server.engine.store import connections
from sqlalchemy import Connection
from support.api import Api
from support.contexts import eventually
from support.descriptors import services
from support.examples import EXAMPLES, chosen_in, needed, requests_of
from support.making import lesson, list_lessons
from support.server import LocalServer, local_server

pytestmark = pytest.mark.on_sqlite("PostgreSQL's transactions begin past what it listens to")

METHODS = {f"{s.name}.{m.name}": m for s in services() for m in s.methods}
READING = [
    name
    for name, method in METHODS.items()
    if method.GetOptions().Extensions[options_pb2.required_scope] == auth_pb2.KEY_SCOPE_READ
    and method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
]
ITS_OWN = ("AdminService.GetStats",)
"""Asked about the caller's own tenant: the example asks about another one."""
CHOSEN: dict[str, str] = {}
"""What stands for placeholders of the examples."""
WAITS = "OperationService.WaitOperation"
IN_THE_BACKGROUND = (
    "alerts", "alert-deliveries", "embedding-pipeline", "session-summaries", "usage-writer",
    "key-usage", "pattern-usage-writer", "tenant-janitor",
)  # fmt: skip


class Writes:
    """The transactions that were begun to write, by the threads they began on."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def note(self, connection: Connection) -> None:
        (reads_only,) = connections.sqlite_of(connection).execute("PRAGMA query_only").fetchone()
        if not reads_only:
            self.threads.append(threading.current_thread().name)

    def of_calls(self) -> list[str]:
        """Return those that no worker in the background began."""
        return [name for name in self.threads if not name.startswith(IN_THE_BACKGROUND)]


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Writes:
    """Notes all writes of the process. Not by an event of SQLAlchemy's: a listener that comes or
    goes fails what begins meanwhile, such as a watch that its caller has left."""
    noted, begin = Writes(), connections.begin

    def begin_and_note(connection: Connection, sql: str) -> None:
        in_one = connections.driver_of(connection).in_transaction
        begin(connection, sql)
        if not in_one:  # Else SQLAlchemy's begins in the driver's.
            noted.note(connection)

    monkeypatch.setattr(connections, "begin", begin_and_note)
    return noted


def call(api: Api, name: str) -> list[Message]:
    """Call an RPC with its example."""
    if name in ITS_OWN:
        return sent(api, name, GetMessageClass(METHODS[name].input_type)())
    return sent(api, name, *requests_of(name, CHOSEN))


def sent(api: Api, name: str, *requests: Message) -> list[Message]:
    method = METHODS[name]
    return api.call(f"{method.containing_service.full_name}/{method.name}", requests)


@pytest.fixture(scope="module")
def server_with_examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server that holds what the examples write, and an operation that has ended."""
    with local_server(tmp_path_factory.mktemp("server") / "data") as server:
        for name, request in needed().items():
            if not name.startswith("AdminService."):
                sent(server.keys.admin, name, request)
        for name in EXAMPLES:
            of_admins = name.startswith(("AdminService.", "OperationService."))
            if not of_admins and name not in READING and ".Delete" not in name:
                answers = call(server.keys.admin, name)
                CHOSEN.update(chosen_in(name, answers[0]))
        for name in ("AdminService.CreateTenant", "AdminService.Backup", WAITS):
            call(server.keys.admin, name)
        yield server


@pytest.fixture(scope="module")
def reader(server_with_examples: LocalServer) -> Api:
    """A key that may only read."""
    return server_with_examples.keys.key("default", auth_pb2.KEY_SCOPE_READ)


@pytest.mark.parametrize("name", READING)
def test_no_call_that_reads_writes_on_its_way(
    name: str, server_with_examples: LocalServer, reader: Api, writes: Writes
) -> None:
    # The operation of the examples is the administrator's.
    api = server_with_examples.keys.admin if name.startswith("OperationService.") else reader
    for _ in range(2):
        call(api, name)
    assert writes.of_calls() == []


def test_a_call_that_writes_is_seen_to_write(reader: Api, writes: Writes, tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server:
        call(server.keys.admin, "LearnService.CreateLesson")
    assert writes.of_calls() != []


def _get(api: Api, lesson_id: str) -> learn_pb.Lesson:
    return api.learn.GetLesson(learn_pb.GetLessonRequest(lesson_id=lesson_id)).lesson


def _searches(api: Api) -> int:
    request = reflection_pb.SummarizeReflectionsRequest()
    return int(api.learn.SummarizeReflections(request).metrics.search_count)


def _search(api: Api) -> None:
    api.learn.SearchReflections(reflection_pb.SearchReflectionsRequest(task_description="a task"))


def test_counts_are_shown_before_they_are_written_and_outlive_an_orderly_stop(
    tmp_path: Path,
) -> None:
    with local_server(tmp_path / "data") as server:
        kept = lesson(server.keys.admin, "a lesson")
        for times in (1, 2, 3):
            assert _get(server.keys.admin, kept.id).access_count == times
        _search(server.keys.admin)
        assert _searches(server.keys.admin) == 1
    with local_server(tmp_path / "data") as server:
        before = _get(server.keys.admin, kept.id)
        assert before.access_count == 4
        assert before.last_accessed_at.ToNanoseconds() > kept.created_at.ToNanoseconds()
        assert _searches(server.keys.admin) == 1


def test_counts_outlive_the_closing_of_an_idle_tenant(server: LocalServer) -> None:
    api = server.keys.tenant("idle")
    kept = lesson(api, "a lesson")
    _get(api, kept.id)
    _search(api)
    server.close_tenant(api.tenant_id)
    assert _get(api, kept.id).access_count == 2
    assert _searches(api) == 1


def test_a_worker_writes_what_was_counted_of_a_tenant_in_one_transaction(
    server: LocalServer, writes: Writes
) -> None:
    api = server.keys.tenant("busy")
    kept = [lesson(api, f"lesson {n}") for n in range(3)]
    for one in kept:
        _get(api, one.id)
    writes.threads.clear()
    server.application.runtime.wake("usage", api.tenant_id)
    eventually(lambda: "usage-writer" in "".join(writes.threads), bool)
    assert len([name for name in writes.threads if name.startswith("usage-writer")]) == 1
    assert [one.access_count for one in list_lessons(api)] == [1, 1, 1]
