"""A bad neighbour, in a process of its own: it calls without a pause until it is killed.

    python -m benchmarks.flood ADDRESS KIND THREADS < key

Its requests are made and encoded before the first is sent, so that it costs the machine little
beside what it costs the server. It prints a line when it begins.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Sequence

import grpc
from mneme.messages import (
    GetContextRequest,
    ListEventsRequest,
    NewEvent,
    RecallRequest,
    RecordEventsRequest,
)

from benchmarks.texts import events, questions

EVENTS = 1_000
WORDS = 500
_REQUESTS = 16
_RECORD, _RECALL = "/mneme.v1.EventService/RecordEvents", "/mneme.v1.RecallService/Recall"
_LIST, _CONTEXT = "/mneme.v1.EventService/ListEvents", "/mneme.v1.ContextService/GetContext"


def records() -> tuple[str, Sequence[bytes]]:
    """Make requests that record a thousand events each; the server chooses the ids."""
    made = events(EVENTS * _REQUESTS, seed=41)
    requests = [
        RecordEventsRequest(
            events=[
                NewEvent(
                    session_id=f"s{event.session}",
                    event_type="message",
                    text=event.text,
                )
                for event, _ in zip(made, range(EVENTS), strict=False)
            ]
        ).SerializeToString()
        for _ in range(_REQUESTS)
    ]
    return _RECORD, requests


def long_questions() -> tuple[str, Sequence[bytes]]:
    """Make questions of five hundred words, no two alike."""
    words = " ".join(questions(_REQUESTS * WORDS, seed=42)).split()
    requests = [
        RecallRequest(query=" ".join(words[n : n + WORDS])).SerializeToString()
        for n in range(0, len(words) - WORDS, WORDS // 4)
    ]
    return _RECALL, requests


def lists() -> tuple[str, Sequence[bytes]]:
    """Make requests for the largest pages of events."""
    requests = [
        ListEventsRequest(page_size=1_000, descending=descending).SerializeToString()
        for descending in (False, True)
    ]
    return _LIST, requests


def contexts() -> tuple[str, Sequence[bytes]]:
    """Make requests for everything that bears on a topic."""
    topics = list(questions(200, seed=43))
    return _CONTEXT, [
        GetContextRequest(topic=topic, limit=50).SerializeToString() for topic in topics
    ]


KINDS: dict[str, Callable[[], tuple[str, Sequence[bytes]]]] = {
    "records": records,
    "questions": long_questions,
    "lists": lists,
    "contexts": contexts,
}


def main() -> None:
    """Flood until killed. Refusals and failures are what a bad neighbour deserves: it goes on."""
    address, kind, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    metadata = (("authorization", f"Bearer {sys.stdin.readline().strip()}"),)
    path, requests = KINDS[kind]()
    record, first = records()
    with grpc.insecure_channel(address) as channel:  # Something to find.
        for request in first[:4]:
            channel.unary_unary(record)(request, metadata=metadata)

    def flood(begin: int) -> None:
        with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            call = channel.unary_unary(path)
            number = begin
            while True:
                with contextlib.suppress(grpc.RpcError):
                    call(requests[number % len(requests)], metadata=metadata, timeout=60)
                number += threads

    for number in range(threads):
        threading.Thread(target=flood, args=(number,), daemon=True).start()
    print("flooding", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
