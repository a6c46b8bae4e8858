"""Many memories in one call, of which one is refused."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from support.hosts import text_of

pytestmark = pytest.mark.anyio
TOO_LONG = "x" * 70_000


@pytest.mark.parametrize("batch_size", [1, 2, 100])
async def test_a_batch_says_which_of_all_its_items_is_refused_and_how_many_are_stored(
    host: Client, batch_size: int
) -> None:
    texts = [f"Fact {number} of {batch_size}" for number in range(3)]
    items: list[dict[str, Any]] = [{"text": text} for text in [*texts, TOO_LONG]]
    result = await host.call_tool(
        "agentdb_insert_batch", {"items": items, "batch_size": batch_size}
    )
    assert result.is_error
    assert "items[3].text" in text_of(result)
    assert "Stored before it failed: the first 3." in text_of(result)
    error = (result.structured_content or {})["error"]
    assert error["fields"][0]["name"] == error["details"]["parameter"] == "items[3].text"
    assert error["details"]["message_index"] == "3"
    assert error["details"]["recorded"] == "3"


async def test_a_batch_says_which_of_all_its_items_cannot_be_sent(host: Client) -> None:
    items = [{"text": "Small"}, {"text": "Large", "metadata": {"n": 2**70}}]
    result = await host.call_tool("agentdb_insert_batch", {"items": items, "batch_size": 1})
    assert "items[1].metadata.n: 1180591620717411303424 does not fit" in text_of(result)
    assert "Stored before it failed: the first 1." in text_of(result)
    error = (result.structured_content or {})["error"]
    assert error["code"] == "INVALID_ARGUMENT"
    assert error["details"] == {
        "message_index": "1",
        "parameter": "items[1].metadata.n",
        "recorded": "1",
    }
