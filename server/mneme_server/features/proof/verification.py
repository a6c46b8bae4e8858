"""The verification of certificates against the log, and proofs for those who audit it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from mneme.proof.certificates import (
    CertifiedItem,
    Problem,
    VerifiedCertificate,
    inspect_certificate,
)
from mneme.proof.notes import Checkpoint, VerifierKey

from mneme_server.common.clock import from_rfc3339
from mneme_server.common.errors import DataLoss, InvalidArgument, NotFound, Reason
from mneme_server.engine.corpus.document import MemoryKind
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.proof.heads import Heads, LogHead, origin_of
from mneme_server.features.proof.keys import trusted
from mneme_server.features.proof.leaves import (
    Marks,
    gives_hash,
    leaves_of,
    marks_of,
    require_proved,
)
from mneme_server.features.proof.merkle import TILE, Tree
from mneme_server.features.proof.model import Leaf
from mneme_server.features.proof.store.log import SqlLog


@dataclass(frozen=True, slots=True)
class CertificateVerdict:
    """What was found about a certificate; it is valid when there are no problems."""

    problems: Sequence[Problem]
    states: Sequence[CertifiedState] = ()
    created_us: int | None = None


@dataclass(frozen=True, slots=True)
class Inclusion:
    """A proof that a leaf is in the tree of `size` leaves."""

    leaf: Leaf
    size: int
    hashes: Sequence[bytes]
    origin: str


@dataclass(frozen=True, slots=True)
class Consistency:
    """A proof that one tree begins with another."""

    old_size: int
    new_size: int
    hashes: Sequence[bytes]
    origin: str


@dataclass(frozen=True, slots=True)
class Proofs:
    """The use cases of those who check."""

    tenants: OpenTenants
    heads: Heads
    kinds: Mapping[str, MemoryKind]

    def checkpoint(self, tenant_id: str) -> LogHead:
        """Return the head of the log as it is now, signed."""
        with self.tenants.open(tenant_id) as tenant:
            return self.heads.signed(tenant_id, tenant, lambda _unit, head: head)

    def consistency(self, tenant_id: str, old_size: int, new_size: int) -> Consistency:
        """Return what joins two heads; a `new_size` of 0 is that of all leaves.

        Raises:
            InvalidArgument: the log never was of such a size.
        """

        def proof(unit: CorpusUnit, head: LogHead) -> Consistency:
            tree = _tree_of(head, new_size, "new_size")
            if old_size > tree.size:
                raise _out_of_range(
                    f"a head of {old_size} leaves does not come before one of {tree.size}",
                    "old_size",
                )
            hashes = tree.consistency(old_size)
            return Consistency(old_size, tree.size, hashes, head.signed.origin)

        with self.tenants.open(tenant_id) as tenant:
            return self.heads.signed(tenant_id, tenant, proof)

    def inclusion(self, tenant_id: str, of: int | tuple[str, str], size: int) -> Inclusion:
        """Return what joins a leaf to a head: by its place, or the newest of an item (kind, id).

        Raises:
            InvalidArgument: there is no such leaf in the tree of that size.
            NotFound: the item has no leaf.
        """

        def proof(unit: CorpusUnit, head: LogHead) -> Inclusion:
            tree = _tree_of(head, size, "size")
            leaf = _leaf(unit, of)
            if leaf is None or leaf.index >= tree.size:
                index = of if leaf is None else leaf.index
                raise _out_of_range(f"a log of {tree.size} leaves has none at {index}", "of")
            return Inclusion(leaf, tree.size, tree.inclusion(leaf.index), head.signed.origin)

        with self.tenants.open(tenant_id) as tenant:
            return self.heads.signed(tenant_id, tenant, proof)

    def verify(self, tenant_id: str, text: str) -> CertificateVerdict:
        """Check a certificate of this tenant, and tell what became of its results since."""
        with self.tenants.open(tenant_id) as tenant:
            try:
                with self.heads.checked(tenant_id, tenant) as (unit, known):
                    keys = trusted(known.keys)
                    found, problems = inspect_certificate(text, *keys)
                    if found is None:
                        return CertificateVerdict(problems)
                    more, states = check(tenant_id, unit, found, self.kinds, keys)
            except DataLoss as error:
                return CertificateVerdict([Problem("log", error.message)])
        return CertificateVerdict([*problems, *more], states, _created_us(found))


class CertifiedStateKind(Enum):
    """What became of a result; the names are those of `mneme.v1.CertifiedStateKind`."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    REMOVED = "removed"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class CertifiedState:
    """What became of a result since its certificate was made. `newest` is the place of the item's
    newest leaf; None when there is none any more."""

    item: CertifiedItem
    since: CertifiedStateKind
    newest: int | None = None
    forgotten_us: int | None = None


def check(
    tenant_id: str,
    unit: CorpusUnit,
    found: VerifiedCertificate,
    kinds: Mapping[str, MemoryKind],
    keys: Sequence[VerifierKey],
) -> tuple[Sequence[Problem], Sequence[CertifiedState]]:
    """Return what speaks against a certificate, or else what became of its results. What it shows
    is checked against the log as it is now, and the rows that it rests on. `keys` are the tenant's.

    That of a log before this one is proved by its signature alone: that log is not there any more.
    """
    head, name = found.checkpoint, unit.get(SqlLog).name()
    if name is None or head.origin != origin_of(tenant_id, name):
        if head.origin.startswith(f"mneme/{tenant_id}/"):
            return [], _states(unit, found.items)
        return [Problem("checkpoint", f"it is the head of another log, {head.origin}")], []
    try:
        problems = list(_of_head(unit, head)) or list(_of_leaves(unit, head, found.items))
        if not problems:
            states = _states(unit, found.items)
            problems = list(_of_rows(tenant_id, unit, states, kinds, keys))
            if not problems:
                return [], states
    except DataLoss as error:
        problems = [_problem(error)]
    return problems, []


