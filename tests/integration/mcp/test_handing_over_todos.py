"""`sleep` with the todo list that a coding agent keeps, as it is."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from support.hosts import text_of

pytestmark = pytest.mark.anyio


def todo(content: str, status: str, **others: Any) -> dict[str, Any]:
    return {"content": content, "status": status, **others}


async def test_of_an_agents_todo_list_what_is_open_and_what_is_done_is_handed_over(
    host: Client,
) -> None:
    given = [
        todo("Decode tokens", "completed", activeForm="Decoding tokens"),
        todo("Refresh tokens", "in_progress", activeForm="Refreshing tokens", priority=1),
        todo("Write the guide", "pending", id="3", priority="high"),
        todo("Rotate keys daily", "cancelled", id=4, priority="low"),
        {"content": "Ask for a review"},
    ]
    result = await host.call_tool(
        "sleep", {"session_id": "listed", "completed_todos": ["Decode tokens"], "todos": given}
    )
    assert not result.is_error, text_of(result)
    handover = (result.structured_content or {})["handover"]
    assert handover["completed_todos"] == ["Decode tokens"]
    assert handover["open_todos"] == [
        {"content": "Refresh tokens", "priority": 1},
        {"content": "Write the guide", "priority": 2},
        {"content": "Ask for a review", "priority": 0},
    ]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (todo("x", "paused"), "open_todos[1].status: should be 'pending', 'in_progress', "),
        (todo("x", "pending", priority="dire"), "open_todos[1].priority: should be a valid int"),
        (todo("x", "pending", owner="ann"), "there is no argument 'open_todos[1].owner'"),
        (todo("", "pending"), "open_todos[1].content: "),
        (todo("", "completed"), "open_todos[1].content: "),
    ],
)
async def test_a_todo_that_cannot_be_taken_is_named_by_its_place_in_the_whole_list(
    host: Client, fault: dict[str, Any], said: str
) -> None:
    given = {"session_id": "refused", "todos": [todo("Decode tokens", "completed"), fault]}
    result = await host.call_tool("sleep", given)
    assert result.is_error
    assert said in text_of(result)
