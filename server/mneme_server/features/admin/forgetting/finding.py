"""Finding all that is to be forgotten, and erasing it."""

from __future__ import annotations

from collections.abc import Sequence

from mneme_server.common.clock import now_us
from mneme_server.common.errors import InvalidArgument
from mneme_server.engine.corpus.forgetting import (
    SESSION,
    ForgetSelection,
    Forgetter,
    Items,
    Places,
    beyond,
    merged,
    named_of,
    only_named,
    things,
)
from mneme_server.features.admin.forgetting.model import Outcome
from mneme_server.features.admin.forgetting.ports import ForgettingUnit

POLICY = "policy"
"""The kind of things that are named, not only counted."""


def find(forgetters: Sequence[Forgetter], selection: ForgetSelection) -> Items:
    """Return what a selection names, and all that follows from it.

    Raises:
        InvalidArgument: it names a kind of things that there is not.
    """
    known = {kind for forgetter in forgetters for kind in forgetter.kinds}
    wanted = {*selection.items, *(selection.filter.kinds if selection.filter else ())}
    if unknown := sorted(wanted - known):
        raise InvalidArgument(
            f"there is nothing of the kind {unknown[0]!r} to forget; kinds are"
            f" {', '.join(sorted(known))}",
            field="kind",
        )
    found = [one.named(selection) for one in forgetters]
    if selection.session_id:  # It may be named by things, though nothing of it was recorded.
        found += [one.derived({SESSION: {selection.session_id}}) for one in forgetters]
    gone = beyond({kind: set(ids) for kind, ids in selection.items.items()}, merged(found))
    # Deleted before, some may be named still: by what is about them, and by the log.
    found += [only_named(gone), *(one.derived(gone) for one in forgetters)]
    return following(forgetters, merged(found))


def following(forgetters: Sequence[Forgetter], new: Items) -> Items:
    """Return these and all that follows from them."""
    found: Items = {}
    while new:
        found = merged([found, new])
        new = beyond(merged(forgetter.derived(new) for forgetter in forgetters), found)
    return found


def outcome_of(found: Items) -> Outcome:
    """Return what forgetting these comes to."""
    counted = {kind: len(ids) for kind, ids in sorted(things(found).items())}
    return Outcome(counted, sorted(found.get(POLICY, ())))


def erase(unit: ForgettingUnit, found: Items) -> tuple[list[int], Places]:
    """Erase all of these in a transaction; return their leaves in the tenant's log, and the places
    in chains that stay."""
    forgetters = unit.forgetters
    unit.overwrite()
    leaves: set[int] = set()
    now = now_us()
    everything = named_of(found)
    for kind, ids in merged(one.recallable(everything) for one in forgetters).items():
        forgotten = unit.log.forget(kind, sorted(ids), now)
        leaves |= {leaf.index for each in forgotten.values() for leaf in each}
    for forgetter in reversed(forgetters):
        forgetter.erase(found, unit)
    places: Places = {}
    for forgetter in forgetters:
        places |= forgetter.places
    return sorted(leaves), places
