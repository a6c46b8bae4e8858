"""Every list of the API is a command; what chooses what is listed is an option, and is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from commands import commands_by_method
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from mneme._generated.services import RPCS
from mneme.cli.main import build_whole
from mneme.v1.event_service_pb2 import WatchEventsRequest
from parity import rows
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer

NO_COMMAND = {
    "ListPatterns": "rules of a learning loop, which programs keep",
    "ListPatternStats": "how those rules did, which programs ask",
    "ListTrajectories": "steps of learning sessions, which programs record and read",
}
NO_OPTION = {
    "ListMemories": {
        "filter.where": "conditions are messages of their own; `mneme call` takes them",
        "filter.min_age_days": "`--to 30d` says it",
    }
}
# What options take that do not take "1", and what goes with no other option.
VALUES = {"--state": "running", "--block-size": "2"}
BY_PARSER = {"parse_start": "2026-01-31", "parse_end": "2026-01-31", "json_object": '{"a": 1}'}
ALONE = {"--failures"}
NOT_SENT = {
    *["limit", "help", "address", "local", "api_key", "tls", "ca", "insecure", "timeout"],
    *["as_json", "yes"],
}
# The walks of pages, by their RPC.
WALKS = {row.method: row.python[-1] for row in rows() if row.method.startswith("List")}
MADE_IDS = {rpc.method: set(rpc.made_ids) for rpc in RPCS}
LISTS = {rpc.method: rpc for rpc in RPCS if rpc.method in WALKS}


def _commands(group: Any, path: str = "mneme") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


COMMANDS = dict(_commands(build_whole()))
TABLED = [path for path, command in COMMANDS.items() if hasattr(command.callback, "methods")]


def test_every_list_of_the_api_has_a_command() -> None:
    walked = commands_by_method()
    assert {method for method, walk in WALKS.items() if walk not in walked} == set(NO_COMMAND)


@pytest.mark.parametrize("method", sorted(WALKS.keys() - NO_COMMAND))
def test_every_field_that_a_list_is_chosen_by_has_an_option(
    method: str, served: ScriptedServer
) -> None:
    # The first is the one that does little else.
    path = commands_by_method()[WALKS[method]][0]
    served.on(method, _page_of_one(method))
    filled: set[str] = set().union(*map(_filled, _sent(path, served)))
    fields = set(_fields(LISTS[method].request.DESCRIPTOR)) - {"page_size", "page_token"}
    assert fields - filled == set(NO_OPTION.get(method, ()))


def test_every_field_that_events_are_followed_by_has_an_option() -> None:
    filters = set(WatchEventsRequest.DESCRIPTOR.fields_by_name) - {"after_cursor"}
    assert filters <= {one.name for one in COMMANDS["mneme events watch"].params}


@pytest.mark.parametrize("path", TABLED)
def test_whatever_a_command_of_a_table_takes_is_sent(path: str, served: ScriptedServer) -> None:
    taken = {one.name for one in COMMANDS[path].params} - NOT_SENT
    filled: set[str] = set().union(*map(_filled, _sent(path, served)))
    filled -= {"page_size", "update_mask"} | (MADE_IDS[served.seen[-1].method] - taken)
    assert len(filled) == len(taken), filled


def _page_of_one(method: str) -> Message:
    """A page with a thing of which nothing is known."""
    page = LISTS[method].response()
    for field in page.DESCRIPTOR.fields:
        if field.is_repeated and field.message_type is not None:
            getattr(page, field.name).add()
    return page


def _sent(path: str, served: ScriptedServer) -> list[Message]:
    """The requests of a command with all of its options, and with those that are used alone."""
    line, alone = path.split()[1:], []
    for parameter in COMMANDS[path].params:
        if parameter.name in NOT_SENT:
            continue
        if ALONE & set(parameter.opts):
            alone.append(parameter.opts[0])
        else:
            line += _typed(parameter)
    for given in (line, *([*path.split()[1:], one] for one in alone)):
        result = mneme(*given, stdin="y\n")
        assert result.code == 0, result.err
    return [call.request for call in served.seen]


def _typed(parameter: Any) -> list[str]:
    flag = max(parameter.opts, key=len)
    if getattr(parameter, "is_flag", False):
        return [flag]
    kind, value = parameter.type_descriptor, VALUES.get(flag, "1")
    if str(kind.annotation).startswith("typing.Literal"):
        value = next(name for name in reversed(kind.annotation.__args__) if name)
    value = BY_PARSER.get(getattr(kind.parameter_info.parser, "__name__", ""), value)
    return [flag, value] if flag.startswith("-") else [value]


def _fields(message: Descriptor, before: str = "") -> Iterator[str]:
    for field in message.fields:
        if field.name == "filter" and field.message_type is not None:
            yield from _fields(field.message_type, "filter.")
        else:
            yield f"{before}{field.name}"


def _filled(request: Message, before: str = "") -> Iterator[str]:
    for field, value in request.ListFields():
        inner = field.message_type
        if inner is None or field.is_repeated or inner.full_name.startswith("google."):
            yield f"{before}{field.name}"
        else:
            yield from _filled(value, f"{before}{field.name}.")
