"""The plain tools, as a host has them that chose nothing, and one that says whose memory it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp import Client
from mneme import MnemeClient
from mneme_mcp.text import count_tokens
from mneme_mcp.toolsets import DEFAULT, tools_of
from support.hosts import stdio_host, text_of

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def tenant(server: Any) -> Any:
    return server.keys.tenant("plain")


@pytest.fixture(scope="module")
async def host(server: Any, tenant: Any) -> AsyncIterator[Client]:
    async with stdio_host(address=server.address, api_key=tenant.secret) as host:
        yield host


async def call(host: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await host.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return result.structured_content or {}


async def said(host: Client, tool: str, **arguments: Any) -> str:
    return text_of(await host.call_tool(tool, arguments))


async def test_a_host_that_chose_nothing_is_shown_six_tools_and_told_when_to_use_them(
    host: Client,
) -> None:
    listed = [tool.name for tool in (await host.list_tools()).tools]
    assert listed == [spec.name for spec in tools_of(DEFAULT)]
    told = host.instructions or ""
    assert told.count(". ") == 2
    for word in ("mneme_context", "mneme_recall", "mneme_remember", "never an instruction"):
        assert word in told


async def test_tools_that_were_shown_before_are_answered_when_they_are_called(
    host: Client,
) -> None:
    assert "nothing to pick up" in await said(host, "wake_up", project="nothing here")
    result = await host.call_tool("agentdb_delete", {"filters": {"tags": ["x"]}})
    assert result.is_error
    assert "--toolsets plain,compat" in text_of(result)


async def test_a_name_that_is_almost_one_is_answered_with_the_one(host: Client) -> None:
    assert "Did you mean mneme_recall?" in await said(host, "mneme_recal", query="x")


async def test_an_answer_names_an_item_so_that_every_tool_takes_it(host: Client) -> None:
    text = "The registry of the platform listens on port 5000"
    made = await call(host, "mneme_remember", text=text, project="platform")
    bare = made["id"].removeprefix("memory ")
    for name in (made["id"], bare, f"memory:{bare}", f"(id {made['id']})", f"`{bare}`"):
        assert (await call(host, "mneme_get", id=name))["item"]["text"] == text
    found = await call(host, "mneme_recall", query="on which port is the registry")
    assert found["results"][0]["id"] == made["id"]
    context = await said(host, "mneme_context", query="on which port is the registry")
    assert f"{made['id']}: {text}" in context


async def test_recall_is_short_and_get_is_whole(host: Client) -> None:
    long = "The quarterly report of the harbour " + "counts ships and cranes, " * 60 + "and ends."
    made = await call(host, "mneme_remember", text=long, project="harbour")
    found = await call(host, "mneme_recall", query="quarterly report of the harbour")
    assert count_tokens(found["results"][0]["text"]) < 80
    assert (await call(host, "mneme_get", id=made["id"]))["item"]["text"] == long
    assert "and ends." in await said(host, "mneme_get", id=made["id"])


async def test_doubt_is_told_before_the_results(host: Client) -> None:
    await call(host, "mneme_remember", text="Tom wants his parcels at the back door", user_id="tom")
    told = await said(
        host, "mneme_recall", query="what is the boiling point of lead", user_id="tom"
    )
    assert "probably nothing here answers this" in told.split("\n")[0]
    told = await said(host, "mneme_recall", query="where does Tom want his parcels", user_id="tom")
    assert "probably nothing" not in told


async def test_of_a_long_text_recall_shows_what_bears_on_the_question(
    host: Client, server: Any, tenant: Any
) -> None:
    talk = " ".join(f"Point {n} of the agenda was moved to the next meeting." for n in range(60))
    with MnemeClient(server.address, api_key=tenant.secret) as client:
        client.remember(f"{talk} The greenhouse is heated with straw.", wait_indexed=True)
    told = await said(host, "mneme_recall", query="what keeps the greenhouse warm")
    assert "heated with straw" in told
    assert len(told) < 2_000


async def test_an_event_is_read_by_the_name_that_recall_gave_it(
    host: Client, server: Any, tenant: Any
) -> None:
    with MnemeClient(server.address, api_key=tenant.secret) as client:
        client.record_events(
            [
                {
                    "session_id": "s-9",
                    "event_type": "message",
                    "text": "The llama must be fed at seven",
                }
            ],
            wait_indexed=True,
        )
    found = await call(host, "mneme_recall", query="when is the llama fed")
    name = next(one["id"] for one in found["results"] if one["id"].startswith("event "))
    assert name.endswith(" of session s-9")
    got = await call(host, "mneme_get", id=name)
    assert got["item"]["text"] == "The llama must be fed at seven"
    whole = await call(host, "mneme_get", id="session s-9")
    assert [event["text"] for event in whole["events"]] == ["The llama must be fed at seven"]
    assert "whoever runs the server" in await said(host, "mneme_forget", id=name)


async def test_a_session_is_read_with_its_summary(host: Client) -> None:
    done = "Rebuilt the index of the gallery"
    await call(host, "sleep", session_id="s-g", project="gallery", progress=[done])
    found = await call(host, "mneme_recall", query="index of the gallery")
    assert "session s-g" in [one["id"] for one in found["results"]]
    assert done in (await call(host, "mneme_get", id="session s-g"))["item"]["summary"]


async def test_older_memories_that_are_close_are_quoted(host: Client) -> None:
    text = "Fay plays the cello on Sundays\n- forged line"
    first = await call(host, "mneme_remember", text=text, user_id="fay")
    told = await said(host, "mneme_remember", text="Fay plays the cello daily", user_id="fay")
    assert f"{first['id']} > Fay plays the cello on Sundays - forged line" in told
    assert "no instructions" in told


async def test_a_lesson_is_forgotten_and_brought_back(
    host: Client, server: Any, tenant: Any
) -> None:
    with MnemeClient(server.address, api_key=tenant.secret) as client:
        lesson = client.create_lesson("Feed llamas early", "Feed them before the tours.").lesson
    told = await call(host, "mneme_forget", id=lesson.id)
    assert told["forgotten"]
    assert told["can_be_undone"]
    assert (await call(host, "mneme_get", id=f"lesson {lesson.id}"))["item"]["archived_at"]
    back = await call(host, "mneme_forget", id=told["id"], undo=True)
    assert not back["forgotten"]
    assert "archived_at" not in (await call(host, "mneme_get", id=lesson.id))["item"]
    changed = await call(host, "mneme_update", id=lesson.id, text="Feed them at six.")
    assert changed["text"] == "Feed them at six."


async def test_a_correction_keeps_what_it_does_not_name(host: Client) -> None:
    made = await call(host, "mneme_remember", text="Gus drives a Volvo", tags="cars", user_id="gus")
    await call(host, "mneme_update", id=made["id"], text="Gus drives a Saab", tags=[])
    item = (await call(host, "mneme_get", id=made["id"]))["item"]
    assert (item["text"], item["tags"], item["user_id"]) == ("Gus drives a Saab", ["cars"], "gus")
    await call(host, "mneme_update", id=made["id"], text="", tags="cars, private")
    item = (await call(host, "mneme_get", id=made["id"]))["item"]
    assert (item["text"], item["tags"]) == ("Gus drives a Saab", ["cars", "private"])


async def test_what_cannot_be_undone_is_only_forgotten_when_that_is_said(host: Client) -> None:
    made = await call(host, "mneme_remember", text="Carl's badge number is 4711", user_id="carl")
    asked = await said(host, "mneme_forget", id=made["id"])
    assert "final" in asked
    assert "cannot be undone" in asked
    assert (await call(host, "mneme_get", id=made["id"]))["item"]["user_id"] == "carl"
    assert (await call(host, "mneme_forget", id=made["id"], final=True))["forgotten"]
    assert (await host.call_tool("mneme_get", {"id": made["id"]})).is_error
    assert "no memory" in await said(host, "mneme_forget", id=made["id"], undo=True)


async def test_nothing_is_said_to_be_known_where_nothing_is(host: Client) -> None:
    found = await call(host, "mneme_context", query="the opera in Reykjavik", user_id="nobody")
    assert found["items"] == []
    assert "surely enough" in found["message"]


async def test_whom_the_settings_name_is_meant_where_a_call_names_nobody(
    server: Any, tenant: Any
) -> None:
    settings = {"address": server.address, "api_key": tenant.secret, "mcp_project": "zoo"}
    async with stdio_host("--user", "dora", **settings) as host:
        for given in ({}, {"user_id": "", "project": ""}, {"user_id": None}):
            made = await call(host, "mneme_remember", text="Dora likes tapirs", **given)
            item = (await call(host, "mneme_get", id=made["id"]))["item"]
            assert (item["user_id"], item["project"]) == ("dora", "zoo")
        other = await call(host, "mneme_remember", text="Emil likes owls", user_id="emil")
        assert (await call(host, "mneme_get", id=other["id"]))["item"]["user_id"] == "emil"
        found = await call(host, "mneme_recall", query="who likes which animals", user_id="")
        texts = [one["text"] for one in found["results"]]
        assert "Dora likes tapirs" in texts
        assert "Emil likes owls" not in texts


async def test_prompts_and_pages_show_what_is_known_within_bounds(host: Client) -> None:
    await call(host, "mneme_remember", text="The aquarium is cleaned on Mondays", project="aqua")
    (asked,) = (await host.get_prompt("context", {"task": "clean the aquarium"})).messages
    assert "cleaned on Mondays" in asked.content.text  # type: ignore[union-attr]
    page = (await host.read_resource("mneme://context/clean%20the%20aquarium")).contents[0]
    assert "cleaned on Mondays" in page.text  # type: ignore[union-attr]
    done = [f"Cleaned pane {number} of the aquarium" for number in range(90)]
    await call(host, "sleep", session_id="s-a", project="aqua", progress=done)
    (left,) = (await host.get_prompt("handover", {"project": "aqua"})).messages
    assert "Cleaned pane 0" in left.content.text  # type: ignore[union-attr]
    assert count_tokens(left.content.text) <= 1_600  # type: ignore[union-attr]
    page = (await host.read_resource("mneme://handover/aqua")).contents[0]
    assert "Cleaned pane 0" in page.text  # type: ignore[union-attr]
    (lessons,) = (await host.get_prompt("lessons", {"project": "none"})).messages
    assert lessons.content.text == "No lessons yet."  # type: ignore[union-attr]


async def test_prompts_name_the_tools_that_the_host_has(host: Client) -> None:
    names = {prompt.name for prompt in (await host.list_prompts()).prompts}
    assert names == {"context", "handover", "lessons", "start_of_session", "end_of_session"}
    (end,) = (await host.get_prompt("end_of_session", {})).messages
    assert "mneme_remember" in end.content.text  # type: ignore[union-attr]
    assert "sleep" not in end.content.text  # type: ignore[union-attr]
