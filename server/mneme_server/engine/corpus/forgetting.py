"""Forgetting: how a capability erases what it keeps of somebody, and what was made of that; and how
what rests on things goes with them when they are deleted.

A capability knows its own tables, and what in them follows from things of others. Whoever forgets
asks all of them, until nothing more follows, and has each erase what is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import CorpusUnit

Items: TypeAlias = dict[str, set[str]]
"""Ids of things, by what kind of thing they are. A kind is a name: "memory", "session"."""

WhileForgetting: TypeAlias = Callable[
    [OpenTenant], AbstractContextManager[Callable[[Items], object]]
]
"""What a capability does about what it keeps of a tenant outside its database: it holds that as it
is while the block runs, in which rows are erased. What it gives is told what went, once that is
committed and before anything else happens to it."""

Places: TypeAlias = dict[str, list[tuple[int, int]]]
"""Places in chains, as runs of the first and the last, by what names a chain."""

Purge: TypeAlias = Callable[[str, Items], object]
"""How a capability drops what a server holds of a tenant in memory, or in files, of what was erased
from its store by way of any server. Of the items that went it is told as much as is known there:
policies. The tenant may be closed, and cannot be opened then."""

USER, AGENT, SESSION, PROJECT, TAG = "user", "agent", "session", "project", "tag"
"""What things are found by besides their ids."""
TOUCHED = "_touched"
"""Sessions that lose events. Nothing of them need go: names that begin with "_" are no things, but
what others follow from."""
_NAMED = "_named:"


def only_named(items: Mapping[str, Iterable[str]]) -> Items:
    """Return things that are named and are not there any more, as what other things follow from."""
    return {f"{_NAMED}{kind}": set(ids) for kind, ids in items.items()}


def named_of(found: Items) -> Items:
    """Return what of this is named, whether it is there or not."""
    named = {
        kind.removeprefix(_NAMED): ids for kind, ids in found.items() if kind.startswith(_NAMED)
    }
    return merged([things(found), named])


@dataclass(frozen=True, slots=True)
class ForgetFilter:
    """Which things, of those that can be recalled. Empty fields do not filter; given ones must all
    match. `start_us` is inclusive, `end_us` exclusive; `tags` must all be present."""

    kinds: frozenset[str] = frozenset()
    user_id: str = ""
    agent_id: str = ""
    session_id: str = ""
    project: str = ""
    tags: frozenset[str] = frozenset()
    start_us: int | None = None
    end_us: int | None = None


@dataclass(frozen=True, slots=True)
class ForgetSelection:
    """What is to be forgotten; whatever any of the fields names."""

    user_id: str = ""
    agent_id: str = ""
    session_id: str = ""
    items: Mapping[str, frozenset[str]] = field(default_factory=dict)
    filter: ForgetFilter | None = None


class Forgetter(Protocol):
    """How one capability forgets, in one transaction."""

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of things that it erases."""
        ...

    @property
    def renumbered(self) -> frozenset[str]:
        """Those of its kinds whose ids are places, which others take once they are erased."""
        ...

    def named(self, selection: ForgetSelection) -> Items:
        """Return what it has of what a selection names, without what follows from that."""
        ...

    def derived(self, found: Items) -> Items:
        """Return what it has that follows from things that were found, its own or another's."""
        ...

    def recallable(self, found: Items) -> Items:
        """Return what it has of these that can be recalled, by the kind of memory that it is."""
        ...

    def erase(self, found: Items, unit: CorpusUnit) -> None:
        """Erase what it has of these. Capabilities are asked in the reverse of the order in which
        they build on each other; `unit` is the transaction."""
        ...

    @property
    def places(self) -> Places:
        """Which places stay of what it erased in this transaction, to be vouched for."""
        ...

    def names(self, what: str) -> Iterator[str]:
        """Yield what its rows name of `what` they are found by (`USER` to `TAG`), or the ids of
        things of a kind, in any order, perhaps twice."""
        ...


class Dependents(Protocol):
    """A kind of thing that rests on others, and goes with them when they are deleted with all that
    does."""

    @property
    def name(self) -> str:
        """What they are called: "episodes"."""
        ...

    def resting_on(self, unit: CorpusUnit, gone: Mapping[str, Collection[str]]) -> Collection[str]:
        """Return the ids of those that must go when others do.

        `gone` are the ids of what goes, by what it is called: "memories", and dependents that were
        asked before. Nothing is changed.
        """
        ...

    def remove(self, unit: CorpusUnit, ids: Collection[str]) -> None:
        """Remove these, in the transaction; what stays must not name them any more."""
        ...


def merged(found: Iterable[Items]) -> Items:
    """Return everything that several found."""
    together: Items = {}
    for items in found:
        for kind, ids in items.items():
            if ids:
                together.setdefault(kind, set()).update(ids)
    return together


def things(found: Items) -> Items:
    """Return what of this is things that are forgotten."""
    return {kind: ids for kind, ids in found.items() if ids and not kind.startswith("_")}


def beyond(found: Items, known: Items) -> Items:
    """Return what was found and not known before."""
    new = {kind: ids - known.get(kind, set()) for kind, ids in found.items()}
    return {kind: ids for kind, ids in new.items() if ids}
