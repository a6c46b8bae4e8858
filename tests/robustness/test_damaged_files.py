"""Damaged files: what is lost is said, the rest is answered, and nobody else notices.

    MNEME_TEST_DAMAGES=1000 MNEME_TEST_SEED=1 pytest tests/robustness/test_damaged_files.py

Each round puts a tenant's folder back as it was, damages one file of it, while the tenant is closed
or while it is in use, asks everything there is to ask, and looks after another tenant.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mneme.v1 import event_service_pb2 as events_pb
from support.api import Api
from support.faults import FAULTS
from support.making import ids_of, recall
from support.questions import codes, fill
from support.server import ServerProcess, server_process

ROUNDS = int(os.environ.get("MNEME_TEST_DAMAGES") or 24)
_SEED = "MNEME_TEST_SEED"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks at open files in /proc")
def test_a_damaged_file_is_never_an_internal_error_a_hang_or_the_end(tmp_path: Path) -> None:
    # The same each time; `make robustness` takes new ones.
    seed = int(os.environ.get(_SEED) or 1)
    rng, seen = random.Random(seed), Counter[str]()
    with server_process(tmp_path / "data", tenant_idle_seconds=0.1) as server:
        victim, other = server.keys.tenant("victim"), server.keys.tenant("other")
        for api in (victim, other):
            fill(api)
        folder = tmp_path / "data" / "tenants" / victim.tenant_id
        kept = tmp_path / "kept"
        _wait_until_closed(server, folder)
        shutil.copytree(folder, kept)
        for number in range(ROUNDS):
            _put_back(server, folder, kept, tmp_path)
            what = f"{_SEED}={seed}, round {number}"
            try:
                what = _round(victim, folder, rng, what, seen)
                assert ids_of(recall(other, "the ferry to the island")), "the other tenant is well"
                assert server.process.poll() is None, "the server ended"
            except Exception as error:
                raise AssertionError(f"{what}: {error}\n{server.log[-6_000:]}") from error
            if (number + 1) % 20 == 0 or number + 1 == ROUNDS:
                print(f"{_SEED}={seed}: {number + 1} damaged files, answered with {dict(seen)}")


def _round(victim: Api, folder: Path, rng: random.Random, what: str, seen: Counter[str]) -> str:
    """Damage one file and ask; return what was done."""
    running = rng.random() < 0.5
    fault = rng.choice(sorted(FAULTS))
    if running:
        with _in_use(victim):
            file = _chosen(folder, rng)
            what += f": {fault} of {file.relative_to(folder)} in use"
            FAULTS[fault](file, rng)
            _ask(victim, what, seen)
    else:
        file = _chosen(folder, rng)
        what += f": {fault} of {file.relative_to(folder)}"
        FAULTS[fault](file, rng)
        _ask(victim, what, seen)
    return what


def _ask(victim: Api, what: str, seen: Counter[str]) -> None:
    try:
        answers = codes(victim)
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}") from error
    seen.update(code.name for answered in answers.values() for code in answered)


def _chosen(folder: Path, rng: random.Random) -> Path:
    """Choose a file; half of the time the database or its log."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    stored = [file for file in files if file.name.startswith("mneme.db")]
    return rng.choice(stored if rng.random() < 0.5 else files)


@contextmanager
def _in_use(api: Api) -> Iterator[None]:
    """Hold the tenant open for the block, as somebody who watches it does."""
    following = api.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=120)
    next(following)
    try:
        yield
    finally:
        following.cancel()


def _put_back(server: ServerProcess, folder: Path, kept: Path, beside: Path) -> None:
    """Put the tenant's folder back as it was; its workers may open it at any moment."""
    for attempt in itertools.count():
        _wait_until_closed(server, folder)
        folder.rename(beside / f"used-{attempt}")
        shutil.copytree(kept, beside / f"fresh-{attempt}")
        try:
            (beside / f"fresh-{attempt}").rename(folder)
            return
        except OSError:  # It was made anew meanwhile.
            continue
        finally:
            for name in ("used", "fresh"):
                shutil.rmtree(beside / f"{name}-{attempt}", ignore_errors=True)


def _wait_until_closed(server: ServerProcess, folder: Path) -> None:
    deadline = time.monotonic() + 60
    while _has_open(server, folder):
        assert time.monotonic() < deadline, f"{folder} stays open:\n{server.log[-3_000:]}"
        time.sleep(0.02)


def _has_open(server: ServerProcess, folder: Path) -> bool:
    for handle in Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            if str(handle.readlink()).startswith(f"{folder}/"):
                return True
        except OSError:  # It was closed meanwhile.
            continue
    return False
