"""What an event's hash covers: everything that was recorded, a field that comes later too."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, get_type_hints

import pytest
from mneme_server.events.chain import commitment, event_hash
from mneme_server.events.model import Event

VALUES: dict[Any, tuple[Any, Any]] = {
    str: ("00", "01"),
    int: (2, 3),
    int | None: (None, 3),
    float: (0.5, 0.75),
    bool: (False, True),
    bytes: (b"0", b"1"),
}
"""For each type the value that an event has, and another."""

HINTS = get_type_hints(Event)
EVENT = Event(**{field.name: VALUES[HINTS[field.name]][0] for field in fields(Event)})
PLACE = {"sequence", "prev_hash", "commitment"}
"""What the hash covers besides the content."""
NOT_COVERED = {"cursor", "hash", "hash_version"}
"""What storage counts, the hash itself, and what the hash is made by."""


@pytest.mark.parametrize("name", sorted(HINTS.keys() - PLACE - NOT_COVERED))
def test_the_commitment_is_another_when_one_field_is(name: str) -> None:
    changed = replace(EVENT, **{name: VALUES[HINTS[name]][1]})
    assert commitment(changed) != commitment(EVENT)


@pytest.mark.parametrize("name", sorted(PLACE))
def test_the_hash_is_another_when_the_place_or_the_commitment_is(name: str) -> None:
    changed = replace(EVENT, **{name: VALUES[HINTS[name]][1]})
    assert event_hash(changed) != event_hash(EVENT)
