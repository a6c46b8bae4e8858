"""Heads of tenants' logs: signed, one history under one name."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from mneme.proof.notes import NoteInvalid, VerifierKey, checkpoint_text, open_note

from mneme_server.common.canonical import canonical_json
from mneme_server.common.errors import DataLoss
from mneme_server.common.keyed_locks import KeyedLocks
from mneme_server.corpus.tenant import OpenTenant
from mneme_server.proof.keys import KeyRing, LogCatalog, LogKey, SignedHead
from mneme_server.proof.merkle import Tree
from mneme_server.proof.ports import LogName, ProofUnit
from mneme_server.proof.versions import salted_version

T = TypeVar("T")

LOG_KIND = "log"
"""The kind of the leaf that a log begins with which comes after another."""
_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Head:
    """A head that was signed, and the tree that it is of."""

    signed: SignedHead
    previous: SignedHead | None
    key: LogKey
    tree: Tree


class Heads:
    """Signs heads. A log that is not the one whose head was signed before is never signed.

    Args:
        keys: the tenants' keys.
        catalog: where the newest signed heads are.
    """

    def __init__(self, keys: KeyRing, catalog: LogCatalog) -> None:
        self._keys = keys
        self._catalog = catalog
        self._signing = KeyedLocks[str]()  # By tenant.

    def signed(
        self,
        tenant_id: str,
        memory: OpenTenant[ProofUnit],
        use: Callable[[ProofUnit, Head], T],
    ) -> T:
        """Sign the head of the log as it is now, and return what `use` makes of it in the same
        snapshot.

        Raises:
            DataLoss: the log is damaged, or not what it was.
            FailedPrecondition: the tenant's key cannot be read.
        """
        with ExitStack() as reading:
            with self._signing.holding(tenant_id):
                # Before the snapshot: it must have all that those were signed of.
                heads = self._catalog.heads(tenant_id)
                unit = reading.enter_context(memory.read())
                name = _name(unit)
                if name is None:
                    reading.close()
                    with memory.write() as writing:
                        if _name(writing) is None:
                            _begin(writing, tenant_id, heads[-1] if heads else None)
                    unit = reading.enter_context(memory.read())
                    name = _name(unit)
                assert name is not None
                origin = origin_of(tenant_id, name)
                head = self._head(tenant_id, unit, origin, {one.origin: one for one in heads})
            return use(unit, head)

    def _head(
        self, tenant_id: str, unit: ProofUnit, origin: str, known: Mapping[str, SignedHead]
    ) -> Head:
        tree = unit.log.tree()
        root = tree.root()
        last = known.get(origin)
        others = [one for one in known.values() if one.origin != origin]
        key = self._keys.current(tenant_id)
        if last is not None:
            _require_same_history(tree, root, last)
        if last is None or last.size != tree.size or not _is_signed_by(last.note, key.verifier):
            last = self._sign(tenant_id, key, origin, tree.size, root)
        return Head(last, others[-1] if others else None, key, tree)

    def _sign(self, tenant_id: str, key: LogKey, origin: str, size: int, root: bytes) -> SignedHead:
        note = self._keys.sign_note(tenant_id, key, checkpoint_text(origin, size, root))
        head = SignedHead(origin, size, root, note)
        self._catalog.signed(tenant_id, head)  # Before anyone sees it.
        return head


@lru_cache(maxsize=1024)
def _is_signed_by(note: str, key: VerifierKey) -> bool:
    try:
        open_note(note, [key])
    except NoteInvalid:
        return False
    return True


def origin_of(tenant_id: str, name: LogName) -> str:
    """Return the name of a log for everyone."""
    return f"mneme/{tenant_id}/{name.id}"


def _name(unit: ProofUnit) -> LogName | None:
    """Return the log's name; None for one that was not begun, or by another store."""
    name = unit.log.name()
    return name if name is not None and name.generation == unit.feed.generation() else None


def _begin(unit: ProofUnit, tenant_id: str, previous: SignedHead | None) -> None:
    """Name the log. One that comes after another, whose store was put back or made anew, says so
    in its next leaf."""
    name = LogName(secrets.token_hex(_ID_BYTES), unit.feed.generation() or 0)
    unit.log.begin(name)
    if previous is not None:
        content = {
            "id": name.id,
            "kind": LOG_KIND,
            "continues": previous.note,
            "log": origin_of(tenant_id, name),
        }
        unit.log.add([salted_version(LOG_KIND, name.id, 0, canonical_json(content))])


def _require_same_history(tree: Tree, root: bytes, last: SignedHead) -> None:
    """Check that the log still begins with what a head that was signed says.

    Raises:
        DataLoss: it does not.
    """
    if tree.size < last.size:
        raise DataLoss(
            f"the log has {tree.size} leaves, and a head of {last.size} was signed: it was cut, or"
            " the tenant's folder was put back by hand; restore a backup (StartRestore), which"
            " starts a new log",
            metadata={"kind": "log", "id": last.origin},
        )
    then = root if last.size == tree.size else Tree(last.size, tree.read).root()
    if then != last.root:
        raise DataLoss(
            f"the first {last.size} leaves of the log are not those whose head was signed: it was"
            " rewritten or is damaged; restore a backup (StartRestore), which starts a new log",
            metadata={"kind": "log", "id": last.origin},
        )
