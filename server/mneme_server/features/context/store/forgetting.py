"""Forgetting of what sessions came to."""

from __future__ import annotations

from mneme_server.common.clock import now_us
from mneme_server.engine.corpus.forgetting import SESSION, TOUCHED, Items, merged
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.engine.store.forgetting import Forgets, Rows, SqlForgetter
from mneme_server.features.context.model import SESSION as SUMMARY_KIND
from mneme_server.features.context.store.summaries import SqlSummaryQueue
from mneme_server.features.context.store.tables import handovers, session_summaries, summary_queue

SUMMARY, HANDOVER = "summary", "handover"


class ContextForgetter(SqlForgetter):
    """Forgets summaries and handovers. Those of a session that loses some events go too, since they
    quote them; its summary is made again of what is left."""

    rows = (
        Rows(
            SUMMARY, session_summaries.c.session_id,
            session=session_summaries.c.session_id, document=SUMMARY_KIND,
        ),
        Rows(
            HANDOVER, handovers.c.session_id,
            session=handovers.c.session_id, agent=handovers.c.agent_id,
            project=handovers.c.project,
        ),
    )  # fmt: skip

    def derived(self, found: Items) -> Items:
        """See `Forgetter`."""
        quoting = super().derived({SESSION: found.get(TOUCHED, set())})
        return merged([super().derived(found), quoting])

    def erase(self, found: Items, unit: CorpusUnit) -> None:
        """See `Forgetter`."""
        gone = found.get(SESSION, set())
        left = found.get(SUMMARY, set()) - gone
        super().erase(found, unit)
        self.delete(summary_queue.c.session_id, gone | left)
        SqlSummaryQueue(self._connection, self._tenant_id).request(
            dict.fromkeys(sorted(left), now_us())
        )


FORGETS = Forgets(
    ContextForgetter,
    {
        session_summaries: "deleted; made again where only some events of the session went",
        handovers: "deleted",
        summary_queue: "deleted with the session",
    },
)
