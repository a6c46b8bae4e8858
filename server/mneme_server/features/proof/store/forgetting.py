"""Forgetting in the log and in certificates."""

from __future__ import annotations

from sqlalchemy import and_, or_

from mneme_server.engine.corpus.forgetting import Items, merged, things
from mneme_server.engine.store.forgetting import Forgets, Rows, SqlForgetter, array
from mneme_server.engine.store.portable import listed
from mneme_server.features.proof.store.tables import (
    certificate_items,
    certificates,
    log_leaves,
    log_runs,
    log_state,
    log_tiles,
)

CERTIFICATE = "certificate"


class ProofForgetter(SqlForgetter):
    """Forgets certificates with any of what they show: they hold salts and contents.

    `SqlLog.forget` is called for whatever has leaves.
    """

    rows = (
        Rows(
            CERTIFICATE,
            certificates.c.id,
            user=certificates.c.user_id,
            agent=certificates.c.agent_id,
            session=certificates.c.session_id,
            project=certificates.c.project,
            total="certificates",
        ),
    )

    def derived(self, found: Items) -> Items:
        """See `Forgetter`."""
        shown = [
            and_(certificate_items.c.kind == kind, certificate_items.c.source_id.in_(listed(ids)))
            for kind, names in things(found).items()
            if kind != CERTIFICATE
            for ids in [array(names)]
        ]
        of_items: Items = {}
        if shown:
            of_items = {CERTIFICATE: self.select(certificate_items.c.certificate_id, or_(*shown))}
        return merged([super().derived(found), of_items])


FORGETS = Forgets(
    ProofForgetter,
    {
        log_tiles: "stays: hashes of salted commitments",
        log_leaves: "loses salt, content and id; the commitment stays",
        log_runs: "stays: numbers",
        log_state: "holds no content",
        certificates: "deleted",
        certificate_items: "deleted with their certificate",
    },
)
