"""Forgetting of memories."""

from __future__ import annotations

from mneme_server.engine.corpus.forgetting import Items
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.engine.store.forgetting import Forgets, Rows, SqlForgetter
from mneme_server.features.memory.memories import remove
from mneme_server.features.memory.model import MEMORY
from mneme_server.features.memory.store import (
    SqlMemories,
    memories,
    memory_confirmations,
    memory_tags,
    memory_values,
)


class MemoryForgetter(SqlForgetter):
    """Forgets memories. What a forgotten one superseded is passed on, as when it is deleted."""

    rows = (
        Rows(
            MEMORY.name, memories.c.id,
            user=memories.c.user_id, agent=memories.c.agent_id, project=memories.c.project,
            tag=memory_tags.c.tag, document=MEMORY,
        ),
    )  # fmt: skip

    def erase(self, found: Items, unit: CorpusUnit) -> None:
        """See `Forgetter`."""
        if gone := found.get(MEMORY.name):
            remove(unit, unit.get(SqlMemories).successors(gone), named=False)


FORGETS = Forgets(
    MemoryForgetter,
    {
        memories: "deleted",
        memory_tags: "deleted with their memory",
        memory_values: "deleted with their memory",
        memory_confirmations: "deleted with their memory",
    },
)
