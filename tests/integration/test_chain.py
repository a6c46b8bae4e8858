"""The hash chain: recomputed here from its description alone, and broken in every way."""

from __future__ import annotations

import hashlib
import sqlite3
import struct as struct_module
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import ListValue, Struct
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme.v1 import event_service_pb2 as events_pb
from support.api import Api
from support.making import (
    LLM_RESPONSE,
    at,
    event,
    list_events,
    record,
    session_of,
    struct,
    verify,
)
from support.server import LocalServer


def plain(value: Any) -> Any:
    """Return a Struct's value as JSON has it."""
    if isinstance(value, Struct | Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, ListValue | list):
        return [plain(item) for item in value]
    return value


def _without_negative_zero(number: float) -> float:
    """JSON has one zero: RFC 8785 writes -0 as 0."""
    return number + 0.0


def commitment_of(found: events_pb.Event) -> bytes:
    """Recompute an event's commitment as docs/adr/0009 describes it."""
    content = [
        found.id,
        found.session_id,
        found.agent_id,
        found.event_type,
        found.severity,
        str(found.timestamp.ToMicroseconds()),
        found.text,
        found.name,
        found.call_id,
        found.error,
        found.model,
        found.input_tokens,
        found.output_tokens,
        found.cost_usd,
        str(found.duration.ToMicroseconds()) if found.HasField("duration") else None,
        found.searchable,
        str(found.recorded_at.ToMicroseconds()),
        plain(found.payload),
        plain(found.metadata),
    ]
    return hashlib.sha256(found.salt + rfc8785.dumps(content)).digest()


def hash_of(prev_hash: str, sequence: int, commitment: bytes) -> str:
    """Recompute an event's hash from its place and its commitment alone, as docs/adr/0009 says."""
    hashed = hashlib.sha256()
    for part in (
        b"mneme.event.v2",
        b"\x02",
        bytes.fromhex(prev_hash),
        struct_module.pack(">Q", sequence),
        commitment,
    ):
        hashed.update(struct_module.pack(">I", len(part)))
        hashed.update(part)
    return hashed.hexdigest()


def assert_chained(api: Api, session_id: str) -> None:
    chain = sorted(list_events(api, session_id=session_id), key=lambda found: found.sequence)
    previous = ""
    for place, found in enumerate(chain, start=1):
        assert (found.sequence, found.prev_hash) == (place, previous)
        assert (found.hash_version, len(found.salt)) == (2, 16)
        assert found.commitment == commitment_of(found).hex()
        assert found.hash == hash_of(previous, place, bytes.fromhex(found.commitment))
        previous = found.hash
    assert session_of(api, session_id).head_hash == previous


def test_anyone_can_recompute_the_hashes_from_their_description(api: Api) -> None:
    record(
        api,
        event("naïve “text” 🙂\n\t\\", at=1.000001),
        event(
            "", kind=LLM_RESPONSE, agent_id="a", name="n", call_id="c", error="e", model="m",
            input_tokens=3, output_tokens=4, cost_usd=0.1 + 0.2, duration=Duration(nanos=1_000),
            payload={"b": 1, "a": [1.5, 2.0, None, True, {"z": "é"}], "big": 1e300},
            metadata={"k": -0.0}, at=0,
        ),
        event("third", cost_usd=5, at=2),
    )  # fmt: skip
    assert_chained(api, "s")
    assert verify(api).valid


def test_the_chain_stands_on_commitments_so_that_content_can_be_erased(api: Api) -> None:
    record(api, *[event(f"event {n}", at=n) for n in range(1, 6)])
    kept = [
        (found.prev_hash, found.sequence, bytes.fromhex(found.commitment), found.hash)
        for found in sorted(list_events(api, session_id="s"), key=lambda found: found.sequence)
    ]
    # Nothing of what happened is needed for this, and without the salt nobody can guess it.
    for prev_hash, sequence, commitment, found_hash in kept:
        assert found_hash == hash_of(prev_hash, sequence, commitment)
    assert kept[-1][3] == session_of(api, "s").head_hash


