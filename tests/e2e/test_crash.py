"""Acknowledged means durable: the server is killed while many write, again and again."""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api
from support.making import (
    TOOL_CALL,
    TOOL_ERROR,
    event,
    ids_of,
    lesson,
    list_events,
    recall,
    record,
    stream,
    verify,
)
from support.server import ServerProcess

ROUNDS = 4
SESSIONS = 6
WORDS = (
    "harbour", "violin", "glacier", "pepper", "lantern", "meadow", "copper", "falcon", "bridge",
    "saddle", "thunder", "orchard", "marble", "compass", "velvet", "canyon",
)  # fmt: skip
_SEED = "MNEME_TEST_SEED"


@dataclass
class Ledger:
    """What the writers sent, and what of it the server acknowledged."""

    sent: dict[str, events_pb.NewEvent] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    lessons_sent: set[str] = field(default_factory=set)
    lessons_acknowledged: set[str] = field(default_factory=set)
    unanswered: dict[str, list[events_pb.NewEvent]] = field(default_factory=dict)


class Writer(threading.Thread):
    """Writes until the server is gone.

    What was not answered is sent again under the same ids once there is a server again, as a
    client that retries does.
    """

    def __init__(self, name: str, api: Api, ledger: Ledger, rng: random.Random) -> None:
        super().__init__(name=name)
        self.api, self.ledger, self.rng = api, ledger, rng
        self.unexpected: BaseException | None = None

    def run(self) -> None:
        try:
            while True:
                self.step()
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                self.unexpected = error
        except BaseException as error:
            self.unexpected = error

    def step(self) -> None:
        raise NotImplementedError

    def batch(self, largest: int) -> list[events_pb.NewEvent]:
        """Return what is still unanswered, else new events; noted as sent."""
        ledger = self.ledger
        if waiting := ledger.unanswered.pop(self.name, None):
            events = waiting
        else:
            events = [_event(self.name, self.rng) for _ in range(self.rng.randint(1, largest))]
        ledger.sent.update({item.id: item for item in events})
        ledger.unanswered[self.name] = events
        return events

    def answered(self) -> None:
        events = self.ledger.unanswered.pop(self.name)
        self.ledger.acknowledged.update(item.id for item in events)


class Recorder(Writer):
    """Records batches."""

    def step(self) -> None:
        record(self.api, *self.batch(25), wait=self.rng.random() < 0.1)
        self.answered()


class Streamer(Writer):
    """Records streams."""

    def step(self) -> None:
        stream(self.api, self.batch(700))
        self.answered()


class Teacher(Writer):
    """Saves lessons."""

    def step(self) -> None:
        lesson_id = f"lesson-{next(_numbers)}"
        self.ledger.lessons_sent.add(lesson_id)
        lesson(self.api, lesson_id, _text(lesson_id, self.rng), lesson_id=lesson_id)
        self.ledger.lessons_acknowledged.add(lesson_id)


_numbers = itertools.count(1)


def _text(name: str, rng: random.Random) -> str:
    return f"{' '.join(rng.sample(WORDS, 5))} {name.replace('-', '')}"


def _event(writer: str, rng: random.Random) -> events_pb.NewEvent:
    name = f"{writer}-{next(_numbers)}"
    return event(
        _text(name, rng), f"session-{rng.randrange(SESSIONS)}",
        rng.choice([TOOL_CALL, TOOL_ERROR, "message"]), id=name,
        agent_id=f"agent-{rng.randrange(3)}", at=next(_numbers), input_tokens=rng.randrange(100),
        cost_usd=rng.randrange(8) / 8, payload={"writer": writer},
    )  # fmt: skip


def _writers(api: Api, ledger: Ledger, rng: random.Random) -> Iterator[Writer]:
    kinds: tuple[tuple[str, Callable[..., Writer]], ...] = (
        ("recorder-1", Recorder), ("recorder-2", Recorder), ("recorder-3", Recorder),
        ("streamer-1", Streamer), ("teacher-1", Teacher),
    )  # fmt: skip
    for name, kind in kinds:
        yield kind(name, api, ledger, random.Random(rng.random()))


def test_a_server_killed_while_many_write_loses_and_repeats_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get(_SEED) or 1)  # The same each time, unless one is given.
    print(f"{_SEED}={seed}")
    rng, ledger, secret, tenant_id = random.Random(seed), Ledger(), "", ""
    for _ in range(ROUNDS):
        server = ServerProcess(tmp_path / "data")
        if not secret:
            made = server.keys.tenant("crash")
            secret, tenant_id = str(made.secret), made.tenant_id
        api = server.keys.api(secret, tenant_id)
        writers = list(_writers(api, ledger, rng))
        for writer in writers:
            writer.start()
        _let_them_write(ledger, rng)
        server.kill()
        for writer in writers:
            writer.join(timeout=60)
            assert writer.unexpected is None, writer.unexpected
    server = ServerProcess(tmp_path / "data")
    try:
        _check(server.keys.api(secret, tenant_id), ledger, rng)
        assert "internal error" not in server.log
    finally:
        server.kill()


