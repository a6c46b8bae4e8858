"""Confirmation: on how many days what is known was said again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from mneme_server.common.clock import DAY_US
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.memory.model import Memory
from mneme_server.features.memory.store import SqlMemories
from mneme_server.features.memory.supersession import Marking


class Confirming:
    """Takes note in a transaction of memories that are said again.

    Days are counted, not calls: a call whose answer was lost is sent again, and an agent says in
    one session more than once what it has just heard. Which of several came first makes no
    difference to how many days there are.

    Args:
        unit: the transaction.
    """

    def __init__(self, unit: CorpusUnit) -> None:
        self._unit = unit
        self._said: dict[str, list[int]] = {}

    def says_again(self, memory: Memory, since_us: int) -> None:
        """Note that what a memory says was said to hold since a time."""
        self._said.setdefault(memory.id, []).append(since_us)

    def days(self, marking: Marking) -> Mapping[str, Collection[int]]:
        """Return the days (since 1970, UTC) that were not known, by id, of the memories that change
        by this; `marking` comes to see these as they are now."""
        if not self._said:
            return {}
        known = self._unit.get(SqlMemories).confirmed_on(self._said)
        added: dict[str, Collection[int]] = {}
        for memory_id, times in self._said.items():
            memory = marking.seen(memory_id)
            before = known.get(memory_id, set()) | {memory.since_us // DAY_US}
            if new := {time // DAY_US for time in times} - before:
                count, last = memory.confirmed_count + len(new), max(before | new) * DAY_US
                marking.sees([replace(memory, confirmed_count=count, last_said_us=last)])
                added[memory_id] = sorted(new)
        return added
