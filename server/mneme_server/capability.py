"""Capabilities: what each brings to the server, and what the server gives it.

A capability is one folder: its domain, `store.py`, `service.py` (folders where they are long), and
`capability.py`, which declares a `Capability`. `capabilities.py` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from mneme_server.edge.grpc.methods import kinds_brought_by
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.background.tenant_worker import TenantWorker
from mneme_server.engine.corpus.document import MemoryKind
from mneme_server.engine.corpus.forgetting import Dependents, Purge, WhileForgetting
from mneme_server.engine.corpus.tenant import TenantsAtOnce
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.engine.runtime import Runtime
from mneme_server.engine.settings import ServerSettings
from mneme_server.engine.store.forgetting import Forgets
from mneme_server.engine.store.memories import MemoryKinds, Shown
from mneme_server.engine.store.unit import Seal, Unit
from mneme_server.engine.tenants.feed_followers import DurableFollower

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gauge:
    """A figure for operators, read when it is asked for; a name like `mneme_open_tenants`."""

    name: str
    meaning: str
    value: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a tenant, read in a transaction of it: a count, like "episodes", or an average,
    like "average_episode_reward", which is None of nothing."""

    name: str
    value: Callable[[CorpusUnit], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a capability consists of while the server runs.

    `calls` serve some of the calls of a service that another capability brings. `offers` are the
    use cases that later capabilities may ask for, by their class. `jobs` are done beside the calls.
    `followers` see every change of every tenant, once. `dependents` rest on what other capabilities
    keep; `figures` are shown among a tenant's statistics. `forgetting` is held while something of a
    tenant is forgotten, for what is kept in memory or in files; `purge` drops what is kept there of
    what was erased, on each server that has the tenant. `resume` is called when the server starts,
    once operations are: it goes on with what an earlier run left. `close` is called when the server
    ends, after the last call.
    """

    services: Sequence[Service] = ()
    calls: Sequence[Service] = ()
    offers: Sequence[object] = ()
    jobs: Mapping[str, TenantWorker] = field(default_factory=dict)
    followers: Sequence[DurableFollower] = ()
    forgetting: WhileForgetting | None = None
    purge: Purge | None = None
    gauges: Sequence[Gauge] = ()
    dependents: Sequence[Dependents] = ()
    figures: Sequence[Figure] = ()
    resume: Callable[[], object] | None = None
    close: Callable[[], object] | None = None


class Host:
    """What the server gives a capability to build on.

    Args:
        settings: the server's.
        runtime: the open tenants, the embedder, the jobs.
        offers: what is there before the first capability.
    """

    def __init__(
        self, settings: ServerSettings, runtime: Runtime, offers: Sequence[object] = ()
    ) -> None:
        self._settings = settings
        self.runtime = runtime
        self._offers: dict[type, object] = {}
        self.forgetting: list[WhileForgetting] = []
        """What each capability does while something is forgotten; complete once all are built."""
        self.purges: list[Purge] = []
        """How each capability drops what it holds of what was erased; complete once all are
        built."""
        self.offer(offers)
        self.dependents: list[Dependents] = []
        """What rests on something else, of all capabilities, in their order, once all are made."""
        self.services: list[str] = []
        """The names of Mneme's services, once all are made."""
        self.figures: list[Figure] = []
        """The figures of tenants that capabilities show, once all are made."""

    def settings(self, kind: type[T]) -> T:
        """Return the settings that a capability declares.

        Raises:
            LookupError: they are not among the server's.
        """
        if not isinstance(self._settings, kind):
            raise LookupError(f"{kind.__name__} must be a base of mneme_server.settings.Settings")
        return self._settings

    @property
    def tenants(self) -> TenantsAtOnce[Unit]:
        """Where use cases get a tenant from."""
        return self.runtime.tenants

    @property
    def kinds(self) -> MemoryKinds:
        """The kinds of memory that all capabilities together bring."""
        return self.runtime.schema.kinds

    def take(self, parts: Parts) -> None:
        """Take note of what a capability consists of."""
        self.offer(parts.offers)
        if parts.forgetting is not None:
            self.forgetting.append(parts.forgetting)
        if parts.purge is not None:
            self.purges.append(parts.purge)

    def offer(self, offers: Sequence[object]) -> None:
        """Let later capabilities have these."""
        self._offers |= {type(one): one for one in offers}

    def get(self, kind: type[T]) -> T:
        """Return what an earlier capability offers: of this class, or of one below it.

        Raises:
            LookupError: none does; it must come before in the list.
        """
        below = (one for one in self._offers.values() if isinstance(one, kind))
        found = self._offers.get(kind) or next(below, None)
        if not isinstance(found, kind):
            raise LookupError(f"no capability before this one offers {kind.__name__}")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """What a capability declares.

    Args:
        name: its folder's.
        build: makes it, once, when the server starts.
        kinds: the kinds of memory that recall finds, filters by and shows, with how it reads what
            it shows beside a memory's text; None: nothing. The option `brings_kinds` of one of the
            capability's services names the same kinds.
        seals: adds to each transaction that changes what is searched, before it is committed.
        forgets: how it forgets what its tables hold; None: it has none.
        implements: its repositories for ports by which capabilities below it ask for something.
        migrations: a folder of Alembic revisions of its own, a branch; None for those whose tables
            the trunk makes.
        catalog_migrations: the same for tables in the catalog, of what belongs to the server and
            outlives a tenant; their repositories take the `Database` that the host gives.
    """

    name: str
    build: Callable[[Host], Parts]
    kinds: Mapping[MemoryKind, Shown] = field(default_factory=dict)
    seals: Seal | None = None
    forgets: Forgets | None = None
    implements: Mapping[type, type] = field(default_factory=dict)
    migrations: Path | None = None
    catalog_migrations: Path | None = None

    def start(self, host: Host) -> Parts:
        """Make the capability.

        Raises:
            LookupError: its services do not say that they bring its kinds of memory, or say that
                they bring others.
        """
        parts = self.build(host)
        said = frozenset[str]().union(*(kinds_brought_by(s.descriptor) for s in parts.services))
        brought = {kind.name for kind in self.kinds}
        if said != brought:
            raise LookupError(
                f"the capability {self.name} brings the kinds of memory {_listed(brought)}, but the"
                f" options (mneme.v1.brings_kinds) of its services say {_listed(said)}"
            )
        return parts


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
