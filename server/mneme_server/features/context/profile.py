"""GetProfile: what is known of a user, in an order that asks for no topic: what is pinned, what is
stable, what is recent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import takewhile

from mneme_server.common import turns
from mneme_server.common.clock import now_us
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.context.items import ContextFormat, ContextItem, in_turn
from mneme_server.features.context.model import Profile, ProfileItem, reason_of
from mneme_server.features.events.history import ActivityFilter
from mneme_server.features.memory.model import MEMORY, Importance, Memory, OfUser
from mneme_server.features.memory.store import SqlMemories

_LINE, _LEAST = 24, 8
"""Tokens of a line that says something short, and what no line counts less than."""
_SESSION = "session_id"


@dataclass(frozen=True, slots=True)
class GetProfile:
    """The use case: tell what is known of a user."""

    tenants: OpenTenants

    def of(self, tenant_id: str, whose: OfUser, budget: int, written: ContextFormat) -> Profile:
        """Return as much of the profile as the budget of tokens holds."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit, turns.piece():
            return profile(unit, whose, budget, written)


def profile(unit: CorpusUnit, whose: OfUser, budget: int, written: ContextFormat) -> Profile:
    """Return as much of a user's profile as the budget of tokens holds.

    Memories are read in their order until one does not fit, and some more that may fit instead: the
    time does not grow with what is known of the user.
    """
    stored = unit.get(SqlMemories)
    now, page = now_us(), budget // _LINE + 1
    memories: list[Memory] = []
    while True:
        read = stored.profile(whose, now, page, after=len(memories))
        memories += read
        composed = in_turn([item_of(one) for one in memories], budget, written)
        # Copies of one text take no room, however many there are.
        if composed.left_out or len(read) < page or len(memories) > budget // _LEAST:
            break
    total = len(memories) if len(read) < page else stored.count_of(whose, now)
    by_id = {one.id: one for one in memories}
    items = [ProfileItem(by_id[one.item.id], one.tokens) for one in composed.items]
    repeated = len(memories) - len(items) - composed.left_out
    return Profile(items, composed.text, composed.tokens, total - len(items) - repeated)


def pinned_for(unit: CorpusUnit, filter_: ActivityFilter, budget: int) -> list[ContextItem]:
    """Return what is pinned for the user of a filter and passes it, in the order of the profile, as
    items of a context; nothing without a user. No more is read than the budget could hold."""
    if not filter_.user_id:
        return []
    whose = OfUser(filter_.user_id, filter_.agent_id, filter_.project, shared=filter_.shared)
    memories = unit.get(SqlMemories).profile(whose, now_us(), budget // _LINE + 1)
    return [
        item_of(one)
        for one in takewhile(lambda one: one.pinned, memories)
        if (filter_.start_us is None or one.since_us >= filter_.start_us)
        and (filter_.end_us is None or one.since_us < filter_.end_us)
    ]


def item_of(memory: Memory) -> ContextItem:
    """Return a memory of a profile as an item of a context."""
    return ContextItem(
        kind=MEMORY.name,
        id=memory.id,
        text=memory.text,
        at_us=memory.last_said_us,
        worth=0.0,
        session_id=session_of(memory),
        note=_note(memory),
        pinned=memory.pinned,
    )


def session_of(memory: Memory) -> str:
    """Return the session that a memory comes from, as its metadata has it; "" where it has none."""
    if _SESSION not in memory.metadata_json:  # As nearly always.
        return ""
    said = json.loads(memory.metadata_json).get(_SESSION)
    return said if isinstance(said, str) else ""


def _note(memory: Memory) -> str:
    confirmed = memory.confirmed_count
    return ", ".join(
        filter(
            None,
            [
                f"by agent {memory.agent_id}" if memory.agent_id else "",
                f"on project {memory.project}" if memory.project else "",
                reason_of(memory).value,
                memory.importance.name.lower() if memory.importance >= Importance.HIGH else "",
                f"said on {confirmed + 1} days" if confirmed else "",
            ],
        )
    )
