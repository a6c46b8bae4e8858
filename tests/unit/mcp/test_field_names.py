"""A field that the server refuses is named as the argument that the host gave for it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from unittest.mock import AsyncMock

import pytest
from google.protobuf.message import Message
from mneme import AsyncMnemeClient, MnemeError
from mneme._generated.services import RPCS
from mneme.v1.alert_service_pb2 import GetAlertRuleResponse
from mneme.v1.learn_service_pb2 import GetLessonResponse, Lesson
from mneme.v1.memory_service_pb2 import GetMemoryResponse, Memory
from mneme_mcp.arguments import Arguments
from mneme_mcp.failures import Refused
from mneme_mcp.tool import Call, ToolSpec
from mneme_mcp.tools.patterns import FeedbackArguments
from mneme_mcp.toolsets import TOOLSETS, tools_of
from pydantic import ValidationError
from unit.client.scripted import ScriptedServer, failure

pytestmark = pytest.mark.anyio

SPECS = [spec for spec in tools_of(TOOLSETS) if spec.arguments.model_fields]
NOT_SENT = {"token_budget", "batch_size", "action", "pattern_type"}
"""Arguments that no field of a request holds."""
LESSON = {"id": "lesson", "title": "title", "content": "content", "query": "query"}
FURTHER_CALLS: dict[str, list[dict[str, Any]]] = {
    "alert_try": [{"rule_id": "rule"}],
    "agentlens_learn": [
        {"action": action, **LESSON} for action in ("list", "get", "update", "delete", "restore")
    ],
    "agentdb_pattern_store": [
        {"name": "p", "pattern_type": "semantic", "pattern_data": {"text": "a"}},
        {"name": "p", "pattern_type": "structural", "pattern_data": {"schema": {"title": "a"}}},
    ],
}
"""Ways to call a tool of which its description has no example."""
VALUES: dict[str, list[Any]] = {
    "id": ["memory a", "memory b", "lesson a", "session a"],
    "pattern_data": [{"regex": "b"}, {"text": "b", "threshold": 0.3}, {"schema": {"title": "b"}}],
    "params": [{"tool": "pytest"}],
    "state_space": [{"type": "discrete", "n": 4}],
    "action_space": [{"type": "discrete", "n": 4}],
}
"""What fits an argument whose schema does not say it."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def served() -> Iterator[ScriptedServer]:
    """A server that refuses every call but one that reads what another one changes."""
    server = ScriptedServer().start()
    for rpc in RPCS:
        server.on(rpc.method, lambda _, context: failure(context, "INVALID_ARGUMENT", "no"))
    server.on("GetAlertRule", GetAlertRuleResponse())
    server.on("GetMemory", GetMemoryResponse(memory=Memory(id="a", text="b")))
    server.on("GetLesson", GetLessonResponse(lesson=Lesson(id="a", content="b")))
    yield server
    server.stop()


@pytest.fixture
async def client(served: ScriptedServer) -> AsyncIterator[AsyncMnemeClient]:
    async with AsyncMnemeClient(served.address) as client:
        yield client


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
async def test_each_field_of_a_request_is_named_as_the_argument_that_it_comes_from(
    spec: ToolSpec, client: AsyncMnemeClient, served: ScriptedServer
) -> None:
    async def sent(given: Mapping[str, Any]) -> tuple[Arguments | None, str, dict[str, Any]]:
        served.seen.clear()
        arguments = None
        with suppress(ValidationError, Refused, MnemeError, TypeError):
            arguments = spec.arguments.model_validate(given)
            await spec.handler(Call(client, AsyncMock()), arguments)
        if not served.seen:
            return None, "", {}
        call = served.seen[-1]
        return arguments, call.method, dict(_fields(call.request))

    unseen = {name for name, schema in _shown(spec) if schema.get("type") != "boolean"}
    for call in [*_examples(spec), *FURTHER_CALLS.get(spec.name, [])]:
        _, method, before = await sent(call)
        assert method, call
        for name, given in _variants(spec, call):
            arguments, called, after = await sent(given)
            if arguments is None or called != method or after == before:
                continue
            _, _, again = await sent(given)  # Ids are made for each call.
            for path, content in after.items():
                if content != before.get(path) and content == again[path]:
                    assert _outermost(arguments.spelled(path)) == name, path
                    unseen.discard(name)
    assert {spec.arguments.field_named(name) for name in unseen} <= NOT_SENT


async def test_a_judged_memory_is_named_by_the_list_that_it_is_in() -> None:
    given = FeedbackArguments(pattern_name="tickets", right=["a", "b"], wrong=["c"])
    assert given.spelled("verdicts[1].memory_id") == "right[1]"
    assert given.spelled("verdicts[2].memory_id") == "wrong[0]"
    assert given.spelled("verdicts") == "right"
    assert given.spelled("name") == "pattern_name"


def _examples(spec: ToolSpec) -> Iterator[dict[str, Any]]:
    text = spec.description.partition("Example")[2]
    while "{" in text:
        text = text[text.index("{") :]
        example, length = json.JSONDecoder().raw_decode(text)
        yield example
        text = text[length:]


def _shown(spec: ToolSpec) -> Iterable[tuple[str, Any]]:
    """A tool's arguments, as hosts see them, with the schema of each."""
    return spec.arguments.schema_for_hosts()["properties"].items()


def _variants(spec: ToolSpec, call: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls that differ in one argument, with its name; not all fit."""
    field_named = spec.arguments.field_named
    for name, schema in _shown(spec):
        field = field_named(name)
        others = {other: value for other, value in call.items() if field_named(other) != field}
        for value in VALUES.get(name) or _values(schema):
            yield name, others | {name: value}


def _values(schema: Mapping[str, Any]) -> list[Any]:
    """Values of which at least one fits the schema."""
    if "enum" in schema:
        return [value for value in schema["enum"] if value]
    if schema.get("type") == "array":
        return [[value] for value in _values(schema.get("items", {}))]
    if "properties" in schema:
        whole = {
            name: _values(schema["properties"][name])[0] for name in schema.get("required", ())
        }
        inner = schema["properties"].items()
        return [whole | {name: value} for name, one in inner for value in _values(one)]
    least = schema.get("minimum", 0)
    return {
        "string": ["sample", "2026-05-01", "9/10", '{"title": "value"}'],
        "integer": [least + 3, least + 4],
        "number": [0.25, 0.75],
        "boolean": [],
    }[schema["type"]]


def _outermost(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _fields(request: Any) -> Iterator[tuple[str, Any]]:
    """The fields that are set, by their paths; those of a stream's first message."""
    return _leaves(request[0] if isinstance(request, list) else request, "")


def _leaves(message: Message, before: str) -> Iterator[tuple[str, Any]]:
    for field, value in message.ListFields():
        path = f"{before}{field.name}"
        kind = field.message_type
        if kind is None:
            if field.type != field.TYPE_BOOL:  # No flag is ever refused.
                yield path, value
        elif kind.GetOptions().map_entry or kind.file.name.startswith("google/protobuf/"):
            if field.name != "update_mask":
                yield path, str(value)
        elif field.is_repeated:
            for place, element in enumerate(value):
                yield from _leaves(element, f"{path}[{place}].")
        else:
            yield from _leaves(value, f"{path}.")
