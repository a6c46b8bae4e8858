"""No request, however it is made, meets a bug, hangs, or ends the server."""

from __future__ import annotations

import os
from pathlib import Path

from fuzzing.calling import Report, fuzz, methods
from support.server import server_process

_SEED = "MNEME_FUZZ_SEED"
CALLS, THREADS = 2_500, 3


def test_calls_at_random_meet_no_bug(tmp_path: Path) -> None:
    # The same each time; `python -m fuzzing` takes new ones.
    seed = int(os.environ.get(_SEED) or 1)
    report = Report()
    with server_process(tmp_path / "data", log_level="error") as server:
        fuzz(server.address, calls=CALLS, seed=seed, threads=THREADS, report=report)
        assert not report.failures, f"{_SEED}={seed}: {report.failures[0]}"
        assert server.process.poll() is None
        assert server.stop() == 0
        assert "internal error" not in server.log
    # Or else it would show nothing: most methods have answered. Others, e.g. those that restore,
    # must meet the name of what there is, which so few calls seldom do.
    assert len(report.answered()) > 0.75 * len(methods()), report
