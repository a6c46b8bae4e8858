"""Heads of tenants' logs: signed, one history under one name."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import structlog
from mneme.proof.notes import (
    Checkpoint,
    NoteInvalid,
    VerifierKey,
    checkpoint_text,
    open_checkpoint,
)

from mneme_server.common.canonical import canonical_json
from mneme_server.common.errors import DataLoss, FailedPrecondition, Reason
from mneme_server.common.keyed_locks import KeyedLocks
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.proof.keys import KeyRing, rotated_meanwhile
from mneme_server.features.proof.merkle import Tree
from mneme_server.features.proof.model import KnownLog, LogKey, LogName, SignedHead
from mneme_server.features.proof.store.catalog import SqlLogCatalog
from mneme_server.features.proof.store.log import SqlLog
from mneme_server.features.proof.versions import ItemVersion, salted_version

T = TypeVar("T")

_log = structlog.get_logger(__name__)

LOG_KIND = "log"
"""The kind of the leaf that a log begins with which comes after another."""
_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class LogHead:
    """A head that was signed, and the tree that it is of."""

    signed: SignedHead
    previous: SignedHead | None
    key: LogKey
    tree: Tree


class Refusals:
    """Logs that were not signed because they are not what their signed heads say: for operators,
    who are told by the log and by a metric."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def told(self, tenant_id: str) -> Iterator[None]:
        """Tell of what the block refuses."""
        try:
            yield
        except DataLoss as error:
            self.count += 1
            _log.error("log not signed", tenant=tenant_id, why=error.message, **error.metadata)
            raise


class Heads:
    """Signs heads. A log that is not the one whose head was signed before is never signed.

    What the catalog has beside a signed head is not trusted: the signature is checked, by the key
    that signs, whenever something is signed or proved.

    Args:
        keys: the tenants' keys.
        catalog: where the newest signed heads are.
    """

    def __init__(self, keys: KeyRing, catalog: SqlLogCatalog) -> None:
        self._keys = keys
        self._catalog = catalog
        self._signing = KeyedLocks[str]()  # By tenant.
        self.refusals = Refusals()

    def signed(
        self,
        tenant_id: str,
        tenant: OpenTenant,
        use: Callable[[CorpusUnit, LogHead], T],
    ) -> T:
        """Sign the head of the log as it is now, and return what `use` makes of it in the same
        snapshot.

        Raises:
            DataLoss: LOG_CHANGED, the log, its head or its key is not what it was.
            DataLoss: the log is damaged.
            FailedPrecondition: the tenant's key cannot be read.
        """
        with ExitStack() as reading:
            with self._signing.holding(tenant_id), self.refusals.told(tenant_id):
                with tenant.read() as unit:
                    begun = _name(unit) is not None
                if not begun:
                    self._begin(tenant_id, tenant)
                # Before the snapshot: it must have all that those were signed of.
                known = self._keys.known(tenant_id)
                self._keys.require_own(tenant_id, known.keys[-1])
                unit = reading.enter_context(tenant.read())
                head = self._head(tenant_id, unit, known)
            return use(unit, head)

    def known(self, tenant_id: str) -> KnownLog:
        """Return what the catalog knows of a tenant's log."""
        return self._keys.known(tenant_id)

    @contextmanager
    def checked(self, tenant_id: str, tenant: OpenTenant) -> Iterator[tuple[CorpusUnit, KnownLog]]:
        """Lend a snapshot whose log begins with what its signed head says, and what is known of the
        log; nothing is signed.

        A key that cannot be read, since its secret is missing, is taken to be the catalog's.

        Raises:
            DataLoss: LOG_CHANGED, the log, its head or its key is not what it was.
            DataLoss: the log is damaged.
        """
        with ExitStack() as reading:
            with self.refusals.told(tenant_id):
                with tenant.read() as before:
                    begun = _name(before) is not None
                known = self._keys.known(tenant_id)
                with suppress(FailedPrecondition):
                    self._keys.require_own(tenant_id, known.keys[-1])
                unit = reading.enter_context(tenant.read())
                if begun:
                    tree = unit.get(SqlLog).tree()
                    _require_same_history(tree, tree.root(), _last(tenant_id, unit, known))
            yield unit, known

    def _head(self, tenant_id: str, unit: CorpusUnit, known: KnownLog) -> LogHead:
        tree = unit.get(SqlLog).tree()
        root = tree.root()
        last = _last(tenant_id, unit, known)
        _require_same_history(tree, root, last)
        others = [one for one in known.heads if one.origin != last.origin]
        key = known.keys[-1]
        if last.size != tree.size:
            last = self._sign(tenant_id, key, last.origin, tree.size, root)
        return LogHead(last, others[-1] if others else None, key, tree)

    def _begin(self, tenant_id: str, tenant: OpenTenant) -> None:
        """Name the log, and sign its first head. One that comes after another, whose store was put
        back or made anew, says so in its next leaf."""
        with tenant.write() as unit:
            log = unit.get(SqlLog)
            if _name(unit) is not None:  # Another server was faster.
                return
            known = self._keys.known(tenant_id)
            key = known.keys[-1]
            self._keys.require_own(tenant_id, key)
            name = LogName(secrets.token_hex(_ID_BYTES), unit.feed.generation() or 0)
            origin = origin_of(tenant_id, name)
            log.begin(name)
            if known.heads:
                log.add([_continuing(name, origin, known.heads[-1])])
            tree = log.tree()
            # Before the name is kept: from then on, no head means that it was taken away.
            self._sign(tenant_id, key, origin, tree.size, tree.root())

    def _sign(self, tenant_id: str, key: LogKey, origin: str, size: int, root: bytes) -> SignedHead:
        note = self._keys.sign_note(tenant_id, key, checkpoint_text(origin, size, root))
        head = SignedHead(origin, size, root, note)
        if not self._catalog.signed(tenant_id, head, key.number):  # Before anyone sees it.
            raise rotated_meanwhile()
        return head


