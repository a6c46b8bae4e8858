"""SIGKILL at random moments under mixed load: nothing acknowledged is lost, nothing is there twice.

    MNEME_TEST_KILLS=500 MNEME_TEST_SEED=1 pytest tests/robustness/test_kills.py

Several tenants write at once: batches of events with ids of the caller's, lessons, knowledge,
handovers; and ask. After each kill the next server must have all that was acknowledged; every few
kills everything is compared, chains are verified, and a new data folder begins.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import knowledge_pb2
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import skill_service_pb2 as skill_pb
from support.api import Api
from support.making import (
    episode,
    event,
    ids_of,
    lesson,
    list_events,
    recall,
    record,
    skill,
    stream,
    verify,
)
from support.server import ServerProcess

KILLS = int(os.environ.get("MNEME_TEST_KILLS") or 5)
KILLS_A_FOLDER = 10
TENANTS = 3
_SEED = "MNEME_TEST_SEED"
_GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
_PAUSE_S = 0.03

BATCHED = ("event", "streamed", "memory")
"""What is sent many at once."""

_numbers = itertools.count(1)


@dataclass
class Ledger:
    """What one tenant's writers sent, and what was acknowledged, by kind and id."""

    secret: str
    tenant_id: str
    sent: dict[str, set[str]] = field(default_factory=lambda: {kind: set() for kind in KINDS})
    acknowledged: dict[str, set[str]] = field(
        default_factory=lambda: {kind: set() for kind in KINDS}
    )


class Worker(threading.Thread):
    """Does one thing again and again until the server is gone."""

    def __init__(self, kind: str, api: Api, ledger: Ledger, rng: random.Random) -> None:
        super().__init__(name=f"{kind}-{ledger.tenant_id}", daemon=True)
        self._kind, self._api, self._ledger, self._rng = kind, api, ledger, rng
        self.unexpected: BaseException | None = None

    def run(self) -> None:
        try:
            while True:
                self._step()
                time.sleep(self._rng.uniform(0, _PAUSE_S))
        except grpc.RpcError as error:
            if error.code() not in _GONE:
                self.unexpected = error
        except BaseException as error:
            self.unexpected = error

    def _step(self) -> None:
        ids = [f"{self._kind}-{next(_numbers)}" for _ in range(self._rng.randint(1, 20))]
        ids = ids if self._kind in BATCHED else ids[:1]
        self._ledger.sent[self._kind].update(ids)
        KINDS[self._kind](self._api, ids, self._rng)
        self._ledger.acknowledged[self._kind].update(ids)


def _record(api: Api, ids: list[str], rng: random.Random) -> None:
    record(api, *_events(ids, rng), wait=rng.random() < 0.05)


def _stream(api: Api, ids: list[str], rng: random.Random) -> None:
    stream(api, _events(ids, rng))


def _events(ids: list[str], rng: random.Random) -> list[events_pb.NewEvent]:
    return [
        event(f"word{name.replace('-', '')} was said", f"session-{rng.randrange(4)}", id=name,
              agent_id="ann", at=n, cost_usd=0.25)
        for n, name in enumerate(ids)
    ]  # fmt: skip


def _teach(api: Api, ids: list[str], _rng: random.Random) -> None:
    lesson(api, ids[0], f"about word{ids[0].replace('-', '')}", lesson_id=ids[0])


def _log(api: Api, ids: list[str], _rng: random.Random) -> None:
    api.learn.CreateKnowledge(
        knowledge_pb2.CreateKnowledgeRequest(
            project="r",
            type=1,
            context=f"word{ids[0].replace('-', '')}",
            lesson="l",
            entry_id=ids[0],
        )
    )


def _attempt(api: Api, ids: list[str], rng: random.Random) -> None:
    word = f"word{ids[0].replace('-', '')}"
    episode(api, f"try {word}", episode_id=ids[0], success=rng.random() < 0.5, critique=word)


