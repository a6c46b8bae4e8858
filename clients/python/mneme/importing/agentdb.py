"""Brings in an AgentDB: its database of memories, patterns, episodes, skills and causal edges.

Everything gets an id made of what it is, so that importing the same database again changes nothing,
and two databases do not meet.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mneme._core.fitting import rules
from mneme.client import MnemeClient
from mneme.errors import (
    AlreadyExistsError,
    ArgumentError,
    FailedPreconditionError,
    InvalidArgumentError,
    MnemeError,
    NotFoundError,
)
from mneme.importing.plan import exact
from mneme.messages import Episode

_MAGIC = b"SQLite format 3\0"
_BATCH = 100
_EPISODE: Mapping[str, Any] = Episode.DESCRIPTOR.fields_by_name
_LABELS = rules(_EPISODE["tags"]).repeated
_MOST_CHARS: int = rules(_EPISODE["input"]).string.max_len
_MOST_TASK: int = rules(_EPISODE["task"]).string.max_len
_MOST_NAME: int = rules(_EPISODE["agent_id"]).string.max_len
_MOST_TAGS: int = _LABELS.max_items
_MOST_TAG: int = _LABELS.items.string.max_len
_TABLES = ("vectors", "episodes", "skills")
"""An AgentDB has one of these."""
_NOT_BROUGHT = {
    "causal_experiments": "an experiment's assignments are not in it",
    "causal_observations": "they belong to experiments",
    "recall_certificates": "they rest on a log that is not in it",
    "learning_sessions": "what they learned is not in it",
    "experience_trajectories": "they belong to learning sessions",
}

Row = Mapping[str, Any]

_REFUSED = (
    ArgumentError, InvalidArgumentError, AlreadyExistsError, NotFoundError, FailedPreconditionError,
)  # fmt: skip
"""What says that a row cannot be brought in, and nothing of the others."""


class Unfit(Exception):
    """A row cannot be brought in."""


@dataclass
class AgentDbReport:
    """What became of a database: counts by kind, of those that were there before too; rows that
    cannot be brought in, with the reason; tables that are not brought, with their rows."""

    brought: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[str, str]] = field(default_factory=list)
    left: dict[str, tuple[int, str]] = field(default_factory=dict)


def is_database(file: Path) -> bool:
    """Whether a file is an SQLite database; of a pipe, what was read for that would be lost."""
    try:
        if not file.is_file():
            return False
        with file.open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def import_agentdb(client: MnemeClient | None, file: Path) -> AgentDbReport:
    """Bring in a database; without a client only count what would be.

    Raises:
        ArgumentError: the file is no AgentDB.
        OSError: it cannot be read.
        MnemeError: the server does not answer, or may not be written to.
    """
    if not is_database(file):
        raise ArgumentError(f"{file} is no SQLite database")
    try:
        # As long as it is open elsewhere, what is in its log counts, too.
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            # One text that is no UTF-8 would end the reading of its table.
            database.text_factory = _decoded
            return _Import(client, database, file).run()
    except sqlite3.Error as error:
        raise ArgumentError(f"{file} cannot be read: {error}") from error


class _Import:
    """One import of a database."""

    def __init__(
        self, client: MnemeClient | None, database: sqlite3.Connection, file: Path
    ) -> None:
        self._client = client
        self._database = database
        self._report = AgentDbReport()
        self._episodes: dict[int, str] = {}
        self._skills: dict[int, str] = {}
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._tables = {name for (name,) in names}
        if self._tables.isdisjoint(_TABLES):
            raise ArgumentError(
                f"{file} is a database, but no AgentDB: it lacks {', '.join(_TABLES)}"
            )

    def run(self) -> AgentDbReport:
        """Bring everything in, each kind after those that it refers to."""
        self._bring_many("vectors", "memories", _memory, self._send_memories)
        self._bring_many("episodes", "episodes", self._episode, self._send_episodes)
        self._bring("patterns", self._pattern)
        self._bring("skills", self._skill)
        self._bring("skill_links", self._link)
        self._bring("causal_edges", self._edge)
        for table, why in _NOT_BROUGHT.items():
            rows = self._count(table)
            if rows:
                self._report.left[table] = (rows, why)
        return self._report

    def _rows(self, table: str) -> Iterator[Row]:
        if table not in self._tables:
            return
        for row in self._database.execute(f'SELECT * FROM "{table}"'):
            yield {name: row[name] for name in row.keys()}  # noqa: SIM118 (a row has no items).

    def _count(self, table: str) -> int:
        if table not in self._tables:
            return 0
        (rows,) = self._database.execute(f'SELECT count(*) FROM "{table}"').fetchone()
        return int(rows)

    def _bring_many(
        self,
        table: str,
        kind: str,
        make: Callable[[Row], dict[str, Any]],
        send: Callable[[list[dict[str, Any]]], object],
    ) -> None:
        """Bring in rows that are sent many at once; those that are refused, one by one."""
        waiting: list[tuple[Row, dict[str, Any]]] = []

        def flush() -> None:
            try:
                if self._client is not None and waiting:
                    send([made for _, made in waiting])
                self._report.brought[kind] += len(waiting)
            except _REFUSED:
                for row, made in waiting:
                    self._try(table, kind, row, partial(send, [made]))
            waiting.clear()

        for row in self._rows(table):
            try:
                waiting.append((row, make(row)))
            except (Unfit, ValueError, KeyError, TypeError) as error:
                self._broken(table, row, error)
            if len(waiting) == _BATCH:
                flush()
        flush()

    def _bring(self, table: str, bring: Callable[[Row], object]) -> None:
        for row in self._rows(table):
            self._try(table, table, row, partial(bring, row))

    def _try(self, table: str, kind: str, row: Row, bring: Callable[[], object]) -> None:
        try:
            bring()
            self._report.brought[kind] += 1
        except _REFUSED as error:
            said = error.message if isinstance(error, MnemeError) else error
            self._broken(table, row, said)
        except (Unfit, ValueError, KeyError, TypeError) as error:
            self._broken(table, row, error)

    def _broken(self, table: str, row: Row, why: object) -> None:
        place = f"{table} {row['id']}" if "id" in row else table
        self._report.broken.append((place, f"{why}" or type(why).__name__))

    def _send_memories(self, memories: list[dict[str, Any]]) -> None:
        assert self._client is not None
        for _ in self._client.create_memories(memories):  # type: ignore[arg-type]
            pass

    def _send_episodes(self, episodes: list[dict[str, Any]]) -> None:
        assert self._client is not None
        self._client.import_episodes(episodes)  # type: ignore[arg-type]

    def _episode(self, row: Row) -> dict[str, Any]:
        task = _text(row, "task", _MOST_TASK)
        if not task:
            raise Unfit("it has no task")
        episode_id = _id("episode", row["id"], row.get("ts"), task, row.get("output"))
        made = {
            "id": episode_id,
            "session_id": _line(row, "session_id"),
            "task": task,
            "input": _text(row, "input"),
            "output": _text(row, "output"),
            "critique": _text(row, "critique", _MOST_TASK),
            "reward": _number(row, "reward") or 0.0,
            "success": bool(row.get("success")),
            "latency_ms": _whole(row, "latency_ms"),
            "tokens_used": _whole(row, "tokens_used"),
            "tags": _tags(row),
            "metadata": _object(row, "metadata") or None,
            "occurred_at": _time(row, "ts"),
        }
        self._episodes[int(row["id"])] = episode_id
        return made

    def _pattern(self, row: Row) -> None:
        data = _object(row, "pattern_data")
        kind = row["pattern_type"]
        definition: dict[str, Any]
        if kind == "regex":
            definition = {"expression": data.get("regex") or data.get("pattern")}
        elif kind == "semantic":
            said = data.get("text") or data.get("query") or row.get("description")
            definition = {"text": said}
            if isinstance(data.get("threshold"), int | float):
                definition["threshold"] = data["threshold"]
        elif kind == "structural":
            definition = {"schema": data.get("schema", data)}
        else:
            raise Unfit(f"its type {kind!r} is unknown")
        if not next(iter(definition.values())):
            raise Unfit(f"its {kind} is not said")
        if self._client is not None:
            self._client.create_pattern(
                _line(row, "name"),
                description=_text(row, "description", 2_000),
                **{kind: definition},  # type: ignore[arg-type]
            )

    def _skill(self, row: Row) -> None:
        name = _line(row, "name")
        if not name:
            raise Unfit("it has no name")
        skill_id = _id("skill", row["id"], name, row.get("code"))
        signature = _object(row, "signature")
        came_from = self._episodes.get(row.get("created_from_episode") or 0)
        record = {
            key: row[key]
            for key in ("success_rate", "uses", "avg_reward", "avg_latency_ms")
            if row.get(key)
        }
        metadata = _object(row, "metadata") | ({"agentdb_record": record} if record else {})
        rate = _number(row, "success_rate")
        if self._client is not None:
            self._client.create_skill(
                name,
                description=_text(row, "description"),
                signature={
                    part: signature[part]
                    for part in ("inputs", "outputs")
                    if isinstance(signature.get(part), dict)
                },  # type: ignore[arg-type]
                code=_text(row, "code"),
                metadata=metadata or None,
                claimed_success_rate=rate if rate is not None and 0 <= rate <= 1 else None,
                source_episode_ids=[came_from] if came_from else None,
                skill_id=skill_id,
            )
        self._skills[int(row["id"])] = skill_id

    def _link(self, row: Row) -> None:
        ends = [self._skills.get(row[name]) for name in ("parent_skill_id", "child_skill_id")]
        if None in ends:
            raise Unfit("it links a skill that was not brought in")
        if self._client is not None:
            self._client.link_skills(
                str(ends[0]),
                str(ends[1]),
                relationship=row["relationship"],
                weight=_number(row, "weight"),
                metadata=_object(row, "metadata") or None,
            )

    def _edge(self, row: Row) -> None:
        cause, effect = (_line(row, name) for name in ("cause", "effect"))
        edge_id = _id("edge", row["id"], cause, effect)
        if self._client is not None:
            self._client.create_edge(
                cause,
                effect,
                uplift=_number(row, "uplift") or 0.0,
                confidence=_number(row, "confidence"),
                sample_size=_whole(row, "sample_size"),
                mechanism=_text(row, "mechanism", _MOST_TASK),
                metadata=_object(row, "metadata") or None,
                edge_id=edge_id,
            )


def _memory(row: Row) -> dict[str, Any]:
    text = _text(row, "text", limit=None)
    if not text.strip():
        raise Unfit("it has no text")
    if len(text) > _MOST_CHARS:
        raise Unfit(f"its text has {len(text):,} characters, at most {_MOST_CHARS:,} are allowed")
    return {
        "id": _id("vector", row["id"], text, row.get("created_at")),
        "text": text,
        "tags": _tags(row),
        "metadata": _object(row, "metadata") or None,
        "since": _time(row, "created_at"),
        "keep_copy": True,
    }


def _id(*parts: Any) -> str:
    said = json.dumps([str(part) for part in parts], ensure_ascii=False)
    return f"agentdb-{parts[0]}-{hashlib.sha256(said.encode()).hexdigest()[:20]}"


def _text(row: Row, name: str, limit: int | None = _MOST_CHARS) -> str:
    value = row.get(name)
    if value is None:
        return ""
    text = _decoded(value) if isinstance(value, bytes) else str(value)
    return text.replace("\0", "")[:limit]


def _decoded(text: bytes) -> str:
    return text.decode(errors="replace")


def _line(row: Row, name: str) -> str:
    text = "".join(one if one.isprintable() else " " for one in _text(row, name))
    return text.strip()[:_MOST_NAME]


def _json(row: Row, name: str) -> Any:
    text = _text(row, name, limit=None)
    try:
        return exact(json.loads(text)) if text.strip() else None
    except (ValueError, RecursionError):
        return text


def _object(row: Row, name: str) -> dict[str, Any]:
    value = _json(row, name)
    if isinstance(value, dict):
        return value
    return {} if value in (None, [], "") else {name: value}


def _tags(row: Row) -> list[str]:
    value = _json(row, "tags")
    tags = value.split(",") if isinstance(value, str) else value or []
    if not isinstance(tags, list):
        return []
    clean = ("".join(one if one.isprintable() else " " for one in str(tag)) for tag in tags)
    return list(dict.fromkeys(tag.strip()[:_MOST_TAG] for tag in clean if tag.strip()))[:_MOST_TAGS]


def _number(row: Row, name: str) -> float | None:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _whole(row: Row, name: str) -> int | None:
    value = _number(row, name)
    return None if value is None or value < 0 else int(value)


def _time(row: Row, name: str) -> datetime | None:
    """A time in seconds since 1970, or in milliseconds, as some versions have it."""
    value = _number(row, name)
    if value is None or value < 0:
        return None
    seconds = value / 1000 if value > 1e11 else value  # 1e11 seconds are the year 5138.
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
