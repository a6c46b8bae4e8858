"""Resources and prompts."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from support.hosts import text_of

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", autouse=True)
async def worked(host: Client) -> str:
    """A session, a lesson and a handover to read about; returns the lesson's id."""
    calls: list[tuple[str, dict[str, Any]]] = [
        (
            "agentlens_session_start",
            {"sessionId": "a/b..c", "agentId": "coder-1", "project": "web shop"},
        ),
        (
            "agentlens_log_event",
            {"sessionId": "a/b..c", "eventType": "tool_error", "name": "npm", "error": "EACCES"},
        ),
        ("sleep", {"session_id": "a/b..c", "progress": ["Made npm install work again"]}),
        (
            "agentlens_learn",
            {"action": "save", "title": "Own the folder", "content": "Check who owns it."},
        ),
    ]
    result = None
    for name, arguments in calls:
        result = await host.call_tool(name, arguments)
        assert not result.is_error, text_of(result)
    assert result is not None
    assert result.structured_content is not None
    return str(result.structured_content["lesson"]["id"])


async def read(host: Client, uri: str) -> str:
    (page,) = (await host.read_resource(uri)).contents
    assert page.mime_type == "text/markdown"
    return str(page.text)  # type: ignore[union-attr]


async def test_resources_are_listed(host: Client) -> None:
    listed = {str(one.uri) for one in (await host.list_resources()).resources}
    assert listed == {"mneme://sessions", "mneme://lessons", "mneme://agents", "mneme://handover"}
    templates = (await host.list_resource_templates()).resource_templates
    assert {one.uri_template for one in templates} == {
        "mneme://sessions/{session_id}",
        "mneme://lessons/{lesson_id}",
        "mneme://timeline/{project}",
        "mneme://handover/{project}",
        "mneme://context/{topic}",
    }
    assert all(one.description for one in templates)


async def test_the_pages_show_sessions_lessons_agents_and_the_timeline(
    host: Client, worked: str
) -> None:
    assert "`a/b..c`" in await read(host, "mneme://sessions")
    assert "Own the folder" in await read(host, "mneme://lessons")
    assert "Check who owns it." in await read(host, f"mneme://lessons/{worked}")
    assert "`coder-1`: 1 session" in await read(host, "mneme://agents")
    timeline = await read(host, "mneme://timeline/web%20shop")
    assert "Made npm install work again" in timeline


async def test_a_session_with_an_odd_id_has_a_page(host: Client) -> None:
    page = await read(host, "mneme://sessions/a%2Fb..c")
    assert "# Session a/b..c" in page
    assert "npm: EACCES" in page


async def test_a_page_that_does_not_exist_says_so(host: Client) -> None:
    with pytest.raises(MCPError, match="no lesson 'missing'"):
        await host.read_resource("mneme://lessons/missing")
    with pytest.raises(MCPError):
        await host.read_resource("mneme://dreams")


async def test_the_start_of_a_session_begins_with_what_is_known(host: Client) -> None:
    arguments = {"project": "web shop", "task": "npm install fails"}
    (message,) = (await host.get_prompt("start_of_session", arguments)).messages
    text = message.content.text  # type: ignore[union-attr]
    assert "Made npm install work again" in text
    assert "The task: npm install fails" in text


async def test_the_other_prompts_name_the_tools_to_call(host: Client) -> None:
    names = {prompt.name for prompt in (await host.list_prompts()).prompts}
    assert names >= {"start_of_session", "reflect", "end_of_session"}
    (reflect,) = (await host.get_prompt("reflect", {"project": "shop"})).messages
    assert '{"analysis": "error_patterns", "project": "shop"}' in reflect.content.text  # type: ignore[union-attr]
    (end,) = (await host.get_prompt("end_of_session", {"session_id": "s-1"})).messages
    assert 'sleep with session_id "s-1"' in end.content.text  # type: ignore[union-attr]
