"""The attacks of slow peers, by name: each is prepared for a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mneme.v1 import auth_pb2
from mneme.v1 import event_service_pb2 as events_pb

from support.attacks import Attack
from support.making import event, record
from support.server import ServerProcess
from support.slow_peers import unfinished_messages, unread_answers

Prepare = Callable[[ServerProcess], Sequence[Attack]]

CONNECTIONS = 4
_RECORD = "mneme.v1.EventService/RecordEvents"
_LIST = "mneme.v1.EventService/ListEvents"
_CHECK = "grpc.health.v1.Health/Check"
_EVENTS, _CHARACTERS = 40, 50_000
"""They make an answer of two megabytes."""


def _of_strangers(server: ServerProcess) -> Sequence[Attack]:
    return [unfinished_messages(server.address, _RECORD) for _ in range(CONNECTIONS)]


def _with_a_wrong_key(server: ServerProcess) -> Sequence[Attack]:
    return [unfinished_messages(server.address, _RECORD, "mn_wrong") for _ in range(CONNECTIONS)]


def _where_no_key_is_needed(server: ServerProcess) -> Sequence[Attack]:
    return [unfinished_messages(server.address, _CHECK) for _ in range(CONNECTIONS)]


def _of_another_tenant(server: ServerProcess) -> Sequence[Attack]:
    secret = server.keys.tenant("hostile").secret
    return [unfinished_messages(server.address, _RECORD, secret) for _ in range(CONNECTIONS)]


def _unread(server: ServerProcess) -> Sequence[Attack]:
    writer = server.keys.tenant("hostile")
    for _ in range(_EVENTS):
        record(writer, event("x" * _CHARACTERS))
    secret = str(server.keys.key(writer.tenant_id, auth_pb2.KEY_SCOPE_READ).secret)
    request = events_pb.ListEventsRequest(page_size=_EVENTS).SerializeToString()
    return [unread_answers(server.address, _LIST, secret, request) for _ in range(CONNECTIONS)]


ATTACKS: dict[str, Prepare] = {
    "messages of strangers that never end": _of_strangers,
    "messages with a wrong key that never end": _with_a_wrong_key,
    "messages that need no key and never end": _where_no_key_is_needed,
    "messages of another tenant that never end": _of_another_tenant,
    "answers that nobody reads": _unread,
}
