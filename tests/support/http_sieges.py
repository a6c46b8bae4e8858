"""Which attacks over HTTP a server must bear."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mneme.v1 import auth_pb2

from support import http_attacks as attacks
from support.api import Api
from support.attacks import Attack, Siege
from support.making import lesson

JSON = "application/json"
_LESSONS = 100
_LESSON_BYTES = 60_000


def _strangers(path: str, kind: str, key: str = "mn_nobody") -> Callable[[Siege], Attack]:
    return lambda siege: attacks.unfinished_bodies(siege.server.http_address, path, kind, key)


def _of_another_tenant(siege: Siege) -> Attack:
    """The bodies of one who has a key, and so a share of the room."""
    key = siege.server.keys.tenant("attacker").secret or ""
    return attacks.unfinished_bodies(siege.server.http_address, "/api/lessons", JSON, key)


def _reader(siege: Siege) -> str:
    """Return a key that may only read, of a tenant that has much to read."""
    api: Api = siege.server.keys.tenant("attacker")
    for number in range(_LESSONS):
        words = f"{number} " + "x" * _LESSON_BYTES
        lesson(api, f"tides {number}", words, lesson_id=f"lesson-{number}")
    return siege.server.keys.key(api.tenant_id, auth_pb2.KEY_SCOPE_READ).secret or ""


def _writer(siege: Siege) -> str:
    return siege.server.keys.tenant("attacker").secret or ""


ATTACKS: Mapping[str, Callable[[Siege], Attack]] = {
    "unfinished bodies over REST": _strangers("/api/lessons", JSON),
    "unfinished bodies over Connect": _strangers("/mneme.v1.LearnService/CreateLesson", JSON),
    "unfinished telemetry": _strangers("/v1/traces", "application/x-protobuf"),
    "unfinished bodies of another tenant": _of_another_tenant,
    "endless trailers": lambda siege: attacks.endless_trailers(siege.server.http_address),
    "idle connections": lambda siege: attacks.idle_connections(siege.server.http_address),
    "heads of many headers": lambda siege: attacks.many_headers(siege.server.http_address),
    "answers that nobody reads": lambda siege: attacks.unread_answers(
        siege.server.http_address, _reader(siege)
    ),
    "pipelined requests": lambda siege: attacks.pipelined_requests(
        siege.server.http_address, _writer(siege)
    ),
    "uploads of blank lines": lambda siege: attacks.blank_lines(
        siege.server.http_address, _writer(siege)
    ),
}
"""By name, what makes each, of a server that is already besieged."""
