"""Certificates in a tenant's database."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, delete, func, select

from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.store.rows import chunks, insert_rows
from mneme_server.engine.store.totals import add_to_total, total
from mneme_server.features.proof.model import CertificateLimits, StoredCertificate
from mneme_server.features.proof.store.tables import certificate_items, certificates

_TOTAL = "certificates"


class SqlCertificates:
    """The tenant's certificates. They hold salts and contents."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def total(self) -> int:
        """Return how many there are."""
        return total(self._connection, self._tenant_id, _TOTAL)

    def add(
        self,
        certificate: StoredCertificate,
        asked: DocumentFilter,
        items: Collection[tuple[str, str]],
        most: CertificateLimits,
    ) -> int:
        """Insert a certificate of these items (kind, id), found by that filter, and remove the
        oldest beyond what is kept at most; return how many that were, this one too if it is."""
        size = len(certificate.text.encode())
        if not most.certificates or size > most.bytes:
            return 1
        mine = {"tenant_id": self._tenant_id}
        row = {
            "id": certificate.id,
            "text": certificate.text,
            "created_at": certificate.created_us,
            "user_id": asked.user_id,
            "agent_id": asked.agent_id,
            "session_id": asked.session_id,
            "project": asked.project,
            "bytes": size,
        }
        insert_rows(self._connection, certificates, [mine | row])
        rows = [
            mine | {"kind": kind, "source_id": source_id, "certificate_id": certificate.id}
            for kind, source_id in items
        ]
        if rows:
            insert_rows(self._connection, certificate_items, rows)
        add_to_total(self._connection, self._tenant_id, _TOTAL, 1)
        gone = self._beyond(most)
        self._remove(gone)
        return len(gone)

    def _beyond(self, most: CertificateLimits) -> list[str]:
        """Return the oldest that have to go."""
        mine = certificates.c.tenant_id == self._tenant_id
        size = select(func.coalesce(func.sum(certificates.c.bytes), 0)).where(mine)
        number = self.total() - most.certificates
        excess = self._connection.execute(size).scalar_one() - most.bytes
        gone: list[str] = []
        if number <= 0 and excess <= 0:
            return gone
        oldest = select(certificates.c.id, certificates.c.bytes).where(mine)
        oldest = oldest.order_by(certificates.c.created_at, certificates.c.id)
        for row in self._connection.execute(oldest):
            if number <= 0 and excess <= 0:
                break
            gone.append(row.id)
            number, excess = number - 1, excess - row.bytes
        return gone

    def get(self, certificate_id: str) -> StoredCertificate | None:
        """Return the certificate, or None."""
        query = select(certificates.c.id, certificates.c.text, certificates.c.created_at).where(
            certificates.c.tenant_id == self._tenant_id, certificates.c.id == certificate_id
        )
        row = self._connection.execute(query).first()
        return None if row is None else StoredCertificate(*row)

    def _remove(self, ids: Collection[str]) -> None:
        if not ids:
            return
        for some in chunks(ids):
            self._connection.execute(
                delete(certificates).where(
                    certificates.c.tenant_id == self._tenant_id, certificates.c.id.in_(some)
                )
            )
        add_to_total(self._connection, self._tenant_id, _TOTAL, -len(ids))
