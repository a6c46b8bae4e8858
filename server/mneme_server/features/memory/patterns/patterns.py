"""Patterns: stored, counted, and searched for in memories."""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mneme_server.common import deadline, turns
from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.errors import AlreadyExists, NotFound, Reason, ResourceExhausted
from mneme_server.common.etags import existing, require_etag
from mneme_server.common.identity import new_id
from mneme_server.engine.background.tenant_worker import TenantWorker
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.engine.tenants.count_buffer import CountBuffer
from mneme_server.features.memory.model import Memory, MemoryFilter, MemoryPart
from mneme_server.features.memory.patterns.matchers import KeptMatchers, RegexMatcher, matcher_of
from mneme_server.features.memory.patterns.model import (
    Definition,
    MatchedMemory,
    Pattern,
    PatternMatches,
    PatternStats,
    Regex,
    Semantic,
    Structural,
    StructureOf,
    TextMatch,
    Use,
)
from mneme_server.features.memory.patterns.store import SqlPatterns
from mneme_server.features.memory.search import SearchMemories
from mneme_server.features.memory.store import SqlMemories

MOST_PATTERNS = 1_000
_PART = 2_000
"""Memories looked at in one turn, in a few milliseconds."""


@dataclass(frozen=True, slots=True)
class _PatternSearch:
    """What a search was asked for, and when; `matches`: where the texts match, too."""

    tenant_id: str
    filter_: MemoryFilter
    limit: int
    matches: bool
    began_s: float


@dataclass(frozen=True, slots=True)
class Patterns:
    """The use cases of patterns."""

    tenants: OpenTenants
    search_memories: SearchMemories
    usage: PatternUsage
    kept: KeptMatchers = field(default_factory=KeptMatchers)

    def store(self, tenant_id: str, given: Pattern) -> Pattern:
        """Store the pattern; an empty id is made. The same again changes nothing.

        Raises:
            InvalidArgument: it cannot be used.
            AlreadyExists: the name or the id is taken by another.
            ResourceExhausted: there are too many.
        """
        _require_usable(given.definition)
        pattern = replace(given, id=given.id or new_id(), created_us=now_us())
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            patterns = unit.get(SqlPatterns)
            deadline.check()
            known = patterns.named(pattern.name)
            if known is not None:
                return _unchanged(known.pattern, given)
            if patterns.by_id(pattern.id) is not None:
                raise AlreadyExists(f"there is another pattern {pattern.id!r}", field="id")
            if patterns.count() >= MOST_PATTERNS:
                raise ResourceExhausted(
                    f"the tenant has {MOST_PATTERNS} patterns; delete some first",
                    reason=Reason.QUOTA_EXCEEDED,
                )
            patterns.add(pattern)
        return pattern

    def get(self, tenant_id: str, name: str) -> PatternStats:
        """Return the pattern of this name, with its statistics.

        Raises:
            NotFound: there is none.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return self.usage.shown(tenant_id, _existing(unit, name))

    def page(self, tenant_id: str, after: str, limit: int) -> tuple[Sequence[PatternStats], int]:
        """Return patterns by name, after that name; and how many there are."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            page = [
                self.usage.shown(tenant_id, one) for one in unit.get(SqlPatterns).page(after, limit)
            ]
            return page, unit.get(SqlPatterns).count()

    def update(
        self, tenant_id: str, pattern_id: str, changes: Mapping[str, Any], *, etag: str = ""
    ) -> Pattern:
        """Change the given fields of the pattern. If it looks for something else then, what was
        counted and said of its matches is dropped: it was said of other ones.

        Raises:
            NotFound: there is no such pattern.
            Aborted: `etag` is given and is not the pattern's any more.
            InvalidArgument: it cannot be used then.
            AlreadyExists: its new name is taken by another.
        """
        if "definition" in changes:
            _require_usable(changes["definition"])
        with self.tenants.open(tenant_id) as tenant:
            self.usage.write(tenant)  # What waits was counted of the pattern as it was.
            with tenant.write() as unit:
                return _changed(unit.get(SqlPatterns), pattern_id, changes, etag)

    def delete(self, tenant_id: str, name: str, *, etag: str = "") -> Pattern:
        """Delete the pattern, and return it.

        Raises:
            NotFound: there is none.
            Aborted: `etag` is given and is not the pattern's any more.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            pattern = _existing(unit, name, etag).pattern
            unit.get(SqlPatterns).remove(pattern.id)
        return pattern

    def report(self, tenant_id: str, name: str, verdicts: Mapping[str, bool]) -> PatternStats:
        """Note of memories, by id, whether the pattern matched them rightly.

        Raises:
            NotFound: there is no such pattern, or no such memory.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            pattern = _existing(unit, name).pattern
            there = unit.get(SqlMemories).successors(verdicts)
            for place, memory_id in enumerate(verdicts):
                if memory_id not in there:
                    raise NotFound(
                        f"there is no memory {memory_id!r}", field="memory_id", item=place
                    )
            unit.get(SqlPatterns).judge(pattern.id, verdicts, now_us())
            return self.usage.shown(tenant_id, _existing(unit, name))

    def search(
        self,
        tenant_id: str,
        name: str,
        filter_: MemoryFilter,
        *,
        limit: int,
        matches: bool,
        counted: bool = True,
    ) -> PatternMatches:
        """Return the memories that the pattern matches; with `matches`, where. Count the use if it
        is to be `counted`.

        Raises:
            NotFound: there is no such pattern.
            EmbeddingError: it is semantic, and the embedding backend failed.
        """
        asked = _PatternSearch(tenant_id, filter_, limit, matches, time.perf_counter())
        pattern = self.get(tenant_id, name).pattern
        definition = pattern.definition
        if isinstance(definition, Semantic):
            found = self._by_meaning(asked, definition)
        else:
            found = self._one_by_one(asked, definition)
        if counted:
            self.usage.used(tenant_id, pattern.id, found.total, found.took_s)
        return found

    def _by_meaning(self, asked: _PatternSearch, definition: Semantic) -> PatternMatches:
        near = self.search_memories.search(
            asked.tenant_id,
            definition.text,
            asked.filter_,
            limit=asked.limit,
            min_similarity=definition.threshold,
        )
        results = [
            MatchedMemory(one.memory, _whole(one.memory) if asked.matches else (), one.similarity)
            for one in near.results
        ]
        took_s = time.perf_counter() - asked.began_s
        return PatternMatches(
            results, near.matches, near.searched, took_s, near.capped, near.partial
        )

    def _one_by_one(self, asked: _PatternSearch, definition: Regex | Structural) -> PatternMatches:
        matcher = self.kept.of(asked.tenant_id, definition)
        of_metadata = isinstance(definition, Structural) and definition.of is StructureOf.METADATA
        what = MemoryPart.METADATA if of_metadata else MemoryPart.TEXT
        found: list[tuple[int, str]] = []
        searched, after = 0, ""
        with self.tenants.open(asked.tenant_id) as tenant, tenant.read() as unit:
            while True:
                with turns.piece():
                    part = unit.get(SqlMemories).texts(asked.filter_, what, after, _PART)
                    places = matcher.matching(part.joined) if part.count else ()
                    if places:
                        found += unit.get(SqlMemories).stamps(asked.filter_, after, _PART, places)
                searched += part.count
                if part.count < _PART:
                    break
                after = part.last_id
            best = [memory_id for _, memory_id in heapq.nlargest(asked.limit, found)]
            memories = unit.get(SqlMemories).get_many(best)
        results = [
            MatchedMemory(memories[one], _places(definition, matcher, memories[one], asked.matches))
            for one in best
        ]
        return PatternMatches(results, len(found), searched, time.perf_counter() - asked.began_s)


