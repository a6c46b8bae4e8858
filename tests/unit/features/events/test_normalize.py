"""The text that an event without one gets from its payload."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme.importing.wording import tool_text
from mneme_server.features.events import normalize as events
from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.model import NewEvent
from mneme_server.features.events.normalize import MAX_DERIVED_TEXT, normalize


def text_of(payload: dict[str, object]) -> str:
    new = NewEvent(session_id="s", event_type=EventType.TOOL_RESPONSE, payload=payload)  # type: ignore[arg-type]
    return normalize(new, event_id="e", now_us=1).text


class Counted(list[object]):
    """A list that counts how often it is read."""

    reads = 0

    def __iter__(self) -> Iterator[object]:
        for item in super().__iter__():
            Counted.reads += 1
            yield item


@pytest.mark.parametrize("leaf", ["", "x", 1.5, [""]])
def test_no_more_of_a_payload_is_read_than_its_text_has_room_for(
    leaf: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "canonical_json", lambda value: "{}")  # It reads all, once.
    Counted.reads = 0
    assert text_of({"rows": Counted([leaf] * 100_000)})
    assert Counted.reads <= MAX_DERIVED_TEXT


LEAVES = st.text("ab ", max_size=900) | st.none() | st.integers(0, 99)
PAYLOADS = st.dictionaries(
    st.sampled_from(["origin", "rows", ""]),
    st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=9), max_leaves=60),
    min_size=1,
)


@given(PAYLOADS)
def test_the_text_is_the_beginning_of_all_the_payloads_words(payload: dict[str, object]) -> None:
    def words(key: str, item: object) -> list[str]:
        if isinstance(item, list):
            return [word for inner in item for word in words(key, inner)]
        return [] if item is None else [f"{key} {item}" if key else str(item)]

    everything = ", ".join(word for key, item in payload.items() for word in words(key, item))
    expected = f"tool_response: {everything}"[:MAX_DERIVED_TEXT] if everything else ""
    assert text_of(payload) == expected


def test_a_long_trace_keeps_its_end_which_says_what_went_wrong() -> None:
    frames = "".join(f'  File "app/step{n}.py", line {n}, in step{n}\n' for n in range(200))
    error = f"Traceback (most recent call last):\n{frames}KeyError: 'tenant_id'"
    new = NewEvent(session_id="s", event_type=EventType.ERROR, error=error)
    text = normalize(new, event_id="e", now_us=1).text
    assert len(text) == MAX_DERIVED_TEXT
    assert text.startswith("error: Traceback (most recent call last):")
    assert text.endswith("KeyError: 'tenant_id'")


@given(st.text("ab\n", max_size=3), st.integers(1, 2 * MAX_DERIVED_TEXT))
def test_what_is_recorded_and_what_is_imported_have_the_same_text(name: str, size: int) -> None:
    output = "".join(chr(ord("a") + n % 26) for n in range(size))
    new = NewEvent(
        session_id="s", event_type=EventType.TOOL_RESPONSE, name=name, payload={"result": output}
    )
    said = normalize(new, event_id="e", now_us=1).text
    assert said == tool_text("tool_response", name, output)
