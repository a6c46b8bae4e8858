"""Every tool, with the examples of the documents that ask for it, over every transport."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from mcp import Client
from mneme_mcp.toolsets import TOOLSETS, tools_of
from support.hosts import text_of
from support.refused_tool_calls import REFUSED
from support.tool_calls import A_DAY

pytestmark = pytest.mark.anyio

REASONS = {
    "INVALID_PARAMETER",
    "MISSING_REQUIRED_FIELD",
    "OUT_OF_RANGE",
    "NOT_FOUND",
    "SESSION_NOT_FOUND",
    "ALGORITHM_NOT_SUPPORTED",
}


async def test_the_tools_that_are_listed_say_what_they_do_and_take_and_return(
    host: Client,
) -> None:
    tools = (await host.list_tools()).tools
    assert [tool.name for tool in tools] == [spec.name for spec in tools_of(TOOLSETS)]
    for tool in tools:
        assert tool.title
        assert tool.annotations is not None
        assert tool.description is not None
        assert tool.output_schema is not None
        assert "xample" in tool.description
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
        for name, schema in tool.input_schema["properties"].items():
            described = schema.get("description") or schema.get("enum")
            assert described, f"{tool.name}.{name} says nothing of itself"
        assert "$ref" not in json.dumps(tool.input_schema)


async def test_a_day_of_calls_succeeds(host: Client) -> None:
    assert {name for name, _, _ in A_DAY} == {spec.name for spec in tools_of(TOOLSETS)}
    named = ""
    for name, arguments, check in A_DAY:
        given = json.loads(json.dumps(arguments).replace("$id", named))
        result = await host.call_tool(name, given)
        if name.startswith("mneme_"):
            named = (result.structured_content or {}).get("id", named)
        text = text_of(result)
        assert not result.is_error, f"{name} {arguments}: {text}"
        assert result.structured_content is not None
        assert check(text, result.structured_content), f"{name} {arguments}: {result}"


async def test_calls_that_cannot_succeed_say_what_to_do(host: Client) -> None:
    tools = {tool.name: tool for tool in (await host.list_tools()).tools}
    assert {name for name, _, _ in REFUSED} == {spec.name for spec in tools_of(TOOLSETS)}
    for name, arguments, words in REFUSED:
        result = await host.call_tool(name, arguments)
        assert result.is_error, f"{name} {arguments} was answered: {text_of(result)}"
        said = text_of(result)
        assert words in said, f"{name} {arguments}: {said}"
        assert said.startswith(f"{name}: ")
        error = (result.structured_content or {})["error"]
        assert error["code"] in ("INVALID_ARGUMENT", "NOT_FOUND"), error
        assert error["reason"] in REASONS, error
        assert error["message"] == said
        assert error["retryable"] is False
        assert error["tool"] == name
        snake = "request_id" in error
        assert error["request_id" if snake else "requestId"]
        assert abs(error["timestamp"] - time.time()) < 600
        if "there is no argument" in said:
            known = error["details"]["valid_params"]
            assert known == list(tools[name].input_schema["properties"])
        assert "pydantic" not in said.lower()


async def test_an_unknown_tool_is_answered_with_those_that_there_are(host: Client) -> None:
    result = await host.call_tool("agentlens_recal", {"query": "x"})
    assert result.is_error
    assert "Did you mean agentlens_recall?" in text_of(result)
    error = (result.structured_content or {})["error"]
    assert (error["code"], error["reason"]) == ("NOT_FOUND", "TOOL_UNKNOWN")


async def test_a_lesson_lives_from_save_to_delete(host: Client) -> None:
    async def learn(**arguments: Any) -> Any:
        result = await host.call_tool("agentlens_learn", arguments)
        assert not result.is_error, text_of(result)
        return result.structured_content

    saved = (await learn(action="save", title="Pin versions", content="Pin them."))["lesson"]
    changed = await learn(action="update", id=saved["id"], importance="high", tags="ci, pip")
    assert changed["lesson"]["importance"] == "high"
    assert changed["lesson"]["tags"] == ["ci", "pip"]
    assert changed["lesson"]["content"] == "Pin them."
    about = {"agentId": "helper", "project": "shop", "category": "pip", "sourceSessionId": "s-1"}
    narrowed = (await learn(action="update", id=saved["id"], **about))["lesson"]
    assert narrowed.items() >= about.items()
    lifted = dict.fromkeys(about, "")
    wide = (await learn(action="update", id=saved["id"], title="", **lifted))["lesson"]
    assert wide.keys() & about.keys() == {"category"}
    assert (wide["category"], wide["title"]) == ("general", "Pin versions")
    await learn(action="delete", id=saved["id"])
    assert (await learn(action="get", id=saved["id"]))["lesson"]["archivedAt"]
    left = (await learn(action="list")).get("lessons", [])
    assert saved["id"] not in {one["id"] for one in left}
    with_archived = (await learn(action="list", includeArchived=True))["lessons"]
    assert saved["id"] in {one["id"] for one in with_archived}
    restored = (await learn(action="restore", id=saved["id"]))["lesson"]
    assert "archivedAt" not in restored
    assert saved["id"] in {one["id"] for one in (await learn(action="list"))["lessons"]}


async def test_a_lesson_that_has_changed_is_not_overwritten_with_an_old_etag(host: Client) -> None:
    saved = await host.call_tool(
        "agentlens_learn", {"action": "save", "title": "Ports", "content": "Ask for port 0."}
    )
    lesson = (saved.structured_content or {})["lesson"]
    change = {"action": "update", "id": lesson["id"], "etag": lesson["etag"]}
    changed = await host.call_tool("agentlens_learn", {**change, "title": "A port"})
    assert not changed.is_error
    late = await host.call_tool("agentlens_learn", {**change, "title": "Any port"})
    assert late.is_error
    error = (late.structured_content or {})["error"]
    assert (error["code"], error["reason"]) == ("ABORTED", "ETAG_MISMATCH")
    assert not error["retryable"]
    assert "read the lesson again" in text_of(late)


async def test_a_prediction_is_followed_and_told_by_its_id_alone(host: Client) -> None:
    async def call(name: str, **arguments: Any) -> Any:
        result = await host.call_tool(name, arguments)
        assert not result.is_error, text_of(result)
        return result.structured_content

    await call("learning_start_session", session_id="style", algorithm="thompson")
    # As JSON text, which some hosts send.
    asked = {"session_id": "style", "state": '{"customer": "new"}', "exploration_mode": True,
             "allowed_actions": '["short", "detailed"]'}  # fmt: skip
    made = await call("learning_predict", **asked)
    await call("learning_feedback", prediction_id=made["prediction_id"], reward=1)
    again = await host.call_tool(
        "learning_feedback", {"prediction_id": made["prediction_id"], "reward": 0}
    )
    assert again.is_error
    assert (again.structured_content or {})["error"]["code"] == "ALREADY_EXISTS"
    after = await call("learning_predict", **asked)
    assert after["trained"]
    values = {one["action"]: one["value"] for one in after["actions"]}
    assert set(values) == {"short", "detailed"}
    assert max(values, key=lambda name: values[name]) == made["action"]["value"]


async def test_lists_and_objects_may_come_as_json_text(host: Client) -> None:
    result = await host.call_tool(
        "sleep",
        {"project": "text", "progress": '["Did it"]', "open_todos": '[{"content": "More"}]'},
    )
    assert not result.is_error, text_of(result)
    handover = (result.structured_content or {})["handover"]
    assert handover["progress"] == ["Did it"]
    assert handover["open_todos"][0]["content"] == "More"


@pytest.mark.parametrize(
    ("tool", "argument", "others", "at_fault"),
    [
        ("agentlens_recall", "tags", {"query": "q"}, "tags"),
        (
            "learning_predict",
            "allowed_actions",
            {"session_id": "s", "state": "x"},
            "allowed_actions",
        ),
    ],
)
async def test_json_text_that_is_nested_too_deep_is_refused_like_another_text(
    host: Client, tool: str, argument: str, others: dict[str, Any], at_fault: str
) -> None:
    result = await host.call_tool(tool, {**others, argument: "[" * 100_000})
    error = (result.structured_content or {})["error"]
    assert error["code"] == "INVALID_ARGUMENT"
    assert error["details"]["parameter"] == at_fault


async def test_past_attempts_take_no_more_tokens_than_they_may(host: Client) -> None:
    from mneme_mcp.text import count_tokens

    for number in range(6):
        critique = f"Attempt {number} held the lock while it waited for the network. " * 20
        attempt = {"task": "Migrate the orders", "critique": critique, "reward": 0}
        await host.call_tool("reflexion_store", {**attempt, "success": False, "project": "budget"})
    asked = {"query": "migrate orders", "project": "budget"}
    for budget in (100, 300, 800):
        result = await host.call_tool("reflexion_retrieve", {**asked, "token_budget": budget})
        assert count_tokens(text_of(result)) <= budget
        assert "Migrate the orders" in text_of(result)
        assert ("held the lock" in text_of(result)) == (budget > 100)


async def test_a_recall_takes_no_more_tokens_than_it_may(host: Client) -> None:
    from mneme_mcp.text import count_tokens

    for number in range(12):
        body = f"The parser of feed {number} met an unexpected end of input. " * 30
        await host.call_tool(
            "agentlens_log_event",
            {"sessionId": "feeds", "eventType": "message", "text": body},
        )
    for budget in (100, 400, 800):
        result = await host.call_tool(
            "agentlens_recall", {"query": "unexpected end of input", "tokenBudget": budget}
        )
        data = result.structured_content or {}
        assert count_tokens(text_of(result)) <= budget
        assert data["results"]
        assert len(data["results"]) + data["omitted"] == 10


async def test_a_long_analysis_reports_its_progress(host: Client) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def listen(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    result = await host.call_tool(
        "agentlens_reflect", {"analysis": "tool_sequences"}, progress_callback=listen
    )
    assert not result.is_error, text_of(result)
    assert heard[0] == (0, None, "analysing tool sequences")
    assert heard[-1][:2] == (1, 1)
