"""The attributes of documents, said once: how a store keeps each, how an index holds it, and what
filters ask of it.

The store's columns, the index's columns and their coding, the conditions that both look for, and
what is committed to follow from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeAlias

from mneme_server.engine.corpus.document import Document, DocumentFilter, MemoryKind


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of documents.

    Args:
        name: of `Document`.
        stored: the type of what a store keeps: of text for tags, and for the name of a kind.
        column: what a store calls it.
        held: what an index calls it; "" where an index has no column of it.
        dtype: the type of that column, as NumPy names it.
        coded: whether the column has numbers that stand for names.
        committed: whether it is part of what is committed to; see `features.proof.versions`.
    """

    name: str
    stored: type
    column: str
    held: str = ""
    dtype: str = ""
    coded: bool = False
    committed: bool = False

    @property
    def is_byte(self) -> bool:
        """Whether an index keeps it in a byte, and it is no number of a name."""
        return self.dtype == "uint8" and not self.coded


def _text(name: str, held: str = "", *, committed: bool = True) -> Attribute:
    return Attribute(name, str, name, held, "int32", coded=True, committed=committed)


ATTRIBUTES = (
    Attribute("doc_id", int, "doc_id", "doc_id", "int64"),
    Attribute("kind", str, "kind", "kind", "uint8", coded=True),
    Attribute("source_id", str, "source_id"),
    Attribute("text", str, "text"),
    Attribute("timestamp_us", int, "timestamp", "timestamp_us", "int64"),
    _text("session_id", "session"),
    Attribute("position", int, "position", "position", "int64"),
    _text("agent_id", "agent"),
    _text("user_id", "user"),
    _text("project", "project"),
    _text("category", "category"),
    Attribute("importance", int, "importance", "importance", "uint8"),
    Attribute("archived", bool, "archived", "archived", "bool", committed=True),
    _text("type", "type"),
    _text("name", "name"),
    _text("role", "role"),
    Attribute("severity", int, "severity", "severity", "uint8", committed=True),
    Attribute("shape", int, "shape", "shape", "int64"),
    Attribute("value", float, "value", "value", "float64", committed=True),
    Attribute("tags", str, "tags", "tags", "int32", coded=True, committed=True),
)
"""In the order in which `Document` takes them; what it has besides is in no column."""

BY_NAME = {attribute.name: attribute for attribute in ATTRIBUTES}
HELD = {attribute.held: attribute for attribute in ATTRIBUTES if attribute.held}
"""Those of which an index has a column, by the column's name."""


def _require_order() -> None:
    taken = [field.name for field in fields(Document)][: len(ATTRIBUTES)]
    if taken != list(BY_NAME):
        raise TypeError(f"Document takes {taken}, which are not the attributes in their order")


_require_order()


class Among(NamedTuple):
    """The attribute is one of these."""

    attribute: Attribute
    values: Sequence[str | int]


class Between(NamedTuple):
    """The attribute is at least `least` and less than `end`, where they are given."""

    attribute: Attribute
    least: float | None
    end: int | None = None


class Tagged(NamedTuple):
    """The document has all of these tags, or one of them."""

    tags: Sequence[str]
    all: bool


class SaidBy(NamedTuple):
    """The author is this one: a role, an agent's id or the label of a text, in any case."""

    author: str


class NotArchived(NamedTuple):
    """The document is not archived, or of one of these kinds."""

    besides: Sequence[MemoryKind]


Condition: TypeAlias = Among | Between | Tagged | SaidBy | NotArchived
"""One of the things that a filter asks for."""


def conditions(wanted: DocumentFilter) -> Iterator[Condition]:
    """Yield what a filter asks for; all of it must be so."""
    yield from _names(wanted)
    if wanted.author:
        yield SaidBy(wanted.author)
    if wanted.importance:
        yield Among(BY_NAME["importance"], [wanted.importance])
    if wanted.min_severity:
        yield Between(BY_NAME["severity"], wanted.min_severity)
    if wanted.min_value is not None:
        yield Between(BY_NAME["value"], wanted.min_value)
    if wanted.start_us is not None or wanted.end_us is not None:
        yield Between(BY_NAME["timestamp_us"], wanted.start_us, wanted.end_us)
    if not wanted.include_archived:
        yield NotArchived(sorted(wanted.archived_kinds, key=lambda kind: kind.name))
    for tags, every in ((wanted.tags, True), (wanted.any_tags, False)):
        if tags:
            yield Tagged(sorted(tags), every)


def _names(wanted: DocumentFilter) -> Iterator[Condition]:
    if wanted.kinds:
        yield Among(BY_NAME["kind"], sorted(kind.name for kind in wanted.kinds))
    for name, value, shared in (
        ("session_id", wanted.session_id, False),
        ("agent_id", wanted.agent_id, wanted.shared),
        ("user_id", wanted.user_id, wanted.shared),
        ("project", wanted.project, wanted.shared),
        ("name", wanted.name, False),
    ):
        if value:
            yield Among(BY_NAME[name], [value, ""] if shared else [value])
    for name, values in (
        ("category", wanted.categories or None),
        ("type", wanted.types or None),
        ("session_id", wanted.session_ids),
        ("user_id", {""} if wanted.of_no_user else None),
    ):
        if values is not None:
            yield Among(BY_NAME[name], sorted(values))
