"""Clients that keep writing and reading whatever happens to servers, and what must be true then.

Each client does one thing again and again, each time at a server chosen at random, and when that
one refuses, or is gone, at another. What was acknowledged it reads back at once under its
consistency token, mostly from a server that it did not write to. Whatever is refused must be
something that may be tried again.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from grpc import StatusCode
from mneme import MnemeClient
from mneme.errors import MnemeError
from mneme.proof.auditing import KeptHead, audit

from support.server import ServerProcess

PATIENCE_S = 240.0
"""How long a call is repeated. Nothing rests on it but that a test ends which hangs."""
_CALL_S = 8.0
_PAUSE_S = 0.2
_BATCH = 8

_numbers = itertools.count(1)

T = TypeVar("T")


class Broken(AssertionError):
    """Something is not so that must always be so."""


@dataclass
class Ledger:
    """What the clients of a tenant sent, and what was acknowledged, by kind and id."""

    tenant_id: str
    secret: str
    sent: dict[str, set[str]] = field(default_factory=lambda: {kind: set() for kind in KINDS})
    acknowledged: dict[str, set[str]] = field(
        default_factory=lambda: {kind: set() for kind in KINDS}
    )
    latest: str = ""
    """The word that the lesson which is changed again and again was last acknowledged to hold."""


class Nodes:
    """The servers that there are, as clients find them."""

    def __init__(self, started: Sequence[ServerProcess]) -> None:
        self.started = list(started)

    def address(self, which: int) -> str:
        """Return where one of them listens, or did before it died."""
        return self.started[which].address


class Client(threading.Thread):
    """Does one thing until it is told to stop.

    Attributes:
        steps: how often it was done.
        refusals: how often it was refused, by the status and the reason.
        broken: what was not as it must be; None so far.
    """

    def __init__(self, name: str, nodes: Nodes, ledger: Ledger, rng: random.Random) -> None:
        super().__init__(name=f"{name}-{ledger.tenant_id}", daemon=True)
        self.steps = 0
        self.refusals: Counter[str] = Counter()
        self.broken: BaseException | None = None
        self.over = threading.Event()
        self.ledger = ledger
        self._nodes = nodes
        self._rng = rng
        self._connected: dict[int, tuple[str, MnemeClient]] = {}

    def run(self) -> None:
        """See `threading.Thread`."""
        try:
            while not self.over.wait(self._rng.uniform(0, _PAUSE_S)):
                self.step()
                self.steps += 1
        except BaseException as error:
            self.broken = error
        finally:
            for _, client in self._connected.values():
                client.close()

    def step(self) -> None:
        """Do it once."""
        raise NotImplementedError

    def until_answered(
        self, call: Callable[[MnemeClient], T], token: str = "", besides: int | None = None
    ) -> tuple[T, int]:
        """Call, at one server or another, until the call is answered; return the answer, and who
        gave it.

        Args:
            call: makes the call.
            token: how fresh an answer must be.
            besides: whom to ask last.
        """
        until = time.monotonic() + PATIENCE_S
        which = self._rng.randrange(len(self._nodes.started))
        if which == besides:
            which = (which + 1) % len(self._nodes.started)
        while True:
            client = self._client(which)
            if token:
                client.consistency_token = token
            try:
                answer = call(client)
            except MnemeError as error:
                self.refusals[f"{error.code.name} {error.reason}".strip()] += 1
                if not may_be_repeated(error):
                    raise
                if time.monotonic() > until:
                    raise Broken(f"{self.name} gets no answer: {error}") from error
            else:
                if token and not client.consistency_token:
                    raise Broken(f"{self.name}: server {which} has not what it gave {token} for")
                return answer, which
            time.sleep(self._rng.uniform(0, _PAUSE_S))
            which = (which + 1) % len(self._nodes.started)

    def token_of(self, which: int) -> str:
        """Return the newest token that a server gave this client."""
        return self._client(which).consistency_token

    def _client(self, which: int) -> MnemeClient:
        address, known = self._nodes.address(which), self._connected.get(which)
        if known is not None and known[0] == address:
            return known[1]
        if known is not None:
            known[1].close()
        client = MnemeClient(address, api_key=self.ledger.secret, timeout=_CALL_S)
        self._connected[which] = (address, client)
        return client


def may_be_repeated(error: MnemeError) -> bool:
    """Tell whether a client may try again: it is told so, or got no answer."""
    return (
        error.code in (StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED)
        or (error.code is StatusCode.RESOURCE_EXHAUSTED and error.retry_after is not None)
        # What gRPC makes of some connections that broke.
        or (error.code in (StatusCode.INTERNAL, StatusCode.CANCELLED) and not error.reason)
    )


class Writer(Client):
    """Writes things of one kind, and reads each back."""

    def __init__(self, kind: str, nodes: Nodes, ledger: Ledger, rng: random.Random) -> None:
        super().__init__(kind, nodes, ledger, rng)
        self._kind = kind

    def step(self) -> None:
        """See `Client`."""
        count = self._rng.randint(1, _BATCH) if self._kind == "event" else 1
        ids = [f"{self._kind}-{next(_numbers)}" for _ in range(count)]
        self.ledger.sent[self._kind].update(ids)
        write = KINDS[self._kind]
        _, which = self.until_answered(lambda client: write(client, ids))
        self.ledger.acknowledged[self._kind].update(ids)
        self._read_back(self._rng.choice(ids), self.token_of(which), which)

    def _read_back(self, one: str, token: str, wrote: int) -> None:
        if not token:
            raise Broken(f"{self.name}: {one} was acknowledged without a token")
        found, asked = self.until_answered(
            lambda client: found_by_word(client, one), token, besides=wrote
        )
        if one not in found:
            raise Broken(
                f"{self.name}: {one}, which server {wrote} acknowledged with {token}, is not found"
                f" by server {asked}, which finds {found}"
            )


class Changer(Client):
    """Changes the words of one lesson, and reads each change back."""

    def step(self) -> None:
        """See `Client`."""
        word = f"changed{next(_numbers)}"
        if not self.steps:
            self.until_answered(
                lambda client: client.create_lesson("it changes", "first", lesson_id="changed")
            )
        _, which = self.until_answered(
            lambda client: client.update_lesson("changed", content=f"now it is {word}")
        )
        self.ledger.latest = word
        found, _ = self.until_answered(
            lambda client: recalled(client, word), self.token_of(which), besides=which
        )
        if "changed" not in found:
            raise Broken(f"{self.name}: {word} is not found under its token")


class Auditor(Client):
    """Demands that the log begins with all that it ever showed, and that somebody answers
    questions."""

    kept: KeptHead | None = None
    leaves = 0
    """How many leaves the log had."""

    def step(self) -> None:
        """See `Client`."""
        (head, self.kept), _ = self.until_answered(lambda client: audit(client, self.kept))
        self.until_answered(lambda client: client.recall("what was said about the heron?"))
        self.over.wait(5 * _PAUSE_S)
        self.leaves = head.size


def found_by_word(client: MnemeClient, one: str) -> list[str]:
    """Return the ids of what holds the word that a thing of this id holds alone."""
    return recalled(client, _word(one))


def recalled(client: MnemeClient, word: str) -> list[str]:
    """Return the ids of what holds a word."""
    until = time.monotonic() + PATIENCE_S
    while True:
        answer = client.recall(word, mode="lexical", limit=5)
        if not answer.partial:
            return [result.source_id for result in answer.results]
        if time.monotonic() > until:
            raise Broken("an index stays partial")
        time.sleep(_PAUSE_S)


def _word(one: str) -> str:
    return "word" + one.replace("-", "")


def _record(client: MnemeClient, ids: Sequence[str]) -> None:
    client.record_events(
        [
            {
                "id": one,
                "session_id": f"session-{one[-1]}",
                "event_type": "message",
                "text": f"{_word(one)} was said",
            }
            for one in ids
        ]
    )


def _teach(client: MnemeClient, ids: Sequence[str]) -> None:
    client.create_lesson(ids[0], f"about {_word(ids[0])}", lesson_id=ids[0])


def _remember(client: MnemeClient, ids: Sequence[str]) -> None:
    client.create_memory(f"about {_word(ids[0])}", memory_id=ids[0])


def _attempt(client: MnemeClient, ids: Sequence[str]) -> None:
    client.create_episode(task=f"try {_word(ids[0])}", success=True, episode_id=ids[0])


KINDS: dict[str, Callable[[MnemeClient, Sequence[str]], None]] = {
    "event": _record,
    "lesson": _teach,
    "memory": _remember,
    "episode": _attempt,
}


def check(client: MnemeClient, ledger: Ledger, rng: random.Random) -> None:
    """Compare everything that a server has of a tenant with what was sent and acknowledged.

    Raises:
        Broken: something was lost, is there twice, or is not as it was.
    """
    for kind, ids in _stored(client).items():
        mine = Counter(one for one in ids if one.startswith(f"{kind}-"))
        twice = [one for one, count in mine.items() if count > 1]
        _require(not twice, f"{kind}: stored twice: {twice[:5]}")
        lost = ledger.acknowledged[kind] - mine.keys()
        _require(not lost, f"{kind}: acknowledged and lost: {sorted(lost)[:5]}")
        made_up = mine.keys() - ledger.sent[kind]
        _require(not made_up, f"{kind}: never sent: {sorted(made_up)[:5]}")
        known = sorted(ledger.acknowledged[kind])
        for one in rng.sample(known, min(10, len(known))):
            _require(one in found_by_word(client, one), f"{one} is not found by its word")
    verified = client.verify_events()
    _require(verified.valid, f"the chains do not verify: {verified.raw}")
    if ledger.latest:
        _require(
            client.get_lesson("changed").lesson.content.endswith(ledger.latest),
            "a change that was acknowledged is lost",
        )


def _stored(client: MnemeClient) -> dict[str, list[str]]:
    """Return the ids of everything that is stored, by kind, as often as it is."""
    return {
        "event": [one.id for one in client.iter_events(page_size=1000)],
        "lesson": [one.id for one in client.iter_lessons(page_size=1000)],
        "memory": [one.id for one in client.iter_memories(page_size=1000)],
        "episode": [one.id for one in client.iter_episodes(page_size=1000)],
    }


def _require(holds: Any, what: str) -> None:
    if not holds:
        raise Broken(what)
