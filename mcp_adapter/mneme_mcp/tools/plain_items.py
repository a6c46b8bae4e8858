"""`mneme_get`, `mneme_update`, `mneme_forget`: one item of any kind, by its id."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from mneme import AsyncMnemeClient, to_dict
from mneme.errors import NotFoundError
from mneme.visible import QUOTED, visible, visible_line
from pydantic import Field

from mneme_mcp.arguments import Labels
from mneme_mcp.failures import Failure, Refused
from mneme_mcp.outputs import Free, SnakeOutput
from mneme_mcp.plain import ItemArguments, Reference, reference_of, short
from mneme_mcp.text import listing
from mneme_mcp.tool import Call, Reply, ToolSpec
from mneme_mcp.tools.events import EventOutput, event_item

Act = Callable[[AsyncMnemeClient, str], Awaitable[Any]]
Change = Callable[..., Awaitable[Any]]
_PAGE = 500
_SESSION_EVENTS = 200
_SESSION_TOKENS = 3_000
_NOISE = {
    "etag", "id", "prev_hash", "hash", "hash_version", "salt", "commitment", "head_hash", "links",
    "searchable", "sequence", "filled_fields", "recorded_at",
}  # fmt: skip
"""Fields that tell a model nothing."""
_TEXTS = {
    "memory": "text",
    "lesson": "content",
    "reflection": "next_strategy",
    "knowledge": "lesson",
    "episode": "critique",
    "skill": "description",
}
"""What of an item `text` changes."""

_READ: Mapping[str, Act] = {
    "memory": lambda client, key: client.get_memory(key),
    "lesson": lambda client, key: client.get_lesson(key),
    "reflection": lambda client, key: client.get_reflection(key),
    "knowledge": lambda client, key: client.get_knowledge(key),
    "episode": lambda client, key: client.get_episode(key),
    "skill": lambda client, key: client.get_skill(key),
    "session": lambda client, key: client.get_session(key),
}
_CHANGE: Mapping[str, Change] = {
    "memory": lambda client, key, **fields: client.update_memory(key, **fields),
    "lesson": lambda client, key, **fields: client.update_lesson(key, **fields),
    "reflection": lambda client, key, **fields: client.update_reflection(key, **fields),
    "knowledge": lambda client, key, **fields: client.update_knowledge(key, **fields),
    "episode": lambda client, key, **fields: client.update_episode(key, **fields),
    "skill": lambda client, key, **fields: client.update_skill(key, **fields),
}
_DELETE: Mapping[str, Act] = {
    "memory": lambda client, key: client.delete_memories([key]),
    "lesson": lambda client, key: client.delete_lesson(key),
    "reflection": lambda client, key: client.delete_reflection(key),
    "knowledge": lambda client, key: client.delete_knowledge(key),
    "episode": lambda client, key: client.delete_episode(key),
    "skill": lambda client, key: client.delete_skill(key),
}


class GetOutput(SnakeOutput):
    """The item, whole."""

    id: str
    kind: str
    item: Free
    events: list[EventOutput] = []


async def get(call: Call, given: ItemArguments) -> Reply:
    """Answer `mneme_get`."""
    found, item = await _found(call.client, reference_of(given.id))
    if found.kind == "session":
        item["summary"] = await _summary(call.client, found.id)
    told = GetOutput(id=str(found), kind=found.kind, item=_telling(item))
    parts = [f"{visible_line(str(found))}. {QUOTED}", *_lines(told.item)]
    if found.kind == "session":
        answer = to_dict(
            await call.client.list_events(session_id=found.id, page_size=_SESSION_EVENTS)
        )
        told.events = [EventOutput.model_validate(one) for one in answer["events"]]
        items = [event_item(one, with_session=False) for one in told.events]
        more = "mneme_recall finds them"
        if items:
            parts.append(listing("Its events:", items, _SESSION_TOKENS, more=more).text)
    return Reply("\n".join(parts), told)


async def _summary(client: AsyncMnemeClient, session_id: str) -> str:
    """What a session's summary says, its handover in it; empty as long as there is none."""
    answer = to_dict(
        await client.recall("summary", scopes=["session"], session_id=session_id, limit=1)
    )
    return "".join(one["text"] for one in answer["results"])


def _places() -> dict[str, str]:
    """The arguments that are given for the fields of an item that is changed."""
    places: dict[str, str] = {}
    for kind, field in _TEXTS.items():
        message = "entry" if kind == "knowledge" else kind
        places |= {f"{message}.{field}": "text", f"{message}.tags": "tags", f"{message}.id": "id"}
    return places


