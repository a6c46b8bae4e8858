"""Four processes use one folder at once, SIGKILL of any of them and of the server, again and again.

    MNEME_TEST_ROUNDS=200 MNEME_TEST_SEED=1 pytest tests/robustness/test_participants.py -s

Python, TypeScript and MCP mixed. There are never two servers, by what the system knows of open
files; every acknowledged write is in the database, once; whoever is left goes on; and nothing runs
for long after the last has gone: some seconds, and on a busy machine a minute at most.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import mneme
import pytest
from support.folders import is_free, record_of, servers_of, wait_until
from support.participants import TYPESCRIPT, Participant
from support.server import model_dir

ROUNDS = int(os.environ.get("MNEME_TEST_ROUNDS") or 2)
SEED = os.environ.get("MNEME_TEST_SEED") or "1"
GONE_WITHIN_S = 60.0
_GOES_ON = 3
"""Acknowledged writes after the last kill that show that a participant goes on."""
_PATIENCE_S = 120.0
_LATEST_KILL_S = 4.0


def test_no_two_servers_nothing_lost_and_nothing_left_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_MODEL_DIR", str(model_dir()))
    kinds = ["python", "mcp"]
    if TYPESCRIPT.exists() and shutil.which("node"):
        kinds.append("typescript")
    rng = random.Random(SEED)
    folder = tmp_path / "memory"
    seen: Counter[str] = Counter()
    acknowledged: set[str] = set()
    longest = 0.0
    print(f"seed {SEED}, {ROUNDS} rounds of {', '.join(kinds)}")
    for number in range(1, ROUNDS + 1):
        with _witness(folder) as doubled:
            people = _round(folder, f"r{number}", kinds, rng, seen)
            begun = time.monotonic()
            wait_until(lambda: not _running(folder), f"round {number}: nothing runs", GONE_WITHIN_S)
            longest = max(longest, time.monotonic() - begun)
        assert not doubled, f"round {number}, seed {SEED}: servers {doubled} at once"
        acknowledged |= {text for one in people for text in one.acknowledged}
        _check(folder, acknowledged, f"round {number}, seed {SEED}")
        if number % 10 == 0 or number == ROUNDS:
            seen["acknowledged"] = len(acknowledged)
            print(f"{number} rounds: {dict(seen)}; gone after {longest:.1f} s at most", flush=True)
    with mneme.local(folder) as memory:
        found = {event.text for event in memory.iter_events(page_size=1000)}
    assert acknowledged <= found
    wait_until(lambda: is_free(folder), "the server ends by itself")


def _round(
    folder: Path, name: str, kinds: list[str], rng: random.Random, seen: Counter[str]
) -> list[Participant]:
    chosen = [*kinds, *rng.choices(kinds, k=4 - len(kinds))]
    people = [Participant(kind, folder, f"{name}-{n}-{kind}") for n, kind in enumerate(chosen)]
    for one in people:
        assert one.is_ready.wait(_PATIENCE_S), f"{one.name} does not start"
    for one in people:
        one.go()
    alive = _kill_some(folder, people, rng, seen)
    before = {one.name: len(one.acknowledged) for one in alive}
    for one in alive:
        wait_until(
            lambda one=one: len(one.acknowledged) >= before[one.name] + _GOES_ON,  # type: ignore[misc]
            f"{one.name} goes on; its errors: {one.failures}",
            _PATIENCE_S,
        )
    for one in alive:
        if rng.random() < 0.3:
            one.process.kill()
        else:
            one.end()
    for one in people:
        one.wait()
        for words in one.failures:
            seen[f"{one.kind}: {words[:100]}"] += 1
    return people


def _kill_some(
    folder: Path, people: list[Participant], rng: random.Random, seen: Counter[str]
) -> list[Participant]:
    """Kill up to three processes at random moments; return who is left."""
    alive = list(people)
    moments = sorted(rng.uniform(0, _LATEST_KILL_S) for _ in range(rng.randint(1, 3)))
    begun = time.monotonic()
    for moment in moments:
        threading.Event().wait(max(0.0, begun + moment - time.monotonic()))
        if rng.random() < 0.5 or len(alive) == 1:
            seen["servers killed"] += _kill_server(folder)
        else:
            victim = alive.pop(rng.randrange(len(alive)))
            victim.process.kill()
            seen["participants killed"] += 1
    return alive


def _kill_server(folder: Path) -> int:
    """Kill the process that the record names, if it is one of this folder's; return how many."""
    try:
        pid = record_of(folder)["pid"]
    except (OSError, ValueError):
        return 0
    if pid not in _running(folder):
        return 0
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return 0
    return 1


def _running(folder: Path) -> list[int]:
    """Every process that was started for the folder: servers, and who starts them."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"serve" in words and str(folder).encode() in words:
            found.append(int(name))
    return found


@contextmanager
def _witness(folder: Path) -> Iterator[list[list[int]]]:
    """Look all the time whether two processes have the folder's catalog open."""
    doubled: list[list[int]] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            first = set(servers_of(folder)) if folder.exists() else set()
            # One may have ended before the other was looked at: both must still be there.
            if len(first) > 1 and len(first & set(servers_of(folder))) > 1:
                doubled.append(sorted(first))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield doubled
    finally:
        over.set()
        thread.join()


def _check(folder: Path, acknowledged: set[str], where: str) -> None:
    database = folder / "tenants" / "default" / "mneme.db"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        stored = Counter(text for (text,) in connection.execute("SELECT text FROM events"))
    assert not acknowledged - stored.keys(), f"{where}: lost"
    twice = [text for text in acknowledged if stored[text] != 1]
    assert not twice, f"{where}: stored twice: {twice[:5]}"
