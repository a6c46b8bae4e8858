"""How patterns are forgotten."""

from __future__ import annotations

from mneme_server.engine.store.forgetting import Forgets, Rows, SqlForgetter
from mneme_server.features.memory.patterns.store.tables import pattern_verdicts, patterns

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