class UpdateArguments(ItemArguments):
    """What to change of an item."""

    text: Annotated[str, Field(description="Its new text.")] = ""
    # An empty list is what a model says that must say something: it takes no label away.
    tags: Annotated[Labels, Field(description="Its new labels.")] = []

    holders = {**ItemArguments.holders, **_places()}
    synonyms = {**ItemArguments.synonyms, "content": "text", "query": "text"}


class UpdateOutput(SnakeOutput):
    """The item as it is now."""

    id: str
    text: str
    same_as: str = ""


async def update(call: Call, given: UpdateArguments) -> Reply:
    """Answer `mneme_update`."""
    if not given.text and not given.tags:
        raise Refused("give text or tags: what to change.", "MISSING_REQUIRED_FIELD")
    named = reference_of(given.id)
    _refuse_record(named, "cannot be changed: what happened is kept as it was")
    found, _ = await _found(call.client, named)
    _refuse_record(found, "cannot be changed: what happened is kept as it was")
    field = _TEXTS[found.kind]
    fields: dict[str, Any] = {field: given.text} if given.text else {}
    if given.tags:
        fields["tags"] = given.tags
    answer = to_dict(await _CHANGE[found.kind](call.client, found.id, **fields))
    item = _item_of(answer)
    changed = UpdateOutput(id=str(found), text=short(str(item[field])))
    lines = [f"Changed {visible_line(changed.id)} > {visible_line(changed.text)}"]
    if answer.get("known_memory_id"):
        changed.same_as = str(Reference(answer["known_memory_id"], "memory"))
        lines.append(f"{changed.same_as} says the same: forget one of them.")
    return Reply("\n".join(lines), changed)


class ForgetArguments(ItemArguments):
    """Which item to forget."""

    final: Annotated[bool, Field(description="Delete for good; only after the user agreed.")] = (
        False
    )
    undo: Annotated[bool, Field(description="Bring it back.")] = False


class ForgetOutput(SnakeOutput):
    """What became of the item."""

    id: str
    text: str = ""
    forgotten: bool
    can_be_undone: bool
    holds_again: list[str] = []


async def forget(call: Call, given: ForgetArguments) -> Reply:
    """Answer `mneme_forget`."""
    named = reference_of(given.id)
    _refuse_record(named, _ONLY_WHOLE)
    found, item = await _found(call.client, named)
    _refuse_record(found, _ONLY_WHOLE)
    text = short(str(item[_TEXTS[found.kind]]))
    if given.undo:
        return await _undone(call, found, text)
    if given.final:
        return await _deleted(call, found, text)
    name = visible_line(str(found))
    if found.kind == "lesson":
        await call.client.archive_lesson(found.id)
        told = f'{name} is archived. Undo: mneme_forget {{"id": "{name}", "undo": true}}.'
        done = ForgetOutput(id=str(found), text=text, forgotten=True, can_be_undone=True)
        return Reply(told, done)
    instead = (
        " If it is only outdated, mneme_remember with replaces keeps it and marks it."
        if found.kind == "memory"
        else ""
    )
    told = (
        f"Nothing is forgotten yet. To forget {name} is final and cannot be undone: call again "
        f'with "final": true if that is wanted.{instead}\n{QUOTED}\n> {visible_line(text)}'
    )
    return Reply(told, ForgetOutput(id=str(found), text=text, forgotten=False, can_be_undone=False))


async def _undone(call: Call, found: Reference, text: str) -> Reply:
    if found.kind != "lesson":
        raise Refused(
            f"{found} was not forgotten: it is here. What is forgotten of this kind is gone.",
            "FAILED_PRECONDITION",
        )
    await call.client.unarchive_lesson(found.id)
    done = ForgetOutput(id=str(found), text=text, forgotten=False, can_be_undone=False)
    return Reply(f"{visible_line(str(found))} is back.", done)


async def _deleted(call: Call, found: Reference, text: str) -> Reply:
    answer = to_dict(await _DELETE[found.kind](call.client, found.id))
    again = [str(Reference(one, "memory")) for one in answer.get("restored_ids", ())]
    done = ForgetOutput(
        id=str(found), text=text, forgotten=True, can_be_undone=False, holds_again=again
    )
    told = f"{visible_line(str(found))} is forgotten for good."
    if again:
        told += f" What it replaced holds again: {visible_line(', '.join(again))}."
    return Reply(told, done)


_ONLY_WHOLE = (
    "is a part of the record, which is not forgotten item by item: whoever runs the server forgets "
    "a session or a user with `mneme forget`"
)


def _refuse_record(named: Reference, why: str) -> None:
    if named.kind in ("event", "session"):
        raise Refused(f"{named} {why}.", "INVALID_PARAMETER")


