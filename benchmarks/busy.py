"""Heavy work for a worker process, as training and the building of an index are heavy."""

from __future__ import annotations

import time

from mneme_server.common.progress import Step

_ROWS, _COLUMNS = 20_000, 384


def compute(step: Step, *, seconds: float) -> int:
    """Multiply matrices that fit no cache, with Python between, for so long; return how often."""
    import numpy as np

    vectors = np.random.default_rng(0).standard_normal((_ROWS, _COLUMNS), np.float32)
    until, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        best = (vectors @ vectors[rounds % _ROWS]).argsort()[:100]
        rounds += 1 + 0 * sum(int(position) for position in best)
        step.report("computing", rounds)
    return rounds