def _last(tenant_id: str, unit: CorpusUnit, known: KnownLog) -> SignedHead:
    """Return the newest head that was signed of the log that a snapshot has.

    Raises:
        DataLoss: LOG_CHANGED, it has none, or another than the catalog says, or another key signed
            it.
    """
    name = _name(unit)
    assert name is not None
    origin = origin_of(tenant_id, name)
    last = next((one for one in known.heads if one.origin == origin), None)
    if last is None:
        raise _changed(origin, "no head of it is in the catalog, and one was signed")
    try:
        said = _opened(last.note, known.keys[-1].verifier)
    except NoteInvalid as error:
        raise _changed(origin, f"its head in the catalog does not hold ({error})") from None
    if (said.origin, said.size, said.root) != (origin, last.size, last.root):
        raise _changed(
            origin,
            f"the catalog says that its head has {last.size} leaves, and what was signed is the"
            f" head of {said.size} leaves of {said.origin}, or has another root",
        )
    return last


@lru_cache(maxsize=1024)
def _opened(note: str, key: VerifierKey) -> Checkpoint:
    return open_checkpoint(note, [key])


def origin_of(tenant_id: str, name: LogName) -> str:
    """Return the name of a log for everyone."""
    return f"mneme/{tenant_id}/{name.id}"


def _name(unit: CorpusUnit) -> LogName | None:
    """Return the log's name; None for one that was not begun, or by another store."""
    name = unit.get(SqlLog).name()
    return name if name is not None and name.generation == unit.feed.generation() else None


def _continuing(name: LogName, origin: str, previous: SignedHead) -> ItemVersion:
    content = {
        "id": name.id,
        "kind": LOG_KIND,
        "continues": previous.note,
        "log": origin,
    }
    return salted_version(LOG_KIND, name.id, canonical_json(content))


def _require_same_history(tree: Tree, root: bytes, last: SignedHead) -> None:
    """Check that the log still begins with what a head that was signed says.

    Raises:
        DataLoss: it does not.
    """
    if tree.size < last.size:
        why = (
            f"it has {tree.size} leaves, and a head of {last.size} was signed: it was cut, or the"
            " tenant's folder was put back by hand"
        )
    elif (root if last.size == tree.size else Tree(last.size, tree.read).root()) != last.root:
        why = (
            f"its first {last.size} leaves are not those whose head was signed: it was rewritten or"
            " is damaged"
        )
    else:
        return
    raise DataLoss(_said(why), metadata={"kind": "log", "id": last.origin})


def _changed(origin: str, why: str) -> DataLoss:
    return DataLoss(_said(why), reason=Reason.LOG_CHANGED, metadata={"kind": "log", "id": origin})


def _said(why: str) -> str:
    return f"the log is not what it was: {why}; restore a backup (Restore), which starts a new log"