async def _found(client: AsyncMnemeClient, named: Reference) -> tuple[Reference, dict[str, Any]]:
    """The item that is meant, with its kind.

    Raises:
        Refused: there is none, or several kinds have one of that id.
    """
    if named.kind == "event":
        return await _event(client, named)
    if named.kind:
        return named, _item_of(to_dict(await _READ[named.kind](client, named.id)))
    kinds = list(_READ)
    reads = (_READ[kind](client, named.id) for kind in kinds)
    answers = await asyncio.gather(*reads, return_exceptions=True)
    found = {}
    for kind, answer in zip(kinds, answers, strict=True):
        if isinstance(answer, NotFoundError):
            continue
        if isinstance(answer, BaseException):
            raise answer
        found[kind] = _item_of(to_dict(answer))
    if not found:
        return await _event(client, named)
    if len(found) > 1:
        several = " or ".join(f'"{kind} {named.id}"' for kind in found)
        raise Refused(f"several items have this id: say {several}.", "INVALID_PARAMETER")
    ((kind, item),) = found.items()
    return replace(named, kind=kind), item


async def _event(client: AsyncMnemeClient, named: Reference) -> tuple[Reference, dict[str, Any]]:
    """An event, which is read with its session."""
    for session_id in [named.session_id] if named.session_id else _sessions_in(named.id):
        token = ""
        while True:
            page = to_dict(
                await client.list_events(session_id=session_id, page_size=_PAGE, page_token=token)
            )
            for event in page["events"]:
                if event["id"] == named.id:
                    return Reference(named.id, "event", session_id), event
            token = page["next_page_token"]
            if not token:
                break
    raise Missing(named)


class Missing(Refused):
    """There is no such item."""

    def __init__(self, named: Reference) -> None:
        hint = "mneme_recall finds items and their ids"
        if named.kind == "event" and not named.session_id:
            hint = f'say of which session: "event {named.id} of session …"'
        message = f"there is no item {str(named)!r}; {hint}."
        super().__init__(message, "NOT_FOUND")
        self.failure = Failure(message, "NOT_FOUND", "NOT_FOUND", fields=[("id", "not found")])


def _sessions_in(event_id: str) -> list[str]:
    """The sessions that an event may be of whose id begins with its session's, as clients do."""
    ends = [place.start() for place in re.finditer(r"[^A-Za-z0-9]", event_id)]
    return [event_id[:end] for end in reversed(ends) if end][:8]


def _item_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The item of an answer, which is its first field."""
    item: dict[str, Any] = next(iter(answer.values()))
    return item


def _telling(item: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an item that say something."""
    empty: tuple[Any, ...] = (None, "", [], {}, 0, False)
    kept = {"success", "reward"}
    return {
        name: value
        for name, value in item.items()
        if name not in _NOISE and (name in kept or value not in empty)
    }


def _lines(item: Mapping[str, Any]) -> list[str]:
    """A line for each field; no line of a text can pass for one of them, being indented."""
    said = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in item.items()
    }
    return [f"{name} > " + visible(text).replace("\n", "\n    ") for name, text in said.items()]


_IF_MISSING = "mneme_recall finds items and their ids."
TOOLS = (
    ToolSpec(
        name="mneme_get",
        title="Read an item",
        description=(
            "Reads one item whole: a memory, lesson, session or whatever an answer named.\n"
            "Use it when a short text is not enough.\n"
            "Returns all of its fields; of a session also its events.\n"
            'Example: {"id": "session s-42"}.'
        ),
        arguments=ItemArguments,
        output=GetOutput,
        handler=get,
        read_only=True,
        if_missing=_IF_MISSING,
    ),
    ToolSpec(
        name="mneme_update",
        title="Correct an item",
        description=(
            "Rewrites one item that was wrong or misspelt, or its labels; its old text is gone.\n"
            "Use it to correct what was never true; where something has changed, use "
            "mneme_remember with replaces.\n"
            "Returns the item.\n"
            'Example: {"id": "memory 01M8ZQ", "text": "Ann lives in Bern"}.'
        ),
        arguments=UpdateArguments,
        output=UpdateOutput,
        handler=update,
        destructive=True,
        if_missing=_IF_MISSING,
    ),
    ToolSpec(
        name="mneme_forget",
        title="Forget an item",
        description=(
            "Forgets one item, or brings it back.\n"
            "Use it when the user wants something forgotten or deleted, or that undone.\n"
            "Returns how to undo it; what cannot be undone is only forgotten with final.\n"
            'Example: {"id": "lesson 01M8ZQ"}.'
        ),
        arguments=ForgetArguments,
        output=ForgetOutput,
        handler=forget,
        destructive=True,
        if_missing=_IF_MISSING,
    ),
)
