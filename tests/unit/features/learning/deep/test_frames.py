"""Arrays and JSON as bytes."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import numpy as np
import pytest
from mneme_server.features.learning.deep import frames

VALUE: dict[str, Any] = {
    "name": "weights",
    "none": None,
    "actors": {"$array": 1.5, "$": {"$$x": [0, "float32", [1]]}, "": 0},
    "deep": {"list": [1, 2.5, {"inner": np.arange(6, dtype=np.float32).reshape(2, 3)}]},
    "empty": np.zeros((0, 4), np.int64),
    "flags": np.array([True, False]),
    "one": np.array(3.5),
    "turned": np.arange(6, dtype=np.float64).reshape(2, 3).T,
}


def test_what_is_packed_comes_back_as_it_was_and_can_be_written_to() -> None:
    found = frames.unpack(frames.pack(VALUE))

    assert found["deep"]["list"][:2] == [1, 2.5]
    assert found["none"] is None
    assert found["actors"] == VALUE["actors"]
    for name in ("empty", "flags", "one", "turned"):
        assert found[name].dtype == VALUE[name].dtype
        assert np.array_equal(found[name], VALUE[name])
    found["turned"][0, 0] = 9.0
    assert np.array_equal(found["deep"]["list"][2]["inner"], [[0, 1, 2], [3, 4, 5]])


def test_frames_are_read_one_after_the_other_until_the_end() -> None:
    pipe = io.BytesIO(frames.pack({"n": 1}) + frames.pack({"n": 2}) + frames.pack({"n": 3})[:-1])

    assert frames.read(pipe.read) == {"n": 1}
    assert frames.read(pipe.read) == {"n": 2}
    assert frames.read(pipe.read) is None


def test_no_damage_is_taken_for_a_frame_of_another_content() -> None:
    whole = frames.pack(VALUE)
    for end in range(0, len(whole), 7):
        with pytest.raises(ValueError, match="frame"):
            frames.unpack(whole[:end])


@pytest.mark.parametrize(
    "told",
    [[0, "object", [1]], [0, "float64", [10**9]], [10**9, "float64", [1]], [0, "float64", [-5]]],
)
def test_an_array_that_is_not_there_or_would_hold_objects_is_refused(told: list[Any]) -> None:
    line = json.dumps({"x": {"$array": told}}).encode()
    frame = struct.pack("<QI", 4 + len(line) + 8, len(line)) + line + bytes(8)

    with pytest.raises(ValueError, match=r"frame|travel|buffer"):
        frames.unpack(frame)


def test_a_frame_that_says_it_is_huge_is_not_read() -> None:
    with pytest.raises(ValueError, match="says that it has"):
        frames.read(io.BytesIO(struct.pack("<Q", 1 << 40)).read)
