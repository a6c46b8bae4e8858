"""How much one answer carries."""

from __future__ import annotations

from typing import Any

import pytest
from mneme_server.common.canonical import canonical_json
from mneme_server.common.pages import least_bytes
from mneme_server.edge.grpc.conversions import struct_of_object


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"": None},
        {"a": "\x01" * 1_000},
        {"\x1f" * 1_000: False},
        {"a": '"\\\n' * 1_000, "b": "ä€𝄞" * 100},
        {"a": [None, True, False, 0, -1.2345678901234567e-300, 2**53] * 100},
        {"a": [[], {}, [[]], {"": {}}, ""] * 100},
    ],
)
def test_an_answer_takes_no_fewer_bytes_than_is_said(value: dict[str, Any]) -> None:
    assert least_bytes(0, len(canonical_json(value))) <= struct_of_object(value).ByteSize()
