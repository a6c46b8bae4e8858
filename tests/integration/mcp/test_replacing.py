"""What `agentlens_recall` says of memories that replaced others."""

from __future__ import annotations

import pytest
from mcp import Client
from support.hosts import text_of

pytestmark = pytest.mark.anyio


async def test_a_recalled_memory_that_superseded_others_is_said_to_have_replaced_them(
    host: Client,
) -> None:
    last = ""
    for version in ("5", "6", "7"):
        given = {
            "text": f"The quarterly report is due on May {version}",
            "supersedes": [last] if last else [],
        }
        stored = await host.call_tool("agentdb_insert", given)
        assert not stored.is_error, text_of(stored)
        last = (stored.structured_content or {})["vector_id"]
    found = await host.call_tool(
        "agentlens_recall", {"query": "When is the quarterly report due?", "scope": "memories"}
    )
    (newest,) = [line for line in text_of(found).splitlines() if "quarterly" in line]
    assert "May 7" in newest
    assert "replaced the one from" in newest
    assert "similar" not in text_of(found)