def test_equal_events_have_different_salts_and_commitments(api: Api) -> None:
    record(api, *[event("yes", f"s{n}", at=1) for n in range(20)])
    found = list_events(api)
    assert len({item.salt for item in found}) == len({item.commitment for item in found}) == 20


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False).map(_without_negative_zero)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
new_events = st.builds(
    lambda session, text, payload, cost, seconds: event(
        text, f"s{session}", at=seconds, payload=payload, cost_usd=cost
    ),
    st.integers(0, 2), text, st.dictionaries(text, json_values, max_size=3),
    st.floats(0, 1e6), st.integers(0, 100),
)  # fmt: skip


@settings(max_examples=25)
@given(batches=st.lists(st.lists(new_events, min_size=1, max_size=6), min_size=1, max_size=4))
def test_any_batches_make_chains_that_verify(
    server: LocalServer, batches: list[list[events_pb.NewEvent]]
) -> None:
    api = _shared_tenant(server)
    record(api, *(_in_new_session(item) for item in batches[0]))
    for batch in batches:
        record(api, *batch)
    for session_id in {item.session_id for batch in batches for item in batch}:
        assert_chained(api, session_id)
    assert verify(api).valid


_shared: dict[str, Api] = {}


def _shared_tenant(server: LocalServer) -> Api:
    # One for all examples: making tenants takes longer than recording events.
    return _shared.setdefault(server.address, server.keys.tenant("chain"))


def _in_new_session(given: events_pb.NewEvent) -> events_pb.NewEvent:
    copy = events_pb.NewEvent()
    copy.CopyFrom(given)
    return copy


@settings(max_examples=40)
@given(payload=st.dictionaries(text, json_values, max_size=4))
def test_any_json_comes_back_as_it_was_sent(server: LocalServer, payload: dict[str, Any]) -> None:
    api = _shared_tenant(server)
    sent = struct(**{}) if not payload else _struct(payload)
    (receipt,) = record(api, events_pb.NewEvent(
        session_id="json", event_type="custom", payload=sent))  # fmt: skip
    answer = api.events.ListEvents(
        events_pb.ListEventsRequest(session_id="json", descending=True, page_size=1)
    )
    assert answer.events[0].id == receipt.id
    assert answer.events[0].payload == sent


def _struct(payload: dict[str, Any]) -> Struct:
    made = Struct()
    made.update(payload)
    return made


@pytest.fixture
def tampered(server: LocalServer, api: Api) -> Callable[[str], events_pb.VerifyEventsResponse]:
    """Record two sessions, change the database behind the server's back, and verify."""
    record(api, *[event(f"event {n}", "s", id=f"e{n}", at=n) for n in range(1, 6)])
    record(api, *[event(f"other {n}", "other", id=f"o{n}", at=n) for n in range(1, 4)])
    assert verify(api).valid

    def change(sql: str) -> events_pb.VerifyEventsResponse:
        path = Path(server.data_dir) / "tenants" / api.tenant_id / "mneme.db"
        with sqlite3.connect(path, isolation_level=None) as connection:
            assert connection.execute(sql).rowcount > 0
        connection.close()
        only = verify(api, "other")
        assert only.valid, "the session that nobody touched still verifies"
        return verify(api)

    return change


