"""The operation that erases for good what was forgotten, and the receipt for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mneme_server.common.canonical import Json, JsonObject, base64_text, canonical_json
from mneme_server.common.clock import now_us, rfc3339
from mneme_server.common.errors import Unavailable
from mneme_server.engine.cluster.servers import OtherServers
from mneme_server.engine.tenants.registry import Scrubber
from mneme_server.features.admin.forgetting.forgetting import Forget, digest_of
from mneme_server.features.admin.forgetting.model import Forgetting
from mneme_server.features.admin.forgetting.ports import (
    EarlierBackups,
    Signer,
)
from mneme_server.features.operations.model import OperationTask

FORGET = "forget"
"""What these operations are called."""
_TRIES = 30
"""How often files are scrubbed that others use; each time waits for ten seconds."""


def request_of(forgetting_id: str, asked: JsonObject) -> JsonObject:
    """Return what an operation is started with: no names, since operations are kept for a while."""
    return {"forgetting": forgetting_id, "asked": digest_of(asked)}


@dataclass(frozen=True, slots=True)
class Signing:
    """Implements `Signer`.

    Args:
        signed: returns a tenant's public key and its signature of a text, as bytes.
    """

    signed: Callable[[str, str], tuple[bytes, bytes]]

    def sign(self, tenant_id: str, statement: str) -> JsonObject:
        """Return the fields of a receipt that say who signed it."""
        public_key, signature = self.signed(tenant_id, statement)
        return {
            "public_key": base64_text(public_key),
            "signature": base64_text(signature),
        }


@dataclass(frozen=True, slots=True)
class Erase:
    """Erases what was forgotten from files, caches and the catalog.

    Whatever it is stopped in, it is done again: hiding is one transaction, which leaves a row that
    says so, and to scrub files twice changes nothing.

    Args:
        forget: finds and deletes.
        files: the tenants' files.
        backups: those that were made.
        signer: signs receipts.
        caches: called with the tenant; each drops what it holds in memory, or in the catalog.
        kept_elsewhere: returns for how long copies hold it that cannot be rewritten, in
            microseconds; 0 where there are none.
        elsewhere: the other servers.
    """

    forget: Forget
    files: Scrubber
    backups: EarlierBackups
    signer: Signer
    caches: Sequence[Callable[[str], object]]
    kept_elsewhere: Callable[[], int]
    elsewhere: OtherServers

    def run(self, task: OperationTask) -> JsonObject:
        """Erase, and return the receipt."""
        tenant_id, forgetting_id = task.tenant_id, task.request["forgetting"]
        task.commit(begun=True)
        if not self.forget.is_erased(tenant_id, forgetting_id):
            self._erase(task, tenant_id, forgetting_id)
        self.forget.catalog.erased(tenant_id, forgetting_id)
        receipt = self.told(tenant_id, forgetting_id).receipt
        assert receipt is not None
        return receipt

    def _erase(self, task: OperationTask, tenant_id: str, forgetting_id: str) -> None:
        task.report("hiding")
        self.elsewhere.ask(tenant_id, forgetting_id)
        self.files.settle(tenant_id)
        self.elsewhere.settle(tenant_id, forgetting_id, partial(task.report, "hiding"))
        forgetting = self.forget.hide_again(tenant_id, forgetting_id)
        task.report("erasing")
        for drop in self.caches:
            drop(tenant_id)
        self._scrub(tenant_id)
        absent = self.elsewhere.erase(
            tenant_id,
            forgetting_id,
            self.forget.newest_row(tenant_id),
            partial(task.report, "erasing on other servers"),
        )
        self._receipted(tenant_id, forgetting, absent)

    def told(self, tenant_id: str, forgetting_id: str) -> Forgetting:
        """Return a forgetting with its receipt as it is now: once servers have come back that were
        away, and left nothing of it, a new one is signed that does not name them.

        Raises:
            NotFound: there is none.
        """
        forgetting = self.forget.get(tenant_id, forgetting_id)
        receipt = forgetting.receipt
        if receipt is None or not receipt.get("nodes"):
            return forgetting
        absent = self.elsewhere.absent(tenant_id, forgetting_id)
        if list(absent) == receipt["nodes"]:
            return forgetting
        erased = replace(forgetting, erased_us=now_us())
        said = json.loads(str(receipt["statement"]))
        said |= {"erased_at": str(erased.erased_us), "nodes": list(absent)}
        if not absent:
            del said["nodes"]
        return self._signed(tenant_id, erased, said)

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        """Do nothing: it is run again, and calls find the state before it or the one after it."""

    def _scrub(self, tenant_id: str) -> None:
        for _ in range(_TRIES - 1):
            try:
                self.files.scrub(tenant_id)
            except Unavailable:  # A long read, of a backup for instance: it has waited for some.
                continue
            return
        self.files.scrub(tenant_id)

    def _receipted(self, tenant_id: str, forgetting: Forgetting, absent: Sequence[str]) -> None:
        erased = replace(self.forget.marked(tenant_id, forgetting), erased_us=now_us())
        assert erased.erased_us is not None
        kept = self.kept_elsewhere()
        statement = statement_of(
            tenant_id,
            erased,
            self.backups.made_before(tenant_id, forgetting.hidden_us),
            erased.erased_us + kept if kept else None,
            absent,
        )
        self._signed(tenant_id, erased, statement)

    def _signed(self, tenant_id: str, forgetting: Forgetting, statement: JsonObject) -> Forgetting:
        text = canonical_json(statement)
        signed = {"statement": text, **self.signer.sign(tenant_id, text)}
        done = replace(forgetting, receipt=receipt_of(statement) | signed)
        self.forget.save(tenant_id, done)
        return done


def statement_of(
    tenant_id: str,
    forgetting: Forgetting,
    backups: Sequence[str],
    kept_until_us: int | None = None,
    nodes: Sequence[str] = (),
) -> JsonObject:
    """Return what a receipt says, to be signed: times are microseconds in texts."""
    said: dict[str, Json] = {
        "type": "mneme.forgotten.v1",
        "tenant_id": tenant_id,
        "id": forgetting.id,
        "hidden_at": str(forgetting.hidden_us),
        "erased_at": "" if forgetting.erased_us is None else str(forgetting.erased_us),
        "counts": dict(forgetting.outcome.counts),
        "policies": list(forgetting.outcome.policies),
        "leaves": [[str(first), str(last)] for first, last in forgetting.leaves],
        "backups": list(backups),
    }
    if kept_until_us is not None:
        said["kept_until"] = str(kept_until_us)
    if nodes:
        said["nodes"] = list(nodes)
    return said


def receipt_of(statement: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a receipt."""
    times = {
        name: rfc3339(int(statement[name]))
        for name in ("hidden_at", "erased_at", "kept_until")
        if statement.get(name)
    }
    return times | {
        "id": statement["id"],
        "tenant_id": statement["tenant_id"],
        "counts": [{"kind": kind, "count": n} for kind, n in statement["counts"].items()],
        "policies": statement["policies"],
        "leaves": [{"first": first, "last": last} for first, last in statement["leaves"]],
        "backups": statement["backups"],
        "nodes": statement.get("nodes", []),
    }
