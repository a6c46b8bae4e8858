"""What a key let in ends soon after the key: its streams, its waiting calls, its operations."""

from __future__ import annotations

import queue
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2, operation_pb2
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learning_service_pb2 as learning_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import operation_service_pb2 as operation_pb
from support.api import refused
from support.http import Http, events_of
from support.making import event, record
from support.operations import Holds, finished, get
from support.server import Keys, LocalServer, local_server

PATIENCE_S = 30.0
REVOKED = (grpc.StatusCode.UNAUTHENTICATED, "API_KEY_INVALID")


class Leaked:
    """A key of a tenant that is taken back."""

    def __init__(self, keys: Keys, *scopes: int, tenant_id: str = "") -> None:
        self.owner = keys.tenant() if not tenant_id else keys.key(tenant_id)
        self._admin = keys.admin
        created = keys.admin.admin.CreateApiKey(
            admin_pb.CreateApiKeyRequest(
                tenant_id=self.owner.tenant_id, name="leaked", scopes=list(scopes)
            )
        )
        self.id, self.secret = created.api_key.id, created.secret
        self.api = keys.api(created.secret)

    def revoke(self) -> None:
        """Take it back."""
        self._admin.admin.RevokeApiKey(admin_pb.RevokeApiKeyRequest(api_key_id=self.id))

    def delete_tenant(self) -> None:
        """Delete the tenant that it is for."""
        request = admin_pb.DeleteTenantRequest(tenant_id=self.owner.tenant_id)
        finished(self._admin, request)


@pytest.fixture
def leaked(server: LocalServer) -> Leaked:
    return Leaked(server.keys)


class Sending:
    """What a client streams in: what it is given, and then nothing, for as long as the call."""

    def __init__(self, *messages: Any) -> None:
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for message in messages:
            self._waiting.put(message)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._waiting.get, None)

    def end(self) -> None:
        self._waiting.put(None)


def test_a_watch_hears_nothing_after_its_key_was_revoked(leaked: Leaked) -> None:
    watch = leaked.api.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=PATIENCE_S)
    next(watch)
    record(leaked.owner, event("before", id="e1"))
    assert next(watch).event.id == "e1"
    leaked.revoke()
    with refused() as failure:
        for _ in watch:
            pass
    assert (failure.code, failure.reason) == REVOKED


def test_a_watch_ends_with_the_tenant_that_its_key_was_for(leaked: Leaked) -> None:
    watch = leaked.api.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=PATIENCE_S)
    next(watch)
    leaked.delete_tenant()
    with refused() as failure:
        for _ in watch:
            pass
    assert (failure.code, failure.reason) == REVOKED


def _events() -> tuple[Any, Any]:
    new = event("kept", id="e1")
    return "events.StreamEvents", events_pb.StreamEventsRequest(event=new)


def _memories() -> tuple[Any, Any]:
    new = memory_pb.NewMemory(text="kept")
    return "memory.CreateMemories", memory_pb.CreateMemoriesRequest(memory=new)


@pytest.mark.parametrize("upload", [_events, _memories])
def test_an_upload_ends_when_its_key_is_revoked_though_its_client_goes_on(
    upload: Callable[[], tuple[str, Any]], leaked: Leaked
) -> None:
    rpc, message = upload()
    service, name = rpc.split(".")
    sending = Sending(message)
    stream = getattr(getattr(leaked.api, service), name)(iter(sending), timeout=PATIENCE_S)
    assert next(stream).acknowledged_count == 1
    leaked.revoke()
    with refused() as failure:
        for _ in stream:
            pass
    sending.end()
    assert (failure.code, failure.reason) == REVOKED


def test_a_learning_stream_ends_when_its_key_is_revoked(server: LocalServer) -> None:
    leaked = Leaked(server.keys, auth_pb2.KEY_SCOPE_LEARN)
    start = learning_pb.StartLearningSessionRequest(session_id="s", algorithm="linucb")
    leaked.api.learning.StartLearningSession(start)
    sending = Sending(learning_pb.ActRequest(session_id="s"))
    stream = leaked.api.learning.Act(iter(sending), timeout=PATIENCE_S)
    next(stream)
    leaked.revoke()
    with refused() as failure:
        for _ in stream:
            pass
    sending.end()
    assert (failure.code, failure.reason) == REVOKED


def test_other_keys_of_the_tenant_keep_their_streams(leaked: Leaked) -> None:
    watch = leaked.owner.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=PATIENCE_S)
    ending = leaked.api.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=PATIENCE_S)
    next(watch), next(ending)
    leaked.revoke()
    with refused():
        for _ in ending:
            pass
    record(leaked.owner, event("after", id="e1"))
    assert next(watch).event.id == "e1"
    watch.cancel()