TAMPERING = {
    "a text is changed": ("UPDATE events SET text = 'forged' WHERE id = 'e3'", "e3", 3),
    "a payload is changed": ("UPDATE events SET payload = '{\"a\":1}' WHERE id = 'e3'", "e3", 3),
    "metadata are changed": ("UPDATE events SET metadata = '{\"a\":1}' WHERE id = 'e2'", "e2", 2),
    "a time is changed": ("UPDATE events SET timestamp = timestamp + 1 WHERE id = 'e1'", "e1", 1),
    "a type is changed": ("UPDATE events SET event_type = 'tool_error' WHERE id = 'e4'", "e4", 4),
    "a severity is changed": ("UPDATE events SET severity = 5 WHERE id = 'e4'", "e4", 4),
    "an agent is changed": ("UPDATE events SET agent_id = 'x' WHERE id = 'e4'", "e4", 4),
    "a cost is changed": ("UPDATE events SET cost_usd = 1 WHERE id = 'e5'", "e5", 5),
    "tokens are changed": ("UPDATE events SET input_tokens = 1 WHERE id = 'e5'", "e5", 5),
    "a duration is made up": ("UPDATE events SET duration = 1 WHERE id = 'e5'", "e5", 5),
    "an error is made up": ("UPDATE events SET error = 'x' WHERE id = 'e2'", "e2", 2),
    "an id is changed": ("UPDATE events SET id = 'forged' WHERE id = 'e2'", "forged", 2),
    "a hash is changed": ("UPDATE events SET hash = 'ab' WHERE id = 'e2'", "e2", 2),
    "a time of recording is changed": (
        "UPDATE events SET recorded_at = recorded_at + 1 WHERE id = 'e2'", "e2", 2,
    ),
    "an event is hidden from recall": (
        "UPDATE events SET searchable = 0 WHERE id = 'e3'", "e3", 3,
    ),
    "a salt is changed": ("UPDATE events SET salt = zeroblob(16) WHERE id = 'e2'", "e2", 2),
    "a commitment is changed": (
        "UPDATE events SET commitment = zeroblob(32) WHERE id = 'e2'", "e2", 2,
    ),
    "another hash version is claimed": (
        "UPDATE events SET hash_version = 1 WHERE id = 'e2'", "e2", 2,
    ),
    "an unknown hash version is claimed": (
        "UPDATE events SET hash_version = 9 WHERE id = 'e2'", "e2", 2,
    ),
    "a link is changed": ("UPDATE events SET prev_hash = 'ab' WHERE id = 'e2'", "e2", 2),
    "an event in the middle is deleted": ("DELETE FROM events WHERE id = 'e3'", "e4", 3),
    "the first event is deleted": ("DELETE FROM events WHERE id = 'e1'", "e2", 1),
    "the last event is deleted": ("DELETE FROM events WHERE id = 'e5'", "", 5),
    "all events are deleted": ("DELETE FROM events WHERE session_id = 's'", "", 1),
    "two events change places": (
        "UPDATE events SET sequence = -sequence WHERE id IN ('e2', 'e3')", "e3", 1,
    ),
    "the sessions head is changed": ("UPDATE sessions SET head_hash = 'ab' WHERE id = 's'", "", 5),
    "the sessions count is changed": (
        "UPDATE sessions SET event_count = 4 WHERE id = 's'", "", 6,
    ),
}  # fmt: skip


@pytest.mark.on_sqlite("it changes the tenant's file")
@pytest.mark.parametrize("what", sorted(set(TAMPERING) - {"two events change places"}))
def test_tampering_is_found_and_the_first_broken_event_named_when(
    what: str, tampered: Callable[[str], events_pb.VerifyEventsResponse]
) -> None:
    sql, event_id, sequence = TAMPERING[what]
    found = tampered(sql)
    assert (found.valid, found.broken_count, found.sessions_checked) == (False, 1, 2)
    (broken,) = found.broken_chains
    assert (broken.session_id, broken.event_id, broken.sequence) == ("s", event_id, sequence)
    assert len(broken.reason) > 10


@pytest.mark.on_sqlite("it changes the tenant's file")
def test_two_events_that_changed_places_are_found(
    server: LocalServer, api: Api, tampered: Callable[[str], events_pb.VerifyEventsResponse]
) -> None:
    path = Path(server.data_dir) / "tenants" / api.tenant_id / "mneme.db"
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("UPDATE events SET sequence = 100 WHERE id = 'e2'")
        connection.execute("UPDATE events SET sequence = 2 WHERE id = 'e3'")
    connection.close()
    found = tampered("UPDATE events SET sequence = 3 WHERE id = 'e2'")
    (broken,) = found.broken_chains
    assert (broken.session_id, broken.event_id, broken.sequence) == ("s", "e3", 2)


def test_verifying_a_session_gives_its_length_and_head(api: Api) -> None:
    record(api, *[event(f"event {n}", "long") for n in range(700)])
    found = verify(api, "long")
    assert (found.valid, found.sessions_checked, found.events_checked) == (True, 1, 700)
    assert found.head_hash == session_of(api, "long").head_hash
    empty = api.events.StartSession(events_pb.StartSessionRequest(started_at=at(0))).session
    assert verify(api, empty.id).events_checked == 0
    assert verify(api).sessions_checked == 2
