"""How telemetry is forgotten."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Select, or_, select

from mneme_server.engine.corpus.forgetting import SESSION, ForgetSelection, Items, merged
from mneme_server.engine.store.forgetting import Forgets, Rows, SqlForgetter, array
from mneme_server.engine.store.portable import listed
from mneme_server.features.otlp.store.tables import otlp_inbox, otlp_known

SPAN = "span"
TRACE = "trace"


class TelemetryForgetter(SqlForgetter):
    """Forgets spans that are no events yet, and what is kept of those that became events.

    A span that waits names a session or a user, or is of whom another span of its trace names, or
    of the session that its trace has.
    """

    rows = (
        Rows(SPAN, otlp_inbox.c.id, user=otlp_inbox.c.user_id, session=otlp_inbox.c.session_id),
        # By session: what is kept of one names nothing else.
        Rows(TRACE, otlp_known.c.session_id, session=otlp_known.c.session_id),
    )

    def named(self, selection: ForgetSelection) -> Items:
        """See `Forgetter`."""
        found = [super().named(selection)]
        if user := selection.user_id:
            columns = otlp_inbox.c
            of_user = self._traces(columns.user_id == user)
            ids = self.select(columns.id, columns.user_id == "", columns.trace_id.in_(of_user))
            found.append({SPAN: ids})
        return merged(found)

    def derived(self, found: Items) -> Items:
        """See `Forgetter`."""
        derived = super().derived(found)
        if not (sessions := found.get(SESSION)):
            return derived
        columns, wanted = otlp_inbox.c, listed(array(sessions))
        chosen = select(otlp_known.c.trace_id).where(
            otlp_known.c.tenant_id == self._tenant_id, otlp_known.c.session_id.in_(wanted)
        )
        silent = self.select(
            columns.id,
            columns.session_id == "",
            columns.trace_id != "",
            or_(
                columns.trace_id.in_(wanted),  # A trace whose session nobody names is one itself.
                columns.trace_id.in_(chosen),
                columns.trace_id.in_(self._traces(columns.session_id.in_(wanted))),
            ),
        )
        return merged((derived, {SPAN: silent}))

    def names(self, what: str) -> Iterator[str]:
        """See `Forgetter`. A trace is a session itself where nobody names one."""
        yield from super().names(what)
        if what == SESSION:
            yield from self.distinct(otlp_inbox.c.trace_id)

    def _traces(self, condition: ColumnElement[bool]) -> Select[tuple[str]]:
        columns = otlp_inbox.c
        return select(columns.trace_id).where(
            columns.tenant_id == self._tenant_id, columns.trace_id != "", condition
        )


FORGETS = Forgets(
    TelemetryForgetter,
    {
        otlp_inbox: "deleted with the session or the user that they name, or their trace does",
        otlp_known: "deleted with their session",
    },
)
