"""Patterns in a tenant's database, and how they are forgotten."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    ForeignKeyConstraint,
    Index,
    Row,
    Table,
    Text,
    delete,
    select,
    update,
)

from mneme_server.common.canonical import canonical_json
from mneme_server.common.counting import MAX_COUNT, counted
from mneme_server.common.stored import reads
from mneme_server.engine.store.forgetting import Forgets, Rows, SqlForgetter
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.rows import chunks, upsert
from mneme_server.engine.store.schema import (
    int64_column,
    json_column,
    metadata,
    rows_are,
    tenant_key,
    text_column,
    time_column,
)
from mneme_server.engine.store.totals import add_to_total, total
from mneme_server.features.memory.patterns.model import (
    Definition,
    Pattern,
    PatternStats,
    Regex,
    Semantic,
    Structural,
    StructureOf,
    Use,
)

patterns = Table(
    "patterns",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("name"),
    text_column("description"),
    json_column("definition"),
    time_column("created_at"),
    # How it was used; see `features.memory.patterns.model.Use`.
    int64_column("uses"),
    int64_column("matches"),
    int64_column("took_us"),
    time_column("last_used_at"),
    # Matches that were said to be right, and wrong; also of memories that are gone by now.
    int64_column("right"),
    int64_column("wrong"),
    Index("patterns_by_name", "tenant_id", "name", unique=True),
    info=rows_are("pattern", "id"),
)

pattern_verdicts = Table(
    "pattern_verdicts",
    metadata,
    tenant_key(),
    Column("pattern_id", Text, nullable=False, primary_key=True),
    Column("memory_id", Text, nullable=False, primary_key=True),
    Column("right", Boolean, nullable=False),
    time_column("judged_at"),
    ForeignKeyConstraint(
        ["tenant_id", "pattern_id"], ["patterns.tenant_id", "patterns.id"], ondelete="CASCADE"
    ),
    ForeignKeyConstraint(
        ["tenant_id", "memory_id"], ["memories.tenant_id", "memories.id"], ondelete="CASCADE"
    ),
    Index("pattern_verdicts_by_memory", "tenant_id", "memory_id"),
    sqlite_with_rowid=False,
)

PATTERN = "pattern"


class SqlPatterns:
    """The tenant's patterns."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def named(self, name: str) -> PatternStats | None:
        """Return the pattern of this name, or None."""
        query = select(patterns).where(
            patterns.c.tenant_id == self._tenant_id, patterns.c.name == name
        )
        found = read_rows(self._connection, query, _stats, kind="pattern")
        return found[0] if found else None

    def by_id(self, pattern_id: str) -> Pattern | None:
        """Return the pattern with this id, or None."""
        query = select(patterns).where(
            patterns.c.tenant_id == self._tenant_id, patterns.c.id == pattern_id
        )
        found = read_rows(self._connection, query, _stats, kind="pattern")
        return found[0].pattern if found else None

    def add(self, pattern: Pattern) -> None:
        """Insert a pattern."""
        key = {"tenant_id": self._tenant_id, "id": pattern.id, "created_at": pattern.created_us}
        self._connection.execute(patterns.insert(), key | _content(pattern) | _UNUSED)
        add_to_total(self._connection, self._tenant_id, "patterns", 1)

    def save(self, pattern: Pattern) -> None:
        """Write the content of a pattern that is there."""
        self._set(pattern.id, **_content(pattern))

    def reset(self, pattern_id: str) -> None:
        """Drop what was counted and said of a pattern's matches."""
        verdicts = pattern_verdicts.c
        self._connection.execute(
            delete(pattern_verdicts).where(
                verdicts.tenant_id == self._tenant_id, verdicts.pattern_id == pattern_id
            )
        )
        self._set(pattern_id, **_UNUSED)

    def remove(self, pattern_id: str) -> None:
        """Remove a pattern, with what was said of its matches."""
        gone = self._connection.execute(
            delete(patterns).where(
                patterns.c.tenant_id == self._tenant_id, patterns.c.id == pattern_id
            )
        )
        add_to_total(self._connection, self._tenant_id, "patterns", -gone.rowcount)

    def page(self, after: str, limit: int) -> Sequence[PatternStats]:
        """Return patterns by name, after that name."""
        query = select(patterns).where(
            patterns.c.tenant_id == self._tenant_id, patterns.c.name > after
        )
        query = query.order_by(patterns.c.name).limit(limit)
        return read_rows(self._connection, query, _stats, kind="pattern")

    def count(self) -> int:
        """Return how many there are."""
        return total(self._connection, self._tenant_id, "patterns")

    def count_uses(self, uses: Mapping[str, Use]) -> None:
        """Add to the uses of patterns, by id. Patterns that are gone are left out."""
        for some in chunks(uses):
            query = select(patterns).where(
                patterns.c.tenant_id == self._tenant_id, patterns.c.id.in_(some)
            )
            for found in read_rows(self._connection, query, _stats, kind="pattern"):
                use = found.use + uses[found.pattern.id]
                self._set(
                    found.pattern.id,
                    uses=use.times,
                    matches=use.matches,
                    took_us=use.took_us,
                    last_used_at=use.last_us,
                )

    def judge(self, pattern_id: str, verdicts: Mapping[str, bool], now_us: int) -> None:
        """Note of memories, by id, whether they were matched rightly; counts each memory once."""
        before: dict[str, bool] = {}
        columns = pattern_verdicts.c
        for some in chunks(verdicts):
            query = select(columns.memory_id, columns.right).where(
                columns.tenant_id == self._tenant_id,
                columns.pattern_id == pattern_id,
                columns.memory_id.in_(some),
            )
            before |= {row.memory_id: row.right for row in self._connection.execute(query)}
        rows = [
            {
                "tenant_id": self._tenant_id,
                "pattern_id": pattern_id,
                "memory_id": memory_id,
                "right": right,
                "judged_at": now_us,
            }
            for memory_id, right in verdicts.items()
        ]
        self._connection.execute(upsert(pattern_verdicts), rows)
        now, then = list(verdicts.values()), list(before.values())
        self._set(
            pattern_id,
            right=patterns.c.right + now.count(True) - then.count(True),
            wrong=patterns.c.wrong + now.count(False) - then.count(False),
        )

    def _set(self, pattern_id: str, **values: Any) -> None:
        self._connection.execute(
            update(patterns)
            .where(patterns.c.tenant_id == self._tenant_id, patterns.c.id == pattern_id)
            .values(**values)
        )


