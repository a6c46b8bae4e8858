"""What an event's hash covers: everything that was recorded, a field that comes later too."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.common.canonical import canonical_json
from mneme_server.features.events.chain import commitment, content_of, event_hash
from mneme_server.features.events.model import Event

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


texts = st.text(st.characters(exclude_categories=["Cs"]))
counts = st.integers(0, 2**62)


@given(
    st.builds(
        replace,
        st.just(EVENT),
        id=texts,
        session_id=texts,
        agent_id=texts,
        event_type=texts,
        severity=st.integers(1, 5),
        timestamp_us=counts,
        text=texts,
        name=texts,
        call_id=texts,
        error=texts,
        model=texts,
        input_tokens=counts,
        output_tokens=counts,
        cost_usd=st.floats(0, 1e9) | st.integers(0, 10**9).map(float),
        duration_us=st.none() | counts,
        payload_json=st.just("{}") | texts.map(lambda text: canonical_json({"text": text})),
        searchable=st.booleans(),
        recorded_us=counts,
    )
)
def test_the_content_is_spelled_as_canonical_json(event: Event) -> None:
    whole = event.cost_usd.is_integer() and event.cost_usd < 2**53
    fields_of_it = canonical_json(
        [
            event.id,
            event.session_id,
            event.agent_id,
            event.event_type,
            event.severity,
            str(event.timestamp_us),
            event.text,
            event.name,
            event.call_id,
            event.error,
            event.model,
            event.input_tokens,
            event.output_tokens,
            int(event.cost_usd) if whole else event.cost_usd,
            None if event.duration_us is None else str(event.duration_us),
            event.searchable,
            str(event.recorded_us),
        ]
    )
    assert content_of(event) == f"{fields_of_it[:-1]},{event.payload_json},{event.metadata_json}]"
