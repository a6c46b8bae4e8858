"""Transcripts that are not what their format says: whatever stands anywhere, the import goes on."""

from __future__ import annotations

import io
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme.importing.run import Importer
from support.transcripts.written import WRITERS
from unit.cli.kept import Kept

STRANGE = (
    None,
    7,
    -1.5,
    True,
    "",
    "x",
    [],
    {},
    [7],
    [None],
    {"type": 7},
    {"role": []},
    2**70,
    1e300,
)


@cache
def written(form: str, seed: int) -> tuple[str, ...]:
    """The records of a session, each as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        (file, *_) = WRITERS[form](Path(folder), seed)
        text = file.read_text()
    return tuple(text.splitlines()) if file.suffix == ".jsonl" else (text,)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(item, (*path, key))
    return found


def damaged(record: Any, path: tuple[Any, ...], strange: Any) -> Any:
    *before, last = path
    inner = record
    for key in before:
        inner = inner[key]
    inner[last] = strange
    return record


@pytest.mark.parametrize("form", sorted(WRITERS))
@given(st.data())
def test_whatever_stands_anywhere_in_a_file_the_rest_of_it_goes_in(form: str, data: Any) -> None:
    records = list(written(form, data.draw(st.sampled_from([3, 5, 8]))))
    number = data.draw(st.integers(0, len(records) - 1))
    record = json.loads(records[number])
    path = data.draw(st.sampled_from(places(record)))
    records[number] = json.dumps(damaged(record, path, data.draw(st.sampled_from(STRANGE))))
    kept = Kept()
    importer = Importer(kept, form=form, complete=True)
    importer.add_stream(io.BytesIO("\n".join(records).encode()), "-")
    assert len(importer.totals.broken) <= 1
    if len(records) > 1:  # Of lines only the damaged one may be lost; a document may be as one.
        assert len(kept.events) > len(records) / 4
