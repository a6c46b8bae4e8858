"""What was forgotten, as it was signed: nobody else can mark a leaf, or an event, as forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mneme.proof.notes import NoteInvalid, VerifierKey, decoded

from mneme_server.features.proof.ports import Forgotten, ProofUnit


@dataclass(frozen=True, slots=True)
class Marks:
    """Which leaves of the log, and which places in chains of events, were forgotten."""

    leaves: Sequence[tuple[int, int]]
    places: Mapping[str, Sequence[tuple[int, int]]]

    def has_leaf(self, index: int) -> bool:
        """Return whether a leaf was forgotten."""
        return _within(index, self.leaves)

    def has_place(self, session: str, sequence: int) -> bool:
        """Return whether a place in a chain was forgotten; a session is named by its digest."""
        return _within(sequence, self.places.get(session, ()))


def marks_of(tenant_id: str, unit: ProofUnit, keys: Sequence[VerifierKey]) -> Marks:
    """Return what one of a tenant's keys signed of what it forgot."""
    leaves: list[tuple[int, int]] = []
    places: dict[str, list[tuple[int, int]]] = {}
    for one in unit.forgettings.all():
        if _is_signed(tenant_id, one, keys):
            leaves += one.leaves
            for name, runs in one.places.items():
                places.setdefault(name, []).extend(runs)
    return Marks(leaves, places)


def _is_signed(tenant_id: str, one: Forgotten, keys: Sequence[VerifierKey]) -> bool:
    if one.mark is None:
        return False
    try:
        public = decoded(str(one.mark.get("public_key")), "the key")
        signature = decoded(str(one.mark.get("signature")), "the signature")
    except NoteInvalid:
        return False
    said = one.marked(tenant_id).encode()
    return any(key.public == public and key.holds(signature, said) for key in keys)


def _within(number: int, runs: Sequence[tuple[int, int]]) -> bool:
    return any(first <= number <= last for first, last in runs)
