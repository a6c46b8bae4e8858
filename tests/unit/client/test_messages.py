"""Messages as plain values and as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st
from mneme import to_dict, to_json
from mneme._core.convert import fill
from mneme.errors import ArgumentError
from mneme.messages import Event, RecallResponse, Session, Severity
from mneme.plain import from_dict

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(-1e6, 1e6) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
_EVENTS = st.fixed_dictionaries(
    {
        "id": st.text(max_size=5),
        "event_type": st.sampled_from(["", "tool_error", "on_tool_end"]),
        "severity": st.sampled_from(Severity.values()),
        "timestamp": st.none() | st.datetimes(datetime(1970, 1, 1), timezones=st.just(UTC)),
        "payload": st.none() | st.dictionaries(st.text(max_size=5), _JSON, max_size=3),
        "input_tokens": st.integers(-(2**63), 2**63 - 1),
        "cost_usd": st.floats(allow_nan=False),
        "searchable": st.booleans(),
        "sequence": st.integers(0, 5),
    }
)


@given(_EVENTS, st.booleans())
def test_the_plain_values_are_protobuf_s_own_json_but_for_enums_and_integers(
    fields: dict[str, Any], defaults: bool
) -> None:
    event = Event()
    fill(event, fields)
    expected = json_format.MessageToDict(
        event, preserving_proto_field_name=True, always_print_fields_with_no_presence=defaults
    )
    for name, value in expected.items():
        descriptor = Event.DESCRIPTOR.fields_by_name[name]
        if descriptor.enum_type:
            short = value.split("_", 1)[-1].lower()
            expected[name] = None if short == "unspecified" else short
        elif descriptor.cpp_type in (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64):
            expected[name] = int(value)
    assert to_dict(event, defaults=defaults) == expected


@given(_EVENTS)
def test_json_is_read_back_as_the_same_message(fields: dict[str, Any]) -> None:
    event = Event()
    fill(event, fields)
    assert from_dict(json.loads(to_json(event)), Event()) == event


def test_an_enum_is_named_as_an_argument_names_it() -> None:
    event = Event(event_type="tool_error")
    assert to_dict(event)["event_type"] == "tool_error"
    assert to_dict(event)["severity"] is None


def test_protobuf_s_own_json_is_read_too() -> None:
    values = {"eventType": "tool_error", "sequence": "7"}
    assert from_dict(values, Event()) == Event(event_type="tool_error", sequence=7)


def test_what_is_no_message_is_refused_with_its_field() -> None:
    with pytest.raises(ArgumentError, match="severity"):
        from_dict({"severity": "nonsense"}, Event())


def test_json_has_its_keys_in_one_order_and_whole_numbers_as_such() -> None:
    session = Session(id="s")
    fill(session, {"metadata": {"trial": 3, "reward": 0.5, "at": [1, 2.0]}})
    text = to_json(session, defaults=False)
    assert text == '{"id": "s", "metadata": {"at": [1, 2], "reward": 0.5, "trial": 3}}'


def test_json_is_one_line_of_readable_text() -> None:
    text = to_json(Event(text="zwei\nZeilen, ein Grüß Gott"))
    assert "\n" not in text
    assert "Grüß" in text


def test_fields_that_were_never_set_are_told_apart_from_zero() -> None:
    answer = RecallResponse()
    answer.results.add()
    answer.results.add(similarity=0.0)
    first, second = to_dict(answer)["results"]
    assert "similarity" not in first
    assert second["similarity"] == 0.0


def test_a_struct_alone_becomes_its_object() -> None:
    session = Session()
    fill(session, {"metadata": {"a": None, "b": {"c": True}}})
    assert to_dict(session.metadata) == {"a": None, "b": {"c": True}}
    assert json.loads(to_json(session.metadata)) == {"a": None, "b": {"c": True}}