def _use(api: Api, ids: list[str], _rng: random.Random) -> None:
    word = f"word{ids[0].replace('-', '')}"
    skill(api, ids[0], skill_id=ids[0], description=f"about {word}")
    api.skill.RecordSkillUse(
        skill_pb.RecordSkillUseRequest(skill_id=ids[0], use_id="first", success=True)
    )


def _sleep(api: Api, ids: list[str], _rng: random.Random) -> None:
    api.events.StartSession(events_pb.StartSessionRequest(session_id=ids[0], project="p"))
    api.context.Sleep(context_pb.SleepRequest(session_id=ids[0], progress=[ids[0]]))


def _remember(api: Api, ids: list[str], _rng: random.Random) -> None:
    words = [f"about word{name.replace('-', '')}" for name in ids]
    requests = [
        memory_pb.CreateMemoriesRequest(
            memory=memory_pb.NewMemory(
                id=name, text=text, tags=["kill"], supersedes=ids[place - 1 : place]
            )
        )
        for place, (name, text) in enumerate(zip(ids, words, strict=True))
    ]
    for _ in api.memory.CreateMemories(iter(requests)):
        pass


def _ask(api: Api, _ids: list[str], rng: random.Random) -> None:
    recall(api, rng.choice(["what was said?", "word", "a lesson about words"]))
    api.events.ListSessions(events_pb.ListSessionsRequest())


KINDS: dict[str, Callable[[Api, list[str], random.Random], None]] = {
    "event": _record,
    "streamed": _stream,
    "lesson": _teach,
    "entry": _log,
    "episode": _attempt,
    "skill": _use,
    "memory": _remember,
    "slept": _sleep,
    "asked": _ask,
}


def test_a_server_killed_at_any_moment_loses_and_repeats_nothing(tmp_path: Path) -> None:
    # The same each time; `make robustness` takes new ones.
    seed = int(os.environ.get(_SEED) or 1)
    rng, totals = random.Random(seed), Counter[str]()
    for first in range(0, KILLS, KILLS_A_FOLDER):
        kills = min(KILLS_A_FOLDER, KILLS - first)
        ledgers: list[Ledger] = []
        data = tmp_path / f"data-{first}"
        for number in range(first, first + kills):
            try:
                _round(data, ledgers, rng)
            except Exception as error:
                raise AssertionError(f"{_SEED}={seed}, kill {number}: {error}") from error
        server = ServerProcess(data)
        try:
            for ledger in ledgers:
                _check(server.keys.api(ledger.secret, ledger.tenant_id), ledger, rng)
                for kind, ids in ledger.acknowledged.items():
                    totals[kind] += len(ids)
            assert "internal error" not in server.log, server.log[-5_000:]
        except AssertionError as error:
            raise AssertionError(f"{_SEED}={seed}, after kill {first + kills}: {error}") from error
        finally:
            server.kill()
        print(f"{_SEED}={seed}: {first + kills} kills; acknowledged so far: {dict(totals)}")


def _round(data: Path, ledgers: list[Ledger], rng: random.Random) -> None:
    """Start a server, have everyone write, and kill it."""
    server = ServerProcess(data)
    workers: list[Worker] = []
    try:
        for _ in range(TENANTS - len(ledgers)):
            made = server.keys.tenant("kill")
            ledgers.append(Ledger(str(made.secret), made.tenant_id))
        workers += [
            Worker(kind, server.keys.api(ledger.secret, ledger.tenant_id), ledger,
                   random.Random(rng.random()))
            for ledger in ledgers for kind in KINDS
        ]  # fmt: skip
        moment_s = rng.uniform(0, 1.0)
        before = sum(len(ledger.acknowledged["event"]) for ledger in ledgers)
        for worker in workers:
            worker.start()
        for _ in range(2_000):  # Until something was written in this round.
            if sum(len(ledger.acknowledged["event"]) for ledger in ledgers) > before:
                break
            time.sleep(0.01)
        time.sleep(moment_s)
        assert server.process.poll() is None, f"it ended by itself:\n{server.log[-5_000:]}"
    finally:
        server.process.kill()
        for worker in workers:  # Before their connections are closed: that is no server's end.
            if worker.is_alive():
                worker.join(timeout=60)
        server.kill()
    for worker in workers:
        assert not worker.is_alive(), f"{worker.name} still waits for a server that is gone"
        assert worker.unexpected is None, f"{worker.name}: {worker.unexpected}"


