"""What a session counts after steps of it were erased."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mneme_server.common.canonical import Json
from mneme_server.features.learning.actions import Actions
from mneme_server.features.learning.checking import named_in
from mneme_server.features.learning.model import Counts, Step
from mneme_server.features.learning.recording import step_size
from mneme_server.features.learning.spaces import Box, Space
from mneme_server.features.learning.tally import Tally


def recounted(actions: Space, left: Iterable[Step]) -> tuple[Counts, Sequence[Json]]:
    """Return the counts of the steps that are left, in their order, and the labels of an open
    action space that they name."""
    tally = Tally()
    known = None if isinstance(actions, Box) else Actions(actions)  # type: ignore[arg-type]
    for step in left:
        tally.add(step, step_size(step))
        if known is not None:
            for action in named_in(step):
                known.add(action)
    return tally.counts, () if known is None else tuple(known.values)
