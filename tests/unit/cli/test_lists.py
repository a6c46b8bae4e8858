"""Every list of the API is a command, and whatever chooses what is listed is an option."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from commands import commands_by_method
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from mneme._generated.services import RPCS
from mneme.cli.main import build_whole
from parity import rows
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer

NO_COMMAND = {
    "ListPatterns": "rules of a learning loop, which programs keep",
    "ListTrajectories": "steps of learning sessions, which programs record and read",
}
NO_OPTION = {
    "ListMemories": {
        "filter.where": "conditions are messages of their own; `mneme call` takes them",
        "filter.min_age_days": "`--to 30d` says it",
    }
}
# Of options whose parsers take some texts only.
VALUES = {"--state": "running"}
SHARED = {
    *["limit", "help", "address", "local", "api_key", "tls", "ca", "insecure", "timeout"],
    "as_json",
}
# The walks of pages, by their RPC.
WALKS = {row.method: row.python[-1] for row in rows() if row.method.startswith("List")}
REQUESTS = {rpc.method: rpc.request.DESCRIPTOR for rpc in RPCS}


def test_every_list_of_the_api_has_a_command() -> None:
    walked = commands_by_method()
    assert {method for method, walk in WALKS.items() if walk not in walked} == set(NO_COMMAND)


@pytest.mark.parametrize("method", sorted(WALKS.keys() - NO_COMMAND))
def test_every_field_that_a_list_is_chosen_by_has_an_option(
    method: str, served: ScriptedServer
) -> None:
    # The first is the one that does little else.
    path = commands_by_method()[WALKS[method]][0].split()[1:]
    filled: set[str] = set()
    for parameter in _command(path).params:
        if parameter.name in SHARED:
            continue
        result = mneme(*path, *_typed(parameter))
        assert result.code == 0, result.err
        filled.update(_filled(served.last(method)))
    fields = set(_fields(REQUESTS[method])) - {"page_size", "page_token"}
    assert fields - filled == set(NO_OPTION.get(method, ()))


def _command(path: list[str]) -> Any:
    found: Any = build_whole()
    for name in path:
        found = found.commands[name]
    return found


def _typed(parameter: Any) -> list[str]:
    flag = max(parameter.opts, key=len)
    if parameter.is_flag:
        return [flag]
    kind = parameter.type_descriptor
    if str(kind.annotation).startswith("typing.Literal"):
        return [flag, kind.annotation.__args__[-1]]
    parser = getattr(kind.parameter_info.parser, "__name__", "")
    by_parser = {"parse_start": "2026-01-31", "parse_end": "2026-01-31", "json_object": '{"a": 1}'}
    return [flag, VALUES.get(flag) or by_parser.get(parser) or "1"]


def _fields(message: Descriptor, before: str = "") -> Iterator[str]:
    for field in message.fields:
        if field.name == "filter" and field.message_type is not None:
            yield from _fields(field.message_type, "filter.")
        else:
            yield f"{before}{field.name}"


def _filled(request: Message, before: str = "") -> Iterator[str]:
    for field, value in request.ListFields():
        if field.name == "filter":
            yield from _filled(value, "filter.")
        else:
            yield f"{before}{field.name}"
