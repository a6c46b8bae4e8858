"""Kinds of memory: what a capability may bring, and what is refused when the server starts."""

from __future__ import annotations

from typing import Any

import pytest
from mneme.v1 import event_service_pb2
from mneme_server.capability import Capability, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.corpus.document import MAX_KINDS, Document, MemoryKind
from mneme_server.engine.store.memories import MemoryKinds
from mneme_server.engine.store.unit import TenantSchema
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.events.store.events import event_details
from mneme_server.features.learn.model import LESSON

NOTE = MemoryKind("note", spoken=frozenset({"aside"}), failed=frozenset({"mistake"}))


@pytest.mark.parametrize("name", ["", "Event", "two words", "_note", "note2", "n" * 33, "note\n"])
def test_a_kind_has_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="is no name for a kind of memory"):
        MemoryKind(name)


def test_two_capabilities_may_not_bring_a_kind_of_one_name() -> None:
    with pytest.raises(ValueError, match="two kinds of memory are called event"):
        TenantSchema.of(kinds=[{EVENT: event_details}, {MemoryKind("event"): None}])


def test_there_may_be_as_many_kinds_as_an_index_can_number() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    many = [MemoryKind(a + b) for a in letters for b in letters]
    assert len(MemoryKinds([dict.fromkeys(many[:MAX_KINDS])]).by_name) == MAX_KINDS
    with pytest.raises(ValueError, match="256 kinds of memory at most"):
        MemoryKinds([dict.fromkeys(many[: MAX_KINDS + 1])])


@pytest.mark.parametrize(
    ("kinds", "words"),
    [({}, "none, but .* say event"), ({EVENT: None, LESSON: None}, "event, lesson, but .* event")],
)
def test_the_schema_and_the_capability_must_say_the_same_kinds(
    kinds: dict[MemoryKind, None], words: str
) -> None:
    events = event_service_pb2.DESCRIPTOR.services_by_name["EventService"]
    parts = Parts(services=[Service(events, object())])
    host: Any = None
    with pytest.raises(LookupError, match=words):
        Capability(name="events", build=lambda _: parts, kinds=kinds).start(host)
    right = Capability(name="events", build=lambda _: parts, kinds={EVENT: None})
    assert right.start(host) is parts


def test_its_kind_says_whether_a_memory_is_spoken_or_reports_a_failure() -> None:
    def note(category: str) -> Document:
        return Document(0, NOTE, "1", "text", 0, category=category)

    assert [(note(c).spoken, note(c).failed) for c in ("aside", "mistake", "message")] == [
        (True, False),
        (False, True),
        (False, False),
    ]
