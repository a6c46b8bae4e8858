"""Exports, and imports of them: what is written, and what becomes of ids that are taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, Protocol, TypeVar

from mneme_server.common.errors import AlreadyExists
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import CorpusUnit

_EXPORT_PAGE = 200


class OnConflict(IntEnum):
    """What to do with an imported item whose id is taken by other content."""

    FAIL = 1
    SKIP = 2
    REPLACE = 3


@dataclass(slots=True)
class ImportReport:
    """What became of imported items."""

    ids: list[str]
    created: int = 0
    replaced: int = 0
    unchanged: int = 0
    skipped: int = 0


class _Item(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_Item)


def exported(
    tenant: OpenTenant, read: Callable[[CorpusUnit, str, int], Sequence[T]]
) -> Iterator[T]:
    """Yield items by id, a page to a transaction.

    Args:
        tenant: whose they are.
        read: returns the items by id, after that id, as many as the number says.
    """
    after = ""
    while True:
        with tenant.read() as unit:
            page = read(unit, after, _EXPORT_PAGE)
        if not page:
            return
        yield from page
        after = page[-1].id


@dataclass(slots=True)
class Import(Generic[T]):
    """What is to be done to bring items in.

    Attributes:
        report: what becomes of them.
        stored: the items by id, as they are once it is done.
        rows: the places of those to write, among those given.
        replaced: the ids of those to write that were there with other content.
    """

    report: ImportReport
    stored: dict[str, T]
    rows: list[int] = field(default_factory=list)
    replaced: set[str] = field(default_factory=set)


def import_of(
    given: Sequence[T],
    stored: Mapping[str, T],
    same: Callable[[T, T], bool],
    on_conflict: OnConflict,
    noun: str,
) -> Import[T]:
    """Return what is to be done with each item; of several with one id the last one is written.

    Args:
        given: the items, each with an id.
        stored: those of their ids that are there.
        same: whether two items of an id have the same content.
        on_conflict: what to do with the others.
        noun: what an item is called.

    Raises:
        AlreadyExists: an id is taken by other content, and `on_conflict` is FAIL.
    """
    done = Import(ImportReport([item.id for item in given]), dict(stored))
    rows: dict[str, int] = {}
    for row, item in enumerate(given):
        before = done.stored.get(item.id)
        if before is None:
            done.report.created += 1
        elif same(before, item):
            done.report.unchanged += 1
            continue
        elif on_conflict == OnConflict.SKIP:
            done.report.skipped += 1
            continue
        elif on_conflict == OnConflict.FAIL:
            raise AlreadyExists(
                f"{noun} {item.id!r} already exists with different content", field="id", item=row
            )
        else:
            done.report.replaced += 1
            done.replaced.add(item.id)
        done.stored[item.id] = item
        rows[item.id] = row
    done.rows = list(rows.values())
    return done
