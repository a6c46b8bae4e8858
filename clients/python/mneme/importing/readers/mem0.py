"""mem0's exports: what `get_all` and the platform's list of memories answer.

Each fact becomes one event, for there are no memories yet to hold it. The facts of a user (or of
an agent or a run, where no user is named) are one session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mneme.importing.messages import parse_time, raw
from mneme.importing.plan import Planned, UnusableError, clean, clip, digest, label, tidy
from mneme.importing.readers.base import Reader
from mneme.importing.reading import Record

_LISTS = ("results", "memories")
_OWNERS = ("user_id", "agent_id", "run_id", "app_id")
# What an answer to a question says of a fact, rather than the fact of itself.
_OF_THE_SEARCH = ("score",)


class Mem0(Reader):
    """Reads facts."""

    name = "mem0"
    title = "mem0's exports"

    @classmethod
    def detects(cls, value: Any) -> int:
        """A fact has an id and its words under `memory`."""
        return 70 if any(map(_is_fact, _facts(value)[:5])) else 0

    def read(self, record: Record) -> Iterator[Planned]:
        """Plan the facts of a record, those of each owner apart."""
        facts, unmasked = _facts(record.value), _facts(record.unmasked)
        if not facts:
            raise UnusableError("holds no facts")
        by_owner: dict[str, Planned] = {}
        for fact, original in zip(facts, unmasked, strict=True):
            owner = _owner(original)
            planned = by_owner.get(owner)
            if planned is None:
                planned = by_owner[owner] = self._session(record, owner, fact)
            _add(planned, owner, fact, original)
        yield from by_owner.values()
        value = record.value
        relations = value.get("relations") if isinstance(value, Mapping) else None
        if isinstance(relations, list) and relations and by_owner:
            session_id, planned = next(iter(by_owner.items()))
            for relation in relations:
                event = raw("relation", relation, None, planned.notes, planned.kept)
                planned.add(session_id, f"mem0:relation:{digest(relation)[:20]}", event)

    def _session(self, record: Record, owner: str, fact: Any) -> Planned:
        planned = Planned(record.place)
        of = {key: label(fact[key], planned.notes) for key in _OWNERS if _has(fact, key)}
        planned.start = {
            "session_id": owner,
            "agent_id": self.defaults.agent_id or of.get("agent_id"),
            "user_id": self.defaults.user_id or of.get("user_id"),
            "project": self.defaults.project or of.get("app_id"),
            "tags": [*self.defaults.tags, "mem0"],
            "metadata": dict(of) or None,
        }
        return planned


def _facts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        for key in _LISTS:
            if isinstance(value.get(key), list):
                return list(value[key])
        return [value] if _is_fact(value) else []
    return value if isinstance(value, list) else []


def _is_fact(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("memory"), str) and "id" in value


def _has(fact: Any, key: str) -> bool:
    return isinstance(fact, Mapping) and isinstance(fact.get(key), str | int) and fact[key] != ""


def _owner(fact: Any) -> str:
    """The session of a fact: of whom it is."""
    of = [(key, str(fact[key])) for key in _OWNERS if _has(fact, key)]
    name = "".join(c if c.isalnum() and c.isascii() else "-" for c in of[0][1])[:60] if of else ""
    return "-".join(filter(None, ["mem0", name, digest(of)[:12]]))


def _add(planned: Planned, session_id: str, fact: Any, original: Any) -> None:
    if not _is_fact(fact):
        event = raw("memory", fact, "memory without words", planned.notes, planned.kept)
        planned.add(session_id, f"mem0:{digest(original)[:20]}", event)
        return
    said = {key: value for key, value in original.items() if key not in _OF_THE_SEARCH}
    words = clean(fact["memory"], planned.notes)
    time = parse_time(fact.get("updated_at")) or parse_time(fact.get("created_at"))
    event = {
        "event_type": "custom",
        "name": "memory",
        "text": clip(words, planned.notes),
        "timestamp": time,
        "payload": {"memory": tidy({k: fact[k] for k in said if k in fact}, planned.notes)},
        "metadata": {"userId": str(fact["user_id"])} if _has(fact, "user_id") else None,
    }
    # A fact that mem0 changed later is told once more, as it is then; nothing here changes.
    planned.add(session_id, f"mem0:{fact['id']}:{digest(said)[:12]}", event)
