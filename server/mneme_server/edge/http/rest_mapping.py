"""The table of what REST says otherwise than the schemas, for reading, writing and OpenAPI.

Everything else follows from the schemas: fields in camelCase, an enum's value in lower case without
its prefix, times as RFC 3339 has them, numbers as numbers, and every field of an answer present,
null where it is not set. `response_body` in an RPC's `google.api.http` option is what its answer
consists of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, MethodDescriptor

_NONE: Mapping[str, Any] = MappingProxyType({})

PARAMETERS: Mapping[str, str] = {"from": "start_time", "to": "end_time", "limit": "page_size"}
"""Parameters of all requests that have the field, and no field of the parameter's own name."""

ANSWERS: Mapping[str, str] = {"total_size": "total"}
"""Fields of all answers, and what they are called."""

INSIDE = "filter"
"""A field whose own fields are parameters of the request."""

PAGED = ("page_size", "page_token")
"""Requests with these take an `offset`, too, as those do that `SEARCHED` names."""

FLAT: Mapping[str, str] = {
    "mneme.v1.FoundLesson": "lesson",
    "mneme.v1.FoundReflection": "reflection",
    "mneme.v1.FoundEpisode": "episode",
    "mneme.v1.FoundSkill": "skill",
    "mneme.v1.FoundMemory": "memory",
    "mneme.v1.MatchedMemory": "memory",
}
"""Messages written as what they found, with the scores beside its fields."""

GROUPS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "mneme.v1.ReflectMetadata": {"timeRange": {"start_time": "from", "end_time": "to"}},
}
"""Fields of messages that are written together, as an object of its own."""


TENANT = "tenantId"
OWNED = frozenset(
    {
        "mneme.v1.Agent",
        "mneme.v1.AlertHistoryEntry",
        "mneme.v1.AlertRule",
        "mneme.v1.Event",
        "mneme.v1.Lesson",
        "mneme.v1.Session",
    }
)
"""Messages that say whose they are: the tenant of the caller's key. Not in streams, whose lines can
be imported elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestMapping:
    """How REST writes one RPC.

    Args:
        parameters: fields of the request, by what REST calls them.
        words: values of a field, by the words that REST has for them; None is no value at all.
        named_by: a parameter that is the field named by the value of another parameter.
        lines: the list that the lines of an NDJSON body are.
        list_as: what a list in the answer is called, by its field.
        totals: a number in the answer is called `total`.
        echoes: fields of the request that the answer repeats.
        answer: all of the answer: fields of the response by their paths, and constants.
    """

    parameters: Mapping[str, str] = field(default_factory=lambda: _NONE)
    words: Mapping[str, Mapping[str, str | None]] = field(default_factory=lambda: _NONE)
    named_by: Mapping[str, str] = field(default_factory=lambda: _NONE)
    lines: str = ""
    list_as: Mapping[str, str] = field(default_factory=lambda: _NONE)
    echoes: tuple[str, ...] = ()
    answer: Mapping[str, str | bool] = field(default_factory=lambda: _NONE)


PLAIN = RestMapping()

_SCOPES: Mapping[str, str | None] = {
    "all": None,
    "events": "event",
    "sessions": "session",
    "lessons": "lesson",
    "reflections": "reflection",
    "memories": "memory",
    "episodes": "episode",
    "skills": "skill",
}

RPCS: Mapping[str, RestMapping] = {
    "mneme.v1.RecallService.Recall": RestMapping(
        parameters={"scope": "scopes"}, words={"scopes": _SCOPES}, echoes=("query",)
    ),
    "mneme.v1.RecallService.RecallWithCertificate": RestMapping(
        parameters={"scope": "scopes"}, words={"scopes": _SCOPES}, echoes=("query",)
    ),
    "mneme.v1.ReflectService.Reflect": RestMapping(named_by={"params": "analysis"}),
    "mneme.v1.ContextService.GetContext": RestMapping(echoes=("topic",)),
    "mneme.v1.EventService.RecordEvents": RestMapping(lines="events"),
    "mneme.v1.LearnService.ArchiveLesson": RestMapping(
        answer={"id": "lesson.id", "archived": True}
    ),
    "mneme.v1.LearnService.ImportLessons": RestMapping(lines="lessons"),
    "mneme.v1.SkillService.ImportEpisodes": RestMapping(lines="episodes"),
    "mneme.v1.AlertService.DeleteAlertRule": RestMapping(answer={"id": "rule.id", "deleted": True}),
}
"""The RPCs that are written in ways of their own."""

SEARCHED: Mapping[str, tuple[str, str, RestMapping]] = {
    "mneme.v1.LearnService.ListLessons": (
        "search",
        "mneme.v1.LearnService.SearchLessons",
        RestMapping(
            parameters={"search": "query"},
            list_as={"results": "lessons", "searched_count": "total"},
        ),
    ),
    "mneme.v1.LearnService.ListKnowledge": (
        "query",
        "mneme.v1.LearnService.SearchKnowledge",
        RestMapping(parameters={"query": "query"}),
    ),
}
"""Lists that a parameter makes a search: the parameter, the RPC, and how that is written then."""


def mapping_of(method: MethodDescriptor) -> RestMapping:
    """Return how an RPC is written."""
    return RPCS.get(method.full_name, PLAIN)


def parameters_of(
    message: Descriptor, spelling: RestMapping
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names that a request's fields may have, with their paths, the usual ones first.

    Those of its filter are among them, where the request has no field of that name itself.
    """
    own = {str(one.name) for one in message.fields}
    aliases = {**PARAMETERS, **spelling.parameters}
    for one in message.fields:
        yield from ((name, (one.name,)) for name in names_of(one))
    for name, target in aliases.items():
        if target in own and name not in own:
            yield name, (target,)
    inside = message.fields_by_name.get(INSIDE)
    if inside is None or inside.message_type is None:
        return
    for one in inside.message_type.fields:
        if one.name not in own:
            yield from ((name, (INSIDE, one.name)) for name in names_of(one))
    for name, target in aliases.items():
        if target not in own and target in inside.message_type.fields_by_name:
            yield name, (INSIDE, target)


def takes_offset(method: MethodDescriptor, spelling: RestMapping) -> bool:
    """Tell whether an RPC's answers may begin at an offset."""
    fields = method.input_type.fields_by_name
    return all(name in fields for name in PAGED) or "results" in spelling.list_as


def word_of(enum: EnumDescriptor, number: int) -> str | None:
    """Return an enum's value as REST writes it; None when it is unspecified."""
    value = enum.values_by_number.get(number)
    if value is None or number == 0:
        return None
    return str(value.name).removeprefix(prefix_of(enum)).lower()


def prefix_of(enum: EnumDescriptor) -> str:
    """Return what the names of an enum's values begin with."""
    return str(enum.values[0].name).removesuffix("UNSPECIFIED")


def names_of(one: FieldDescriptor) -> Iterator[str]:
    """Yield what a field of a request may be called."""
    yield str(one.json_name)
    if one.json_name != one.name:
        yield str(one.name)
