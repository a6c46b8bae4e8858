"""Checking what a certificate shows against the log as it is now, and the rows that it rests on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from mneme.proof.certificates import CertifiedItem, Problem, VerifiedCertificate
from mneme.proof.notes import Checkpoint, VerifierKey

from mneme_server.common.errors import DataLoss
from mneme_server.engine.corpus.kinds import MemoryKind
from mneme_server.features.proof.heads import origin_of
from mneme_server.features.proof.leaves import leaves_of, require_proved
from mneme_server.features.proof.marks import Marks, marks_of
from mneme_server.features.proof.merkle import TILE, leaf_hash
from mneme_server.features.proof.ports import Leaf, ProofUnit
from mneme_server.features.proof.versions import commitment_of


class Since(Enum):
    """What became of a result; the names are those of `mneme.v1.CertifiedStateKind`."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    REMOVED = "removed"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class State:
    """What became of a result since its certificate was made. `newest` is the place of the item's
    newest leaf; None when there is none any more."""

    item: CertifiedItem
    since: Since
    newest: int | None = None
    forgotten_us: int | None = None


def check(
    tenant_id: str,
    unit: ProofUnit,
    found: VerifiedCertificate,
    kinds: Mapping[str, MemoryKind],
    keys: Sequence[VerifierKey],
) -> tuple[Sequence[Problem], Sequence[State]]:
    """Return what speaks against a certificate, or else what became of its results. `keys` are the
    tenant's.

    That of a log before this one is proved by its signature alone: that log is not there any more.
    """
    head, name = found.checkpoint, unit.log.name()
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


def _of_head(unit: ProofUnit, head: Checkpoint) -> Iterator[Problem]:
    size = unit.log.size()
    if head.size > size:
        yield Problem("log", f"it has {size} leaves, the certificate's head {head.size}")
    elif unit.log.tree(head.size).root() != head.root:
        yield Problem("log", f"its first {head.size} leaves are not those that were signed")


def _of_leaves(
    unit: ProofUnit, head: Checkpoint, items: Sequence[CertifiedItem]
) -> Iterator[Problem]:
    """Yield what speaks against the tiles that each result's proof is read from."""
    tree = unit.log.tree(head.size)
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
    unit: ProofUnit,
    states: Sequence[State],
    kinds: Mapping[str, MemoryKind],
    keys: Sequence[VerifierKey],
) -> Iterator[Problem]:
    """Yield what speaks against the rows that say what became of the results."""
    marks: Marks | None = None
    for state in states:
        kind, source_id = state.item.source_type, state.item.source_id
        what = f"{kind} {source_id!r}"
        if state.since is Since.REMOVED and state.newest is None:
            yield Problem("rows", f"the log names no leaf of {what}: its row was changed")
        elif state.since is Since.REMOVED and state.newest is not None:
            leaf = unit.log.at(state.newest)
            if leaf is None or not _gives_hash(leaf):
                yield Problem(
                    "rows", f"the log does not say that {what} was removed: it was changed"
                )
        elif state.since is Since.FORGOTTEN:
            marks = marks or marks_of(tenant_id, unit, keys)
            if not marks.has_leaf(state.item.leaf_index):
                yield Problem(
                    "rows",
                    f"leaf {state.item.leaf_index} is marked as forgotten, and nothing that was"
                    " signed says so: it was changed",
                )
        elif state.since in (Since.UNCHANGED, Since.CHANGED):
            memory = unit.memories.of_sources(kinds[kind], [source_id]).get(source_id)
            if memory is None:
                yield Problem("rows", f"{what} cannot be read as it was logged: it was changed")
                continue
            try:
                leaves_of(unit, [memory])
            except DataLoss as error:
                yield _problem(error)


def _gives_hash(leaf: Leaf) -> bool:
    given = commitment_of(leaf.salt, leaf.content)
    return given == leaf.commitment and leaf_hash(given) == leaf.hash


def _problem(error: DataLoss) -> Problem:
    return Problem("log" if error.metadata.get("kind") == TILE else "rows", error.message)


def _states(unit: ProofUnit, items: Sequence[CertifiedItem]) -> list[State]:
    by_kind: dict[str, list[str]] = {}
    for item in items:
        by_kind.setdefault(item.source_type, []).append(item.source_id)
    newest = {kind: unit.log.newest(kind, ids) for kind, ids in by_kind.items()}
    return [_state(unit, item, newest[item.source_type].get(item.source_id)) for item in items]


def _state(unit: ProofUnit, item: CertifiedItem, newest: Leaf | None) -> State:
    leaf = unit.log.at(item.leaf_index)
    if leaf is not None and leaf.hash == item.hash and leaf.forgotten_us is not None:
        return State(item, Since.FORGOTTEN, forgotten_us=leaf.forgotten_us)
    if newest is None:
        return State(item, Since.REMOVED)
    if newest.hash == item.hash:
        return State(item, Since.UNCHANGED, newest.index)
    removed = newest.content and "removed_at" in json.loads(newest.content)
    return State(item, Since.REMOVED if removed else Since.CHANGED, newest.index)