def _let_them_write(ledger: Ledger, rng: random.Random) -> None:
    """Wait until something was acknowledged in this round, and then for a random while."""
    before = len(ledger.acknowledged), len(ledger.lessons_acknowledged)
    for _ in range(2_000):
        now = len(ledger.acknowledged), len(ledger.lessons_acknowledged)
        if now[0] > before[0] and now[1] > before[1]:
            break
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 0.8))


def _check(api: Api, ledger: Ledger, rng: random.Random) -> None:
    assert len(ledger.acknowledged) >= ROUNDS, "the test must have written something"
    assert len(ledger.lessons_acknowledged) >= ROUNDS
    stored = list_events(api, page_size=1000)
    ids = [found.id for found in stored]
    assert len(ids) == len(set(ids)), "each event is there once"
    assert ledger.acknowledged <= set(ids) <= ledger.sent.keys()
    for found in stored:
        sent = ledger.sent[found.id]
        for name in ("session_id", "agent_id", "event_type", "text", "payload", "timestamp"):
            assert getattr(found, name) == getattr(sent, name)
    _check_chains_and_counters(api, stored)
    _check_memories(api, stored, ledger, rng)
    # And what nobody heard of the last time can be sent again.
    for unanswered in ledger.unanswered.values():
        stream(api, unanswered)
    assert {found.id for found in list_events(api, page_size=1000)} == ledger.sent.keys()
    assert verify(api).valid


def _check_chains_and_counters(api: Api, stored: list[events_pb.Event]) -> None:
    verified = verify(api)
    assert (verified.valid, verified.events_checked) == (True, len(stored)), verified
    sessions = api.events.ListSessions(events_pb.ListSessionsRequest()).sessions
    agents = api.events.ListAgents(events_pb.ListAgentsRequest()).agents
    for session in sessions:
        mine = [found for found in stored if found.session_id == session.id]
        assert sorted(found.sequence for found in mine) == list(range(1, len(mine) + 1))
        assert session.event_count == len(mine)
        assert session.tool_call_count == _count(mine, TOOL_CALL)
        assert session.error_count == _count(mine, TOOL_ERROR)
        assert session.total_input_tokens == sum(found.input_tokens for found in mine)
        assert session.total_cost_usd == sum(found.cost_usd for found in mine)
    assert sum(session.event_count for session in sessions) == len(stored)
    for agent in agents:
        mine = [found for found in stored if found.agent_id == agent.id]
        assert (agent.event_count, agent.error_count) == (len(mine), _count(mine, TOOL_ERROR))
        # An event can be the first that a session sees of several agents; it is one's session.
    assert sum(agent.session_count for agent in agents) == len(sessions)


def _count(events: list[events_pb.Event], kind: int) -> int:
    return sum(found.event_type == kind for found in events)


def _check_memories(
    api: Api, stored: list[events_pb.Event], ledger: Ledger, rng: random.Random
) -> None:
    stats = _when_all_is_embedded(api)
    lessons = {item.id for item in _lessons(api)}
    assert ledger.lessons_acknowledged <= lessons <= ledger.lessons_sent
    assert stats.memory_count == stats.vector_count == len(stored) + len(lessons)
    assert stats.failed_count == 0
    for found in rng.sample(stored, min(40, len(stored))):
        word = found.id.replace("-", "")
        lexical = recall(api, word, mode=recall_pb.RECALL_MODE_LEXICAL)
        assert ids_of(lexical) == [found.id]
        dense = recall(api, found.text, mode=recall_pb.RECALL_MODE_DENSE, limit=100)
        assert dense.searched_count == stats.memory_count
        same = {result.source_id: result.similarity for result in dense.results}
        assert same[found.id] > 0.99
    for lesson_id in sorted(ledger.lessons_acknowledged)[:20]:
        request = learn_pb.SearchLessonsRequest(query=lesson_id.replace("-", ""), limit=1)
        (result,) = api.learn.SearchLessons(request).results
        assert result.lesson.id == lesson_id


def _lessons(api: Api) -> list[learn_pb.Lesson]:
    answers = api.learn.ExportLessons(learn_pb.ExportLessonsRequest())
    return [answer.lesson for answer in answers]


def _when_all_is_embedded(api: Api) -> Any:
    for _ in range(1_200):
        stats = api.admin.GetStats(admin_pb.GetStatsRequest()).tenant
        if stats.pending_count == 0:
            return stats
        time.sleep(0.1)
    raise AssertionError(f"{stats.pending_count} texts still wait for their embedding")
