"""JSON that does not fit a message: what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from mneme.errors import ArgumentError
from mneme.plain import from_dict
from mneme.v1.event_service_pb2 import Event, RecordEventsRequest

NO_TIME = "timestamp: is no time with its zone, such as 2026-01-31T12:00:00Z"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sessionid": "s"}, "there is no field 'sessionid'; did you mean 'session_id'?"),
        ({"sesion_id": "s"}, "there is no field 'sesion_id'; did you mean 'session_id'?"),
        ({"timestamp": "yesterday"}, NO_TIME),
        ({"timestamp": "2026-01-31T12:00:00"}, NO_TIME),
        ({"timestamp": 5}, NO_TIME),
        ({"duration": "soon"}, "duration: is no duration in seconds, such as 1.5s"),
        ({"text": "\ud800"}, "text: Unpaired surrogate"),
    ],
)
def test_what_does_not_fit_is_said_with_its_field(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        from_dict(given, Event())
    assert str(refused.value) == said


def test_a_field_that_resembles_none_comes_with_those_that_there_are() -> None:
    with pytest.raises(ArgumentError) as refused:
        from_dict({"qwertz": 1}, RecordEventsRequest())
    assert (
        str(refused.value) == "there is no field 'qwertz'; there are events, wait_indexed, observed"
    )


def test_what_is_wrong_deep_inside_is_named_by_its_path() -> None:
    with pytest.raises(ArgumentError) as refused:
        from_dict({"events": [{"timestamp": "yesterday"}]}, RecordEventsRequest())
    assert str(refused.value).startswith("events")
    assert "timestamp: is no time with its zone" in str(refused.value)


@pytest.mark.parametrize("letter", ["n", "."])
def test_a_name_of_megabytes_is_neither_compared_nor_told_back(letter: str) -> None:
    for given in ({letter * 15_000_000: 1}, {"event_type": {letter * 15_000_000: 1}}):
        with pytest.raises(ArgumentError) as refused:
            from_dict(given, Event())
        assert 10 < len(str(refused.value)) < 2_000
