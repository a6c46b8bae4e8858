"""What was learned, as bytes: comes back as it was, and runs nothing when it is read."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.learning.sessions.serialization import decoded, encoded

_LEAVES = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text()
_NAMES = st.text() | st.sampled_from(["$array", "$", "$$array", "json"])
_JSON = st.recursive(
    _LEAVES, lambda inner: st.lists(inner) | st.dictionaries(_NAMES, inner), max_leaves=20
)


@given(st.dictionaries(_NAMES, _JSON), st.lists(st.floats(width=32), max_size=5))
def test_json_and_arrays_come_back_as_they_were(
    value: dict[str, Any], numbers: list[float]
) -> None:
    arrays = {"weights": np.array(numbers, np.float32), "flags": np.array([True, False])}
    found = decoded(encoded({"said": value, "arrays": [arrays]}))
    assert found["said"] == value
    for name, array in arrays.items():
        back = found["arrays"][0][name]
        assert (back.dtype, back.tobytes()) == (array.dtype, array.tobytes())


class _Runs:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._path,)


def test_code_that_hides_in_an_array_is_refused_and_not_run(tmp_path: Path) -> None:
    trap = tmp_path / "it-ran"
    buffer = io.BytesIO()
    text = np.frombuffer(b'{"weights":{"$array":"0_weights"}}', np.uint8)
    hidden: Any = {"json": text, "0_weights": np.array([_Runs(trap)], object)}
    np.savez(buffer, **hidden)

    with pytest.raises(ValueError, match="no archive of what was learned"):
        decoded(buffer.getvalue())

    assert not trap.exists()
    with np.load(io.BytesIO(buffer.getvalue()), allow_pickle=True) as archive:
        assert archive["0_weights"].shape == (1,)
    assert trap.exists()  # Had it been allowed to.


@pytest.mark.parametrize("kept", [0, 1, 100, -1])
def test_half_an_archive_is_refused(kept: int) -> None:
    with pytest.raises(ValueError, match="no archive of what was learned"):
        decoded(encoded({"weights": np.arange(100.0)})[:kept])


def test_what_is_no_mapping_is_refused() -> None:
    buffer = io.BytesIO()
    np.savez(buffer, json=np.frombuffer(b"[]", np.uint8))
    with pytest.raises(ValueError, match="no mapping"):
        decoded(buffer.getvalue())