def _tree_of(head: LogHead, size: int, field: str) -> Tree:
    if size > head.tree.size:
        raise _out_of_range(f"the log has {head.tree.size} leaves, not {size}", field)
    return Tree(size or head.tree.size, head.tree.read)


def _leaf(unit: CorpusUnit, of: int | tuple[str, str]) -> Leaf | None:
    if isinstance(of, int):
        return unit.get(SqlLog).at(of)
    kind, source_id = of
    leaf = unit.get(SqlLog).newest(kind, [source_id]).get(source_id)
    if leaf is None:
        raise NotFound(f"the log has no leaf of {kind} {source_id!r}", field="of")
    return leaf


def _created_us(found: VerifiedCertificate) -> int | None:
    try:
        return from_rfc3339(str(found.body.get("created_at")))
    except ValueError:
        return None


def _out_of_range(message: str, field: str) -> InvalidArgument:
    return InvalidArgument(message, reason=Reason.OUT_OF_RANGE, field=field)


def _of_head(unit: CorpusUnit, head: Checkpoint) -> Iterator[Problem]:
    size = unit.get(SqlLog).size()
    if head.size > size:
        yield Problem("log", f"it has {size} leaves, the certificate's head {head.size}")
    elif unit.get(SqlLog).tree(head.size).root() != head.root:
        yield Problem("log", f"its first {head.size} leaves are not those that were signed")


def _of_leaves(
    unit: CorpusUnit, head: Checkpoint, items: Sequence[CertifiedItem]
) -> Iterator[Problem]:
    """Yield what speaks against the tiles that each result's proof is read from."""
    tree = unit.get(SqlLog).tree(head.size)
    for item in items:
        index = item.leaf_index
        if tree.leaf(index) != item.hash:
            yield Problem("log", f"its leaf {index} is not that which was signed")
            continue
        try:
            require_proved(item.hash, index, head.size, head.root, tree.inclusion(index))
        except DataLoss as error:
            yield _problem(error)


def _of_rows(
    tenant_id: str,
    unit: CorpusUnit,
    states: Sequence[CertifiedState],
    kinds: Mapping[str, MemoryKind],
    keys: Sequence[VerifierKey],
) -> Iterator[Problem]:
    """Yield what speaks against the rows that say what became of the results."""
    marks: Marks | None = None
    for state in states:
        kind, source_id = state.item.source_type, state.item.source_id
        what = f"{kind} {source_id!r}"
        if state.since is CertifiedStateKind.REMOVED and state.newest is None:
            yield Problem("rows", f"the log names no leaf of {what}: its row was changed")
        elif state.since is CertifiedStateKind.REMOVED and state.newest is not None:
            leaf = unit.get(SqlLog).at(state.newest)
            if leaf is None or not gives_hash(leaf):
                yield Problem(
                    "rows", f"the log does not say that {what} was removed: it was changed"
                )
        elif state.since is CertifiedStateKind.FORGOTTEN:
            marks = marks or marks_of(tenant_id, unit, keys)
            if not marks.has_leaf(state.item.leaf_index):
                yield Problem(
                    "rows",
                    f"leaf {state.item.leaf_index} is marked as forgotten, and nothing that was"
                    " signed says so: it was changed",
                )
        elif state.since in (CertifiedStateKind.UNCHANGED, CertifiedStateKind.CHANGED):
            memory = unit.memories.of_sources(kinds[kind], [source_id]).get(source_id)
            if memory is None:
                yield Problem("rows", f"{what} cannot be read as it was logged: it was changed")
                continue
            try:
                leaves_of(unit, [memory])
            except DataLoss as error:
                yield _problem(error)


def _problem(error: DataLoss) -> Problem:
    return Problem("log" if error.metadata.get("kind") == TILE else "rows", error.message)


def _states(unit: CorpusUnit, items: Sequence[CertifiedItem]) -> list[CertifiedState]:
    by_kind: dict[str, list[str]] = {}
    for item in items:
        by_kind.setdefault(item.source_type, []).append(item.source_id)
    newest = {kind: unit.get(SqlLog).newest(kind, ids) for kind, ids in by_kind.items()}
    return [_state(unit, item, newest[item.source_type].get(item.source_id)) for item in items]


def _state(unit: CorpusUnit, item: CertifiedItem, newest: Leaf | None) -> CertifiedState:
    leaf = unit.get(SqlLog).at(item.leaf_index)
    if leaf is not None and leaf.hash == item.hash and leaf.forgotten_us is not None:
        return CertifiedState(item, CertifiedStateKind.FORGOTTEN, forgotten_us=leaf.forgotten_us)
    if newest is None:
        return CertifiedState(item, CertifiedStateKind.REMOVED)
    if newest.hash == item.hash:
        return CertifiedState(item, CertifiedStateKind.UNCHANGED, newest.index)
    removed = newest.content and "removed_at" in json.loads(newest.content)
    return CertifiedState(
        item, CertifiedStateKind.REMOVED if removed else CertifiedStateKind.CHANGED, newest.index
    )
