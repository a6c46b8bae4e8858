"""Checking certificates against the log, and proofs for those who audit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mneme.proof.certificates import Problem, VerifiedCertificate, inspect_certificate

from mneme_server.common.clock import from_rfc3339
from mneme_server.common.errors import DataLoss, InvalidArgument, NotFound, Reason
from mneme_server.engine.corpus.kinds import MemoryKind
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.proof.checking import State, check
from mneme_server.features.proof.heads import Head, Heads
from mneme_server.features.proof.keys import trusted
from mneme_server.features.proof.merkle import Tree
from mneme_server.features.proof.ports import Leaf, ProofUnit


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found about a certificate; it is valid when there are no problems."""

    problems: Sequence[Problem]
    states: Sequence[State] = ()
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

    tenants: OpenTenants[ProofUnit]
    heads: Heads
    kinds: Mapping[str, MemoryKind]

    def checkpoint(self, tenant_id: str) -> Head:
        """Return the head of the log as it is now, signed."""
        with self.tenants.open(tenant_id) as tenant:
            return self.heads.signed(tenant_id, tenant, lambda _unit, head: head)

    def consistency(self, tenant_id: str, old_size: int, new_size: int) -> Consistency:
        """Return what joins two heads; a `new_size` of 0 is that of all leaves.

        Raises:
            InvalidArgument: the log never was of such a size.
        """

        def proof(unit: ProofUnit, head: Head) -> Consistency:
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

        def proof(unit: ProofUnit, head: Head) -> Inclusion:
            tree = _tree_of(head, size, "size")
            leaf = _leaf(unit, of)
            if leaf is None or leaf.index >= tree.size:
                index = of if leaf is None else leaf.index
                raise _out_of_range(f"a log of {tree.size} leaves has none at {index}", "of")
            return Inclusion(leaf, tree.size, tree.inclusion(leaf.index), head.signed.origin)

        with self.tenants.open(tenant_id) as tenant:
            return self.heads.signed(tenant_id, tenant, proof)

    def verify(self, tenant_id: str, text: str) -> Verdict:
        """Check a certificate of this tenant, and tell what became of its results since."""
        with self.tenants.open(tenant_id) as tenant:
            try:
                with self.heads.checked(tenant_id, tenant) as (unit, known):
                    keys = trusted(known.keys)
                    found, problems = inspect_certificate(text, *keys)
                    if found is None:
                        return Verdict(problems)
                    more, states = check(tenant_id, unit, found, self.kinds, keys)
            except DataLoss as error:
                return Verdict([Problem("log", error.message)])
        return Verdict([*problems, *more], states, _created_us(found))


def _tree_of(head: Head, size: int, field: str) -> Tree:
    if size > head.tree.size:
        raise _out_of_range(f"the log has {head.tree.size} leaves, not {size}", field)
    return Tree(size or head.tree.size, head.tree.read)


def _leaf(unit: ProofUnit, of: int | tuple[str, str]) -> Leaf | None:
    if isinstance(of, int):
        return unit.log.at(of)
    kind, source_id = of
    leaf = unit.log.newest(kind, [source_id]).get(source_id)
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
