"""Auditing a log: keeping its last head, and demanding that the next one begins with it.

Whoever holds a log's key could show two histories. Whoever keeps a head cannot be shown the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mneme.proof.merkle import ProofInvalid, verify_consistency
from mneme.proof.notes import Checkpoint, NoteInvalid, VerifierKey, open_checkpoint, open_note

if TYPE_CHECKING:
    from mneme.client import MnemeClient


class AuditFailed(Exception):
    """What the server shows is not what it showed before."""


class LogBegunAnew(AuditFailed):
    """The tenant has a new log: it was restored or reset. `head` is its head, and `kept` what to
    keep of it, for those who know why. It is signed by a key that the known one leads to."""

    def __init__(self, message: str, head: Checkpoint, kept: KeptHead) -> None:
        super().__init__(message)
        self.head = head
        self.kept = kept


@dataclass(frozen=True, slots=True)
class KeptHead:
    """A head of a log as it was seen last: its note, and the key that signed it."""

    note: str
    key: str


def audit(client: MnemeClient, kept: KeptHead | None) -> tuple[Checkpoint, KeptHead]:
    """Return the head of the log as it is now, which begins with all that the kept one did.

    Without a kept head the server's word is taken for its key: compare it with what the operator
    says (`mneme proof keys`).

    Raises:
        AuditFailed: it does not, or the head is not signed by a key that the kept one leads to.
        LogBegunAnew: it is the head of another log, which names the one that was kept.
    """
    said = client.get_checkpoint()
    try:
        if kept is None:
            head = open_checkpoint(said.note, [VerifierKey.parse(said.verifier_key)])
            return head, KeptHead(said.note, said.verifier_key)
        old_key = VerifierKey.parse(kept.key)
        trusted = _led_to(client, old_key)
        old = open_checkpoint(kept.note, [old_key])
        head = open_checkpoint(said.note, [VerifierKey.parse(said.verifier_key)])
        if said.verifier_key not in map(str, trusted):
            raise AuditFailed("the head is signed by a key that the known one did not introduce")
    except NoteInvalid as error:
        raise AuditFailed(f"the head is not what it should be: {error}") from error
    seen = KeptHead(said.note, said.verifier_key)
    if head.origin != old.origin:
        raise LogBegunAnew(_of_new_log(old, head, said.previous_note, trusted), head, seen)
    if head.size < old.size:
        raise AuditFailed(
            f"the log has {head.size} leaves, and had {old.size}: leaves were dropped"
        )
    proof = []
    if 0 < old.size < head.size:
        proof = list(client.get_consistency_proof(old_size=old.size, new_size=head.size).hashes)
    try:
        verify_consistency(old.size, old.root, head.size, head.root, proof)
    except ProofInvalid as error:
        raise AuditFailed(f"the log was rewritten or forked: {error}") from error
    return head, seen


def _led_to(client: MnemeClient, known: VerifierKey) -> Sequence[VerifierKey]:
    """Return the key that is known, and those that it introduced, one by the other."""
    trusted = [known]
    for key in client.list_log_keys().keys:
        if not key.introduction or key.verifier_key in map(str, trusted):
            continue
        try:
            said = open_note(key.introduction, trusted[-1:])
        except NoteInvalid:
            continue
        if key.verifier_key in said.split("\n"):
            trusted.append(VerifierKey.parse(key.verifier_key))
    return trusted


def _of_new_log(
    old: Checkpoint, head: Checkpoint, previous: str, trusted: Sequence[VerifierKey]
) -> str:
    said = f"{head.origin} took the place of {old.origin}: the tenant was restored or reset"
    try:
        named = open_checkpoint(previous, trusted)
    except NoteInvalid:
        return f"{said}; it does not name the head that was kept"
    if named.origin != old.origin:
        return f"{said}; it names the head of {named.origin}"
    if (named.size, named.root) == (old.size, old.root):
        return f"{said}; it names the head that was kept, of {old.size} leaves"
    return f"{said}; it names a head of {named.size} leaves, {old.size} were kept"
