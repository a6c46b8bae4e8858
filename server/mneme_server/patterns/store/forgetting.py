"""How patterns are forgotten."""

from __future__ import annotations

from mneme_server.patterns.store.tables import pattern_verdicts, patterns
from mneme_server.storage.forgetting import Forgets, Rows, SqlForgetter

PATTERN = "pattern"


class PatternsForgetter(SqlForgetter):
    """Forgets patterns, when they are named: they are of no user."""

    rows = (Rows(PATTERN, patterns.c.id, total="patterns"),)


FORGETS = Forgets(
    PatternsForgetter,
    {
        patterns: "deleted when they are named; they belong to nobody",
        pattern_verdicts: "deleted with their memory",
    },
)
