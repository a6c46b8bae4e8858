"""Ports to what the use cases of proof need from storage."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mneme_server.common.canonical import Json
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.kinds import MemoryKind
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.causal.ports import EdgeRepository
from mneme_server.features.events.ports import EventRepository
from mneme_server.features.proof.merkle import Tree
from mneme_server.features.proof.versions import ItemVersion
from mneme_server.features.skills.ports import SkillRepository


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """A certificate: the SHA-256 of its text, in hex, and the text. Holds salts."""

    id: str
    text: str
    created_us: int


class CertificateLimits(NamedTuple):
    """What is kept of a tenant's certificates at most: how many, of how many bytes together."""

    certificates: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of the tenant's log: a version of an item.

    `index` counts from 0, `hash` is the leaf's in the tree. `salt` and `content` are kept of an
    item's newest version only, and not of what keeps them itself (an event, whose `commitment` may
    be empty here, too). `forgotten_us` is when they were erased for good; None when they were not.
    `source_id` is empty then.
    """

    index: int
    hash: bytes
    kind: str
    source_id: str
    commitment: bytes = b""
    salt: bytes = b""
    content: str = ""
    forgotten_us: int | None = None


class LogName(NamedTuple):
    """What names a log, and the store's generation that it was begun in."""

    id: str
    generation: int


class LogRepository(Protocol):
    """The tenant's append-only log."""

    def size(self) -> int:
        """Return how many leaves it has."""
        ...

    def tree(self, size: int | None = None) -> Tree:
        """Return the tree of the first `size` leaves, or of all."""
        ...

    def name(self) -> LogName | None:
        """Return what names the log; None before its head is first asked for."""
        ...

    def begin(self, name: LogName) -> None:
        """Give the log a name, in the place of the one it has."""
        ...

    def add(self, versions: Sequence[ItemVersion]) -> None:
        """Append a leaf for each.

        What is searched gets its leaves by itself, when its transaction ends.
        """
        ...

    def at(self, index: int) -> Leaf | None:
        """Return the leaf of an index; None when there is none. Of an event, its document's
        number tells which: `source_id` is empty when that is gone."""
        ...

    def leaves_of(self, kind: str, source_ids: Collection[str]) -> Mapping[str, Sequence[Leaf]]:
        """Return the leaves of items by their ids, oldest first. Items without any are left out.

        An event's are found by its document, for as long as that is there.
        """
        ...

    def newest(self, kind: str, source_ids: Collection[str]) -> Mapping[str, Leaf]:
        """Return the newest leaf of each item that has one, by the items' ids."""
        ...

    def unaccounted(self) -> int:
        """Return how many leaves are of nothing: of an event that is neither stored nor forgotten,
        or of no item at all; fewer than 0 where more is stored than has leaves."""
        ...

    def events_of(self, session_id: str) -> int:
        """Return how many events of a session can be recalled."""
        ...

    def any_forgotten(self, indexes: Collection[int]) -> bool:
        """Return whether any of these leaves was forgotten."""
        ...

    def forget(
        self, kind: str, source_ids: Collection[str], now_us: int
    ) -> Mapping[str, Sequence[Leaf]]:
        """Erase salts, contents and ids of all versions of these items, for good, and return their
        leaves as `leaves_of` did before. Commitments and hashes stay, and so every proof.

        To be called before their documents are removed, in the same transaction: that they were
        removed is then not logged, since it would name them. What keeps its own salt erases it
        itself.
        """
        ...


class CertificateRepository(Protocol):
    """The tenant's certificates. They hold salts and contents."""

    def add(
        self,
        certificate: StoredCertificate,
        asked: DocumentFilter,
        items: Collection[tuple[str, str]],
        most: CertificateLimits,
    ) -> int:
        """Insert a certificate of these items (kind, id), found by that filter, and remove the
        oldest beyond what is kept at most; return how many that were, this one too if it is."""
        ...

    def get(self, certificate_id: str) -> StoredCertificate | None:
        """Return the certificate, or None."""
        ...

    def total(self) -> int:
        """Return how many there are."""
        ...


class Forgotten(Protocol):
    """A forgetting: what it marks as forgotten, and who signed that; see
    `features.admin.forgetting.model.Forgetting`."""

    @property
    def leaves(self) -> Sequence[tuple[int, int]]:
        """Leaves of the log, as runs of the first and the last."""
        ...

    @property
    def places(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        """Places in chains of events, likewise, by the digests of their sessions."""
        ...

    @property
    def mark(self) -> Mapping[str, Json] | None:
        """`public_key` and `signature`, in Base64; None of what nobody signed."""
        ...

    def marked(self, tenant_id: str) -> str:
        """Return what is signed."""
        ...


class ForgettingsReader(Protocol):
    """What the tenant forgot."""

    def all(self) -> Sequence[Forgotten]:
        """Return all forgettings."""
        ...


class ShownKinds(Protocol):
    """What is known of how kinds of memory are shown."""

    def follows(self, kind: MemoryKind) -> bool:
        """Return whether what is shown of a kind beside its documents changes with these alone."""
        ...


class ProofUnit(CorpusUnit, Protocol):
    """One transaction, as far as proof is concerned."""

    @property
    def log(self) -> LogRepository:
        """The tenant's log."""
        ...

    @property
    def events(self) -> EventRepository:
        """The tenant's events."""
        ...

    @property
    def causal_edges(self) -> EdgeRepository:
        """The tenant's edges of cause and effect."""
        ...

    @property
    def certificates(self) -> CertificateRepository:
        """The tenant's certificates."""
        ...

    @property
    def forgettings(self) -> ForgettingsReader:
        """What the tenant forgot."""
        ...

    @property
    def shown(self) -> ShownKinds:
        """How memories are shown."""
        ...

    @property
    def skills(self) -> SkillRepository:
        """The tenant's skills."""
        ...
