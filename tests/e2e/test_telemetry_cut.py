"""The server is killed while it takes spans and makes events of them: none is lost or doubled."""

from __future__ import annotations

import threading
from pathlib import Path

import grpc
from integration.test_telemetry import AGENT, chat, until
from support.api import Api
from support.making import list_events, verify
from support.server import ServerProcess, server_process
from support.telemetry import Exporter, span

CHILDREN = 4


def send(exporter: Exporter, trace: int) -> None:
    """Send a trace as agents do: what is below first, and its root alone, at last."""
    children = [
        span(number, chat(f"Question {trace}.{number}", f"Answer {trace}.{number}"),
             trace=trace, parent=1)
        for number in range(2, 2 + CHILDREN)
    ]  # fmt: skip
    exporter.spans(*children)
    exporter.spans(span(1, AGENT | {"gen_ai.conversation.id": f"c-{trace}"}, trace=trace))


def expected(trace: int) -> set[str]:
    return {
        f"{what} {trace}.{number}"
        for number in range(2, 2 + CHILDREN)
        for what in ("Question", "Answer")
    }


def texts(api: Api) -> list[str]:
    return [e.text for e in list_events(api) if e.event_type == "message"]


def test_no_acknowledged_span_is_lost_and_none_is_told_twice(tmp_path: Path) -> None:
    data = tmp_path / "data"
    server = ServerProcess(data, otlp_wait_seconds=3600)
    secret = server.keys.tenant().secret
    acknowledged: list[int] = []
    enough = threading.Event()

    def export() -> None:
        exporter = Exporter(server.address, secret)
        try:
            for trace in range(1, 1_000_000):
                send(exporter, trace)
                acknowledged.append(trace)
                if trace == 30:
                    enough.set()
        except grpc.RpcError:
            exporter.close()

    thread = threading.Thread(target=export)
    thread.start()
    assert enough.wait(60)
    server.kill()
    thread.join()
    last = acknowledged[-1]
    with server_process(data, otlp_wait_seconds=3600) as again:
        api = again.keys.api(secret)
        exporter = Exporter(again.address, secret)
        for trace in (1, last, last + 1):  # What was not answered, and what was, is sent again.
            send(exporter, trace)
        exporter.close()
        wanted = set[str]().union(*(expected(trace) for trace in range(1, last + 2)))
        until(lambda: wanted <= set(texts(api)))
        assert sorted(texts(api)) == sorted(wanted)
        assert verify(api).valid
        calls = [e for e in list_events(api) if e.event_type == "llm_call"]
        assert len(calls) == CHILDREN * (last + 1)