_UNUSED = dict.fromkeys(("uses", "matches", "took_us", "last_used_at", "right", "wrong"), 0)
"""The counts of a pattern that was not used yet."""


def _content(pattern: Pattern) -> dict[str, Any]:
    return {
        "name": pattern.name,
        "description": pattern.description,
        "definition": canonical_json(_written(pattern.definition)),
    }


def _written(definition: Definition) -> dict[str, Any]:
    if isinstance(definition, Regex):
        return {"regex": definition.expression}
    if isinstance(definition, Semantic):
        return {"semantic": definition.text, "threshold": definition.threshold}
    return {"structural": json.loads(definition.schema_json), "of": int(definition.of)}


def _read(text: str) -> Definition:
    written = json.loads(text)
    if "regex" in written:
        return Regex(written["regex"])
    if "semantic" in written:
        return Semantic(written["semantic"], float(written["threshold"]))
    return Structural(canonical_json(written["structural"]), StructureOf(written["of"]))


@reads("pattern")
def _stats(row: Row[Any]) -> PatternStats:
    return PatternStats(
        Pattern(row.id, row.name, _read(row.definition), row.description, row.created_at),
        Use(
            counted(row.uses),
            counted(row.matches),
            counted(row.took_us),
            min(row.last_used_at, MAX_COUNT),
        ),
        max(0, row.right),
        max(0, row.wrong),
    )


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
