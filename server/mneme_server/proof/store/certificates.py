"""Certificates in a tenant's database."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, delete, select

from mneme_server.corpus.document import DocumentFilter
from mneme_server.proof.ports import StoredCertificate
from mneme_server.proof.store.tables import certificate_items, certificates
from mneme_server.storage.rows import chunks, insert_rows
from mneme_server.storage.totals import add_to_total, total

_TOTAL = "certificates"


class SqlCertificates:
    """Implements `CertificateRepository`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def total(self) -> int:
        return total(self._connection, self._tenant_id, _TOTAL)

    def add(
        self,
        certificate: StoredCertificate,
        asked: DocumentFilter,
        items: Collection[tuple[str, str]],
        kept: int,
    ) -> None:
        if not kept:
            return
        mine = {"tenant_id": self._tenant_id}
        row = {
            "id": certificate.id,
            "text": certificate.text,
            "created_at": certificate.created_us,
            "user_id": asked.user_id,
            "agent_id": asked.agent_id,
            "session_id": asked.session_id,
            "project": asked.project,
        }
        insert_rows(self._connection, certificates, [mine | row])
        rows = [
            mine | {"kind": kind, "source_id": source_id, "certificate_id": certificate.id}
            for kind, source_id in items
        ]
        if rows:
            insert_rows(self._connection, certificate_items, rows)
        add_to_total(self._connection, self._tenant_id, _TOTAL, 1)
        excess = self.total() - kept
        if excess > 0:
            oldest = (
                select(certificates.c.id)
                .where(certificates.c.tenant_id == self._tenant_id)
                .order_by(certificates.c.created_at, certificates.c.id)
                .limit(excess)
            )
            self._remove(self._connection.execute(oldest).scalars().all())

    def get(self, certificate_id: str) -> StoredCertificate | None:
        query = select(certificates.c.id, certificates.c.text, certificates.c.created_at).where(
            certificates.c.tenant_id == self._tenant_id, certificates.c.id == certificate_id
        )
        row = self._connection.execute(query).first()
        return None if row is None else StoredCertificate(*row)

    def _remove(self, ids: Collection[str]) -> None:
        for some in chunks(ids):
            self._connection.execute(
                delete(certificates).where(
                    certificates.c.tenant_id == self._tenant_id, certificates.c.id.in_(some)
                )
            )
        add_to_total(self._connection, self._tenant_id, _TOTAL, -len(ids))