def _places(
    definition: Regex | Structural, matcher: object, memory: Memory, wanted: bool
) -> Sequence[TextMatch]:
    if not wanted:
        return ()
    if isinstance(matcher, RegexMatcher):
        return matcher.matches(memory.text)
    of_text = isinstance(definition, Structural) and definition.of is StructureOf.TEXT
    return _whole(memory) if of_text else ()


def _whole(memory: Memory) -> Sequence[TextMatch]:
    return (TextMatch(memory.text, 0, len(memory.text)),)


def _existing(unit: CorpusUnit, name: str, etag: str = "") -> PatternStats:
    """Return the pattern, which must still have this etag, if one is given."""
    found = unit.get(SqlPatterns).named(name)
    if found is None:
        raise NotFound(f"there is no pattern {name!r}", field="name")
    require_etag("pattern", found.pattern, etag)
    return found


def _changed(
    patterns: SqlPatterns, pattern_id: str, changes: Mapping[str, Any], etag: str
) -> Pattern:
    before = existing("pattern", patterns.by_id(pattern_id), pattern_id, etag)
    after = replace(before, **changes)
    if after.name != before.name and patterns.named(after.name) is not None:
        raise _taken(after.name)
    if after.definition != before.definition:
        patterns.reset(pattern_id)
    if after != before:
        patterns.save(after)
    return after


def _unchanged(known: Pattern, given: Pattern) -> Pattern:
    # A client makes an id for each call: the name is what says that it is the same one.
    if replace(given, id=known.id, created_us=known.created_us) != known:
        raise _taken(known.name)
    return known


def _taken(name: str) -> AlreadyExists:
    return AlreadyExists(
        f"there is another pattern {name!r}; update or delete it, or choose another name",
        field="name",
    )


def _require_usable(definition: Definition) -> None:
    if not isinstance(definition, Semantic):
        matcher_of(definition)


@dataclass(slots=True)
class _Uses:
    """Of one tenant's patterns, by id, since they were written."""

    by_pattern: dict[str, Use] = field(default_factory=dict)

    def add(self, more: _Uses) -> None:
        for pattern_id, use in more.by_pattern.items():
            self.by_pattern[pattern_id] = self.by_pattern.get(pattern_id, Use()) + use


def _write(unit: CorpusUnit, uses: _Uses) -> None:
    unit.get(SqlPatterns).count_uses(uses.by_pattern)


class PatternUsage:
    """The uses of all tenants' patterns that are not written yet, counted without writing; see
    `engine.tenants.count_buffer`. Thread-safe."""

    def __init__(self) -> None:
        self._gathering: CountBuffer[_Uses, CorpusUnit] = CountBuffer(_Uses, _write)

    def writer(self, tenants: OpenTenants) -> TenantWorker:
        """Return what writes the uses."""
        return self._gathering.writer(tenants, "uses of patterns", "pattern-usage-writer")

    def write(self, tenant: OpenTenant) -> None:
        """Write the tenant's uses."""
        self._gathering.write(tenant)

    def used(self, tenant_id: str, pattern_id: str, matches: int, took_s: float) -> None:
        """Count a search."""
        use = Use(1, matches, round(took_s * MICROSECONDS), now_us())
        self._gathering.add(tenant_id, _Uses({pattern_id: use}))

    def shown(self, tenant_id: str, stats: PatternStats) -> PatternStats:
        """Return statistics with the uses that are not written yet."""
        waiting = self._gathering.of(tenant_id, lambda uses: uses.by_pattern.get(stats.pattern.id))
        return replace(stats, use=sum(waiting, stats.use))
