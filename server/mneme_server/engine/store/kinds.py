"""The kinds of memory that the capabilities bring, and how what is shown of them is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Column

from mneme_server.common.canonical import JsonObject
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.kinds import MAX_KINDS, MemoryKind


@dataclass(frozen=True, slots=True, eq=False)
class Details:
    """What is shown of a kind's memories beside their documents: columns of one table.

    Args:
        key: the column that holds the documents' `source_id`s; its table has a `tenant_id`.
        columns: what `decode` reads.
        decode: makes the details of the values of `columns`, in their order. What it raises of
            `common.stored.UNREADABLE` says that the row is damaged.
        followed: whether each change of `columns` changes the memory's document, too, in the same
            transaction (`DocumentWriter.set_archived` with what it is does), so that the feed names
            it: then servers on PostgreSQL show these memories from copies of their own. The values
            are such as JSON has.
    """

    key: Column[str]
    columns: tuple[Column[Any], ...]
    decode: Callable[..., JsonObject]
    followed: bool = False


Told: TypeAlias = Callable[[Document], JsonObject]
"""Makes the details of a kind whose documents tell all that is shown; raises as `decode` does."""

Shown: TypeAlias = Details | Told | None
"""What is shown of a kind's memories; None: nothing but their documents."""


class MemoryKinds:
    """All kinds of memory.

    Args:
        brought: what each capability brings.

    Raises:
        ValueError: two kinds have one name, or there are too many.
    """

    def __init__(self, brought: Iterable[Mapping[MemoryKind, Shown]]) -> None:
        self.by_name: dict[str, MemoryKind] = {}
        self._details: dict[str, Details] = {}
        self._told: dict[str, Told] = {}
        for kinds in brought:
            for kind, shown in kinds.items():
                self._add(kind, shown)

    def details(self, kind: MemoryKind) -> Details | None:
        """Return how the details of a kind are read; None: they are in no table."""
        return self._details.get(kind.name)

    def told(self, document: Document) -> JsonObject:
        """Return the details that a document tells."""
        told = self._told.get(document.kind.name)
        return {} if told is None else told(document)

    def _add(self, kind: MemoryKind, shown: Shown) -> None:
        if kind.name in self.by_name:
            raise ValueError(f"two kinds of memory are called {kind.name}")
        if len(self.by_name) == MAX_KINDS:
            raise ValueError(f"there may be {MAX_KINDS} kinds of memory at most")
        self.by_name[kind.name] = kind
        if isinstance(shown, Details):
            self._details[kind.name] = shown
        elif shown is not None:
            self._told[kind.name] = shown
