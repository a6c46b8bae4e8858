"""Recalls at an even pace, in a process of its own, until it is killed.

    python -m benchmarks.steady EDGE ADDRESS A_SECOND IDLE SEED < key

EDGE is `grpc` or `rest`, whose ADDRESS is host:port. IDLE connections over HTTP are kept open
beside. It prints a line when it begins, and ends when an answer is not what it should be.
"""

from __future__ import annotations

import http.client
import json
import resource
import socket
import sys
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlencode

import grpc
from mneme.messages import RecallRequest, RecallResponse

from benchmarks.texts import questions

_QUESTIONS = 20_000
_LIMIT = 10
_PATIENCE_S = 60.0


def over_grpc(address: str, secret: str) -> Callable[[str], int]:
    """Return what asks a question over gRPC and tells how many results there are."""
    channel = grpc.insecure_channel(address)
    recall = channel.unary_unary(
        "/mneme.v1.RecallService/Recall",
        request_serializer=RecallRequest.SerializeToString,
        response_deserializer=RecallResponse.FromString,
    )
    metadata = [("authorization", f"Bearer {secret}")]

    def ask(question: str) -> int:
        request = RecallRequest(query=question, limit=_LIMIT)
        return len(recall(request, metadata=metadata, timeout=_PATIENCE_S).results)

    return ask


def over_rest(address: str, secret: str) -> Callable[[str], int]:
    """Return what asks a question over REST and tells how many results there are."""
    connection = http.client.HTTPConnection(address, timeout=_PATIENCE_S)
    headers = {"authorization": f"Bearer {secret}"}

    def ask(question: str) -> int:
        path = "/api/recall?" + urlencode({"query": question, "limit": _LIMIT})
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        told = json.loads(answer.read())
        if answer.status != 200:
            raise AssertionError(f"{answer.status}: {told}")
        return len(told["results"])

    return ask


def main(arguments: Sequence[str]) -> None:
    """Ask until killed."""
    edge, address, a_second, idle, seed = arguments
    host, _, port = address.rpartition(":")
    secret = sys.stdin.readline().strip()
    ask = (over_grpc if edge == "grpc" else over_rest)(address, secret)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    held = [_idle(host, int(port)) for _ in range(int(idle))]
    asked = questions(_QUESTIONS, int(seed))
    ask(asked[-1])
    print(f"{len(held)} connections are idle", flush=True)
    next_s = time.perf_counter()
    for question in asked:
        time.sleep(max(0.0, next_s - time.perf_counter()))
        next_s = max(next_s, time.perf_counter()) + 1 / float(a_second)
        if not ask(question):
            raise AssertionError(f"nothing was recalled for {question!r}")


def _idle(host: str, port: int) -> socket.socket:
    """Return a connection that has had an answer, and is kept for more."""
    held = socket.create_connection((host, port))
    held.sendall(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n")
    if not held.recv(65_536).startswith(b"HTTP/1.1 200"):
        raise AssertionError("the server does not answer")
    return held


if __name__ == "__main__":
    main(sys.argv[1:])