def _check(api: Api, ledger: Ledger, rng: random.Random) -> None:
    """Compare everything with what was sent and what was acknowledged."""
    stored = list_events(api, page_size=1000)
    ids = Counter(found.id for found in stored if found.id.startswith(("event-", "streamed-")))
    assert not [one for one, count in ids.items() if count > 1], "an event is there twice"
    for kind in ("event", "streamed"):
        mine = {one for one in ids if one.startswith(f"{kind}-")}
        assert ledger.acknowledged[kind] <= mine, "an acknowledged event is lost"
        assert mine <= ledger.sent[kind]
    verified = verify(api)
    assert verified.valid, verified
    assert verified.events_checked == len(stored)
    answers = api.learn.ExportLessons(learn_pb.ExportLessonsRequest())
    lessons = Counter(answer.lesson.id for answer in answers)
    assert set(lessons.values()) <= {1}
    assert ledger.acknowledged["lesson"] <= lessons.keys() <= ledger.sent["lesson"]
    exported = api.skill.ExportEpisodes(skill_pb.ExportEpisodesRequest())
    episodes = Counter(answer.episode.id for answer in exported)
    assert set(episodes.values()) <= {1}
    assert ledger.acknowledged["episode"] <= episodes.keys() <= ledger.sent["episode"]
    uses = _uses_of_skills(api)
    assert ledger.acknowledged["skill"] <= uses.keys() <= ledger.sent["skill"]
    assert all(uses[one] == 1 for one in ledger.acknowledged["skill"]), uses
    memories = _memories(api)
    assert ledger.acknowledged["memory"] <= memories.keys() <= ledger.sent["memory"]
    for memory in memories.values():  # Both ends of what supersedes what, or neither.
        assert all(memories[old].superseded_by == memory.id for old in memory.supersedes)
        if memory.superseded_by:
            assert memory.id in memories[memory.superseded_by].supersedes
    slept = sorted(ledger.acknowledged["slept"])
    for one in rng.sample(slept, min(5, len(slept))):
        session = api.events.GetSession(events_pb.GetSessionRequest(session_id=one)).session
        assert session.id == one
    lexical = recall_pb.RECALL_MODE_LEXICAL
    for kind in ("event", "streamed", "lesson", "memory", "entry", "episode", "skill"):
        known = sorted(ledger.acknowledged[kind])
        for one in rng.sample(known, min(10, len(known))):
            # A memory that another supersedes comes after that one; all else comes first.
            expected = [*_latest(memories, one), one] if kind == "memory" else [one]
            found = recall(
                api,
                f"word{one.replace('-', '')}",
                mode=lexical,
                limit=len(expected),
                include_superseded=True,
            )
            assert ids_of(found) == expected, f"{one} is not found by its word"


def _latest(memories: Mapping[str, memory_pb.Memory], one: str) -> list[str]:
    """Return the memory that holds in the place of one that was superseded, if it was."""
    latest = one
    while memories[latest].superseded_by:
        latest = memories[latest].superseded_by
    return [] if latest == one else [latest]


def _uses_of_skills(api: Api) -> dict[str, int]:
    request = skill_pb.ListSkillsRequest(page_size=1000)
    found: dict[str, int] = {}
    while True:
        page = api.skill.ListSkills(request)
        assert found.keys().isdisjoint(one.id for one in page.skills)
        found |= {one.id: one.record.uses for one in page.skills}
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


def _memories(api: Api) -> dict[str, memory_pb.Memory]:
    request = memory_pb.ListMemoriesRequest(include_superseded=True, page_size=1000)
    found: dict[str, memory_pb.Memory] = {}
    while True:
        page = api.memory.ListMemories(request)
        assert found.keys().isdisjoint(memory.id for memory in page.memories)
        found |= {memory.id: memory for memory in page.memories}
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token
