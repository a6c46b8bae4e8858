"""Files taken apart into records."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme.importing.reading import Broken, Record, read_records

MESSAGES = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


def read(data: bytes | str) -> list[Record | Broken]:
    raw = data.encode() if isinstance(data, str) else data
    return list(read_records(io.BytesIO(raw), "f"))


def values(data: bytes | str) -> list[Any]:
    return [item.value for item in read(data) if isinstance(item, Record)]


def broken(data: bytes | str) -> list[tuple[int, int, str]]:
    return [
        (item.place.record, item.place.line, item.reason)
        for item in read(data)
        if isinstance(item, Broken)
    ]


RECORDS = [{"id": 1, "messages": MESSAGES}, {"id": 2, "text": "zwei\nZeilen"}]


@pytest.mark.parametrize("indent", [None, 0, 1, 4])
def test_a_json_list_is_its_elements(indent: int | None) -> None:
    assert values(json.dumps(RECORDS, indent=indent)) == RECORDS


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", ""])
def test_json_lines_are_one_record_a_line(end: str) -> None:
    text = (end or "\n").join(json.dumps(record) for record in RECORDS) + end
    assert values(text) == RECORDS


def test_json_lines_may_be_bare_lists_of_messages() -> None:
    lines = json.dumps(MESSAGES) + "\n" + json.dumps(MESSAGES) + "\n"
    assert values(lines) == [MESSAGES, MESSAGES]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_file_that_is_one_conversation_is_one_record(indent: int | None) -> None:
    assert values(json.dumps(MESSAGES, indent=indent)) == [MESSAGES]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_conversations_is_one_record_each(indent: int | None) -> None:
    assert values(json.dumps([MESSAGES, MESSAGES], indent=indent)) == [MESSAGES, MESSAGES]


@pytest.mark.parametrize("indent", [None, 2])
def test_one_object_is_one_record(indent: int | None) -> None:
    assert values(json.dumps(RECORDS[0], indent=indent)) == [RECORDS[0]]


def test_objects_one_after_the_other_over_several_lines_are_records() -> None:
    text = "\n".join(json.dumps(record, indent=2) for record in RECORDS)
    assert values(text) == RECORDS


def test_a_byte_order_mark_and_leading_blank_lines_are_skipped() -> None:
    text = "\n\n" + json.dumps(RECORDS, indent=1)
    assert values(b"\xef\xbb\xbf" + text.encode()) == RECORDS
    assert values(b"\xef\xbb\xbf" + json.dumps(RECORDS[0]).encode()) == [RECORDS[0]]


def test_an_empty_file_holds_nothing() -> None:
    assert read("") == read(" \n \n") == []


def test_places_name_record_and_line() -> None:
    records = read(json.dumps(RECORDS, indent=1))
    assert [(r.place.record, r.place.line) for r in records] == [(1, 2), (2, 15)]
    assert str(records[0].place) == "f: record 1, line 2"
    lines = read("\n" + json.dumps(RECORDS[0]) + "\n\n" + json.dumps(RECORDS[1]) + "\n")
    assert [(r.place.record, r.place.line) for r in lines] == [(1, 2), (2, 4)]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_broken_line_is_reported_and_the_others_are_read(position: int) -> None:
    lines = [json.dumps(record) for record in [*RECORDS, {"id": 3}]]
    good = [json.loads(line) for i, line in enumerate(lines) if i != position]
    lines[position] = lines[position][:-4]
    text = "\n".join(lines)
    assert values(text) == good
    ((record, line, reason),) = broken(text)
    assert (record, line) == (position + 1, position + 1)
    assert reason.startswith("not JSON: ")


@pytest.mark.parametrize("written", ["{%s}\n{%s}", "[{%s},\n{%s}]", "[\n{%s},\n{%s}\n]\n"])
@pytest.mark.parametrize(
    ("odd", "kept"),
    [
        (b'"a":"caf\xe9"', "caf\udce9"),
        (b'"a":"tab\tand\x01"', "tab\tand\x01"),
        (b'"a":"\\ud83d"', "\ud83d"),
        (b'"a":NaN', None),
        (b'"a":-Infinity', None),
        (b'"a":' + b"9" * 5000, "9" * 5000),
    ],
)
def test_what_a_broken_tool_wrote_costs_its_value_and_not_its_record(
    written: str, odd: bytes, kept: Any
) -> None:
    first, second = b'"a":1', odd
    data = written.encode().replace(b"%s", first, 1).replace(b"%s", second, 1)
    assert values(data) == [{"a": 1}, {"a": kept}]
    assert broken(data) == []


def test_an_element_of_a_list_that_is_broken_does_not_cost_those_after_it() -> None:
    text = '[{"a": 1},\n{"a": [1 2], "b": "]}"},\n{"a": 3}\n]'
    assert values(text) == [{"a": 1}, {"a": 3}]
    ((record, line, reason),) = broken(text)
    assert (record, line) == (2, 2)
    assert reason.startswith("not JSON: ")


def test_json_nested_beyond_reading_is_reported() -> None:
    deep = "[" * 200_000
    assert values(f'{{"a": {deep}}}\n{{"a": 1}}\n') == [{"a": 1}]


def test_what_precedes_the_break_of_a_list_is_read() -> None:
    text = json.dumps(RECORDS, indent=1)[:-20]
    assert values(text) == RECORDS[:1]
    ((record, line, reason),) = broken(text)
    assert (record, line) == (2, 15)
    assert reason.endswith("nothing after it can be read")


def test_a_list_that_is_not_closed_is_reported_after_its_records() -> None:
    text = json.dumps(RECORDS, indent=1)[:-2]
    assert values(text) == RECORDS
    assert [reason for *_, reason in broken(text)] == ["the list is not closed"]


def test_a_conversation_cut_off_in_the_middle_is_one_broken_record() -> None:
    text = json.dumps([*MESSAGES, *MESSAGES], indent=1)[:-20]
    assert values(text) == []
    assert len(broken(text)) == 1


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_message_that_cannot_be_read_costs_its_conversation_nothing_else(
    at: int, indent: int | None
) -> None:
    said = [{"role": "user", "content": f"word {n}"} for n in range(4)]
    text = json.dumps(said, indent=indent).replace(f'"word {at}"', "word")
    assert values(text) == [[*said[:at], *said[at + 1 :]]]
    ((record, _, reason),) = broken(text)
    assert record == at + 1
    assert reason.startswith("not JSON: ")


def test_a_large_file_of_lines_is_not_read_at_once() -> None:
    class Counting(io.BytesIO):
        taken = 0

        def __next__(self) -> bytes:
            line = super().__next__()
            Counting.taken += len(line)
            return line

        def read(self, size: int | None = -1) -> bytes:
            raise AssertionError("the whole file was asked for")

    stream = Counting(b'{"a": 1}\n' * 1000)
    records = read_records(stream, "f")
    for _ in range(10):
        next(records)
    assert Counting.taken < 200


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.lists(st.dictionaries(st.text(), _JSON, max_size=3), min_size=1, max_size=4)


@given(_OBJECTS, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_list_and_every_file_of_lines_is_read_back(
    records: list[dict[str, Any]], indent: int | None, ascii_only: bool
) -> None:
    if all("role" in record for record in records):
        return
    assert values(json.dumps(records, indent=indent, ensure_ascii=ascii_only)) == records
    lines = "\n".join(json.dumps(record, ensure_ascii=ascii_only) for record in records)
    assert values(lines) == records


@given(_OBJECTS, st.data())
def test_damage_never_loses_a_record_before_it(records: list[dict[str, Any]], data: Any) -> None:
    lines = [json.dumps(record) for record in records]
    cut = data.draw(st.integers(0, len(lines) - 1))
    lines[cut] = '{"unfinished'
    found = values("\n".join(lines))
    assert found[:cut] == records[:cut]
