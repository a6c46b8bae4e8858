"""The leaves of memories as they are now, and the marks of those that were forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mneme.proof.merkle import ProofInvalid, verify_inclusion
from mneme.proof.notes import NoteInvalid, VerifierKey, decoded

from mneme_server.common.errors import DataLoss
from mneme_server.common.stored import UNREADABLE
from mneme_server.engine.corpus.document import MemoryView, ids_by_kind
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.admin.forgetting.model import Forgetting
from mneme_server.features.admin.forgetting.store import SqlForgettings
from mneme_server.features.events.chain import content_of as content_of_event
from mneme_server.features.events.chain import event_hash
from mneme_server.features.events.model import Event
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.proof.merkle import TILE, TILE_LEVELS, leaf_hash
from mneme_server.features.proof.model import Leaf
from mneme_server.features.proof.store.log import SqlLog
from mneme_server.features.proof.versions import commitment_of, tells_of


def leaves_of(unit: CorpusUnit, memories: Sequence[MemoryView]) -> list[Leaf]:
    """Return the leaves of these memories as they are now, with salts and contents.

    Raises:
        DataLoss: what is stored is not what was committed to, or has no leaf.
    """
    newest = {
        kind: unit.get(SqlLog).newest(kind, ids) for kind, ids in ids_by_kind(memories).items()
    }
    committing = [m.document.source_id for m in memories if m.document.kind.commits]
    events = unit.get(SqlEvents).by_ids(committing) if committing else {}
    found: list[Leaf] = []
    for memory in memories:
        document = memory.document
        leaf = newest[document.kind.name].get(document.source_id)
        if leaf is None:
            raise _not_logged(memory)
        event = events.get(document.source_id)
        if event is not None:
            leaf = replace(
                leaf,
                commitment=event.commitment,
                salt=event.salt,
                content=content_of_event(event),
            )
        _require_committed(leaf, memory, follows=unit.follows(document.kind))
        if event is not None:
            _require_chained(event, memory)
        found.append(leaf)
    return found


def require_proved(
    hash_: bytes, index: int, size: int, root: bytes, proof: Sequence[bytes]
) -> None:
    """Check that a leaf leads to the root over `size` leaves by what the tiles gave for its proof.

    Raises:
        DataLoss: it does not.
    """
    try:
        verify_inclusion(hash_, index, size, proof, root)
    except ProofInvalid:
        raise DataLoss(
            f"leaf {index} does not lead to the head of the log: a tile was changed where it is"
            " stored",
            metadata={"kind": TILE, "id": f"0/{index >> TILE_LEVELS}"},
        ) from None


def gives_hash(leaf: Leaf) -> bool:
    """Return whether what is kept of a leaf gives its commitment, and that its hash."""
    given = commitment_of(leaf.salt, leaf.content)
    return given == leaf.commitment and leaf_hash(given) == leaf.hash


def _require_committed(leaf: Leaf, memory: MemoryView, *, follows: bool) -> None:
    """Check that an item is what its newest leaf commits to.

    Raises:
        DataLoss: it is not; the message says which part.
    """
    what, facts = _named(memory)
    if commitment_of(leaf.salt, leaf.content) != leaf.commitment:
        raise DataLoss(
            f"the content that was logged of {what} does not give its commitment: it was changed"
            f" where it is stored (leaf {leaf.index} of the log)",
            metadata=facts,
        )
    if leaf_hash(leaf.commitment) != leaf.hash:
        raise DataLoss(
            f"the commitment of {what} is not that in the log: one of them was changed where it is"
            f" stored (leaf {leaf.index})",
            metadata=facts,
        )
    if not tells_of(leaf.content, memory, follows=follows):
        raise DataLoss(
            f"{what} is not what was logged of it: its row was changed where it is stored (leaf"
            f" {leaf.index} of the log)",
            metadata=facts,
        )


def _require_chained(event: Event, memory: MemoryView) -> None:
    """Check that an event has the place in its session's chain that is shown of it.

    Raises:
        DataLoss: it has another one.
    """
    try:
        chained = event.hash == event_hash(event)
    except UNREADABLE:
        chained = False
    if not chained or event.sequence != memory.document.position:
        what, facts = _named(memory)
        raise DataLoss(
            f"{what} does not have the place in its session's chain that was recorded: its row was"
            " changed where it is stored",
            metadata=facts,
        )


def _not_logged(memory: MemoryView) -> DataLoss:
    what, facts = _named(memory)
    return DataLoss(
        f"{what} has no leaf in the log: its row or the log's was changed where it is stored",
        metadata=facts,
    )


def _named(memory: MemoryView) -> tuple[str, dict[str, str]]:
    kind, source_id = memory.document.kind.name, memory.document.source_id
    return f"{kind} {source_id!r}", {"kind": kind, "id": source_id}


@dataclass(frozen=True, slots=True)
class Marks:
    """Which leaves of the log, and which places in chains of events, were forgotten, as it was
    signed: nobody else can mark a leaf, or an event, as forgotten.
    """

    leaves: Sequence[tuple[int, int]]
    places: Mapping[str, Sequence[tuple[int, int]]]

    def has_leaf(self, index: int) -> bool:
        """Return whether a leaf was forgotten."""
        return _within(index, self.leaves)

    def has_place(self, session: str, sequence: int) -> bool:
        """Return whether a place in a chain was forgotten; a session is named by its digest."""
        return _within(sequence, self.places.get(session, ()))


def marks_of(tenant_id: str, unit: CorpusUnit, keys: Sequence[VerifierKey]) -> Marks:
    """Return what one of a tenant's keys signed of what it forgot."""
    leaves: list[tuple[int, int]] = []
    places: dict[str, list[tuple[int, int]]] = {}
    for one in unit.get(SqlForgettings).all():
        if _is_signed(tenant_id, one, keys):
            leaves += one.leaves
            for name, runs in one.places.items():
                places.setdefault(name, []).extend(runs)
    return Marks(leaves, places)


def _is_signed(tenant_id: str, one: Forgetting, keys: Sequence[VerifierKey]) -> bool:
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
