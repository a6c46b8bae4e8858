"""The kinds of memory that the capabilities bring, and how what is shown of them is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column

from mneme_server.common.canonical import JsonObject
from mneme_server.corpus.kinds import MAX_KINDS, MemoryKind


@dataclass(frozen=True, slots=True, eq=False)
class Details:
    """What is shown of a kind's memories beside their documents: columns of one table.

    Args:
        key: the column that holds the documents' `source_id`s; its table has a `tenant_id`.
        columns: what `decode` reads.
        decode: makes the details of the values of `columns`, in their order. What it raises of
            `common.stored.UNREADABLE` says that the row is damaged.
        joined: the details are read with the documents, in one query: twice as fast for this kind,
            slower for all others. One kind may be, with a column that is never null.
    """

    key: Column[str]
    columns: tuple[Column[Any], ...]
    decode: Callable[..., JsonObject]
    joined: bool = False


class MemoryKinds:
    """All kinds of memory.

    Args:
        brought: what each capability brings.

    Raises:
        ValueError: two kinds have one name, or want to be joined, or there are too many.
    """

    def __init__(self, brought: Iterable[Mapping[MemoryKind, Details | None]]) -> None:
        self.by_name: dict[str, MemoryKind] = {}
        self.joined: tuple[MemoryKind, Details] | None = None
        """The kind whose details are read with the documents."""
        self._details: dict[str, Details] = {}
        for kinds in brought:
            for kind, details in kinds.items():
                self._add(kind, details)

    def details(self, kind: MemoryKind) -> Details | None:
        """Return how the details of a kind are read; None: there are none."""
        return self._details.get(kind.name)

    def _add(self, kind: MemoryKind, details: Details | None) -> None:
        if kind.name in self.by_name:
            raise ValueError(f"two kinds of memory are called {kind.name}")
        if len(self.by_name) == MAX_KINDS:
            raise ValueError(f"there may be {MAX_KINDS} kinds of memory at most")
        self.by_name[kind.name] = kind
        if details is None:
            return
        self._details[kind.name] = details
        if details.joined:
            if self.joined is not None:
                raise ValueError(
                    f"only one kind of memory may have its details joined, not {kind.name} beside"
                    f" {self.joined[0].name}"
                )
            self.joined = kind, details
