"""What tests of several servers on one PostgreSQL do: call as clients do, and wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import grpc
from mneme.v1 import recall_service_pb2 as recall_pb

from support.api import Api

PATIENCE_S = 60.0
_FRESH = "mneme-at-least-as-fresh"


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Wait until it is so; `what` says what is wrong where it never is."""
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.05)


def patiently(call: Callable[[], Any]) -> Any:
    """Call as a client does: again while the server says that it may be tried again."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > until:
                raise
            time.sleep(0.05)


def texts(api: Api, query: str, fresh: str = "") -> list[str]:
    """Recall by words alone, which are found as soon as they are recorded."""
    request = recall_pb.RecallRequest(query=query, mode=recall_pb.RECALL_MODE_LEXICAL)
    metadata = ((_FRESH, fresh),) if fresh else ()
    answer, call = api.recall.Recall.with_call(request, metadata=metadata)
    assert not dict(call.trailing_metadata())
    return [found.text for found in answer.results]