def test_a_call_that_waits_for_an_operation_ends_when_its_key_is_revoked(
    tmp_path: Path,
) -> None:
    with local_server(tmp_path / "data") as own, Holds(own, "backup") as work:
        leaked = Leaked(own.keys, auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_ADMIN)
        started = own.keys.admin.admin.Backup(
            admin_pb.BackupRequest(tenant_id=leaked.owner.tenant_id)
        )
        assert work.begun.wait(PATIENCE_S)
        request = operation_pb.WaitOperationRequest(operation_id=started.operation.id)
        request.max_wait.FromSeconds(60)
        waiting = leaked.api.operation.WaitOperation.future(request, timeout=2 * PATIENCE_S)
        looked = get(leaked.api, started.operation.id)
        assert looked.state == operation_pb2.OPERATION_STATE_RUNNING
        leaked.revoke()
        with refused() as failure:
            waiting.result()
        assert (failure.code, failure.reason) == REVOKED
        work.go_on.set()


@pytest.mark.parametrize("begun", [True, False], ids=["running", "waiting"])
def test_an_operation_ends_with_the_key_that_started_it(begun: bool, tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as own, Holds(own, "backup") as work:
        leaked = Leaked(own.keys, auth_pb2.KEY_SCOPE_ADMIN)
        tenant = leaked.owner.tenant_id
        if not begun:
            own.keys.admin.admin.Backup(admin_pb.BackupRequest(tenant_id=tenant))
            assert work.begun.wait(PATIENCE_S)
        started = leaked.api.admin.Backup(admin_pb.BackupRequest(tenant_id=tenant))
        assert work.begun.wait(PATIENCE_S)
        leaked.revoke()
        request = operation_pb.WaitOperationRequest(operation_id=started.operation.id)
        request.max_wait.FromSeconds(20)
        ended = own.keys.admin.operation.WaitOperation(request).operation
        assert ended.state == operation_pb2.OPERATION_STATE_FAILED
        assert ended.error.code == grpc.StatusCode.UNAUTHENTICATED.value[0]
        assert "the API key that started it" in ended.error.message
        work.go_on.set()


def test_an_operation_that_has_begun_to_change_things_goes_on_to_its_end(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as own, Holds(own, "backup", commits=True) as work:
        leaked = Leaked(own.keys, auth_pb2.KEY_SCOPE_ADMIN)
        request = admin_pb.BackupRequest(tenant_id=leaked.owner.tenant_id)
        started = leaked.api.admin.Backup(request)
        assert work.begun.wait(PATIENCE_S)
        watch = leaked.api.events.WatchEvents
        leaked.revoke()
        with refused():  # By the time that a stream would have ended, it was told.
            for _ in watch(events_pb.WatchEventsRequest(), timeout=PATIENCE_S):
                pass
        own.application.key_watch.look()
        work.go_on.set()
        wait = operation_pb.WaitOperationRequest(operation_id=started.operation.id)
        wait.max_wait.FromSeconds(20)
        ended = own.keys.admin.operation.WaitOperation(wait).operation
        assert ended.state == operation_pb2.OPERATION_STATE_SUCCEEDED


def test_over_http_a_watch_ends_when_its_key_is_revoked(
    leaked: Leaked, server: LocalServer
) -> None:
    http = Http(server.http_address, leaked.secret)
    with http.client.stream("GET", "/api/stream") as answer:
        events = events_of(answer)
        next(events)
        leaked.revoke()
        *_, (_, kind, said) = events
    http.close()
    assert kind == "error"
    assert said["error"]["status"] == "UNAUTHENTICATED"


def test_over_http_an_upload_ends_when_its_key_is_revoked(
    leaked: Leaked, server: LocalServer
) -> None:
    line = b'{"event": {"sessionId": "s", "eventType": "message", "text": "kept"}}\n'
    host, port = server.http_address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as peer:
        peer.sendall(
            b"POST /api/imports/events HTTP/1.1\r\nhost: mneme\r\ntransfer-encoding: chunked\r\n"
            b"content-type: application/x-ndjson\r\n"
            b"authorization: Bearer " + leaked.secret.encode() + b"\r\n\r\n"
        )
        peer.sendall(b"%x\r\n%s\r\n" % (len(line), line))
        said = b""
        while b"acknowledgedCount" not in said:
            said += peer.recv(4096)
        leaked.revoke()
        while b"UNAUTHENTICATED" not in said:
            more = peer.recv(4096)
            assert more, "it was cut off without a word"
            said += more
