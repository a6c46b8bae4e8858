"""Agents with nothing but an instrumentation package and environment variables are remembered.

Each runs in a process of its own, under `opentelemetry-instrument`; not one line in it is of Mneme.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from integration.test_telemetry import until
from mneme.v1 import event_service_pb2 as events_pb
from support import agents
from support.api import Api
from support.contexts import get_context, sessions_found, wake_up
from support.making import ids_of, list_events, recall, session_of, verify
from support.model import ANSWER, QUESTION, serving, serving_model
from support.reflecting import SEQUENCES, reflect
from support.server import LocalServer, ServerProcess, server_process

SCRIPTS = Path(agents.__file__).parent
DID = [
    ("message", "You help customers."),
    ("message", QUESTION),
    ("llm_call", ""),
    ("tool_call", "find_order"),
    ("tool_response", "find_order"),
    ("llm_call", ""),
    ("message", ANSWER),
]


def run(script: str, model: str, endpoint: str, secret: str, **more: str) -> None:
    """Run an agent as its users do."""
    instrument = Path(sys.executable).parent / "opentelemetry-instrument"
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={quote(f'Bearer {secret}')}",
        "OTEL_SERVICE_NAME": "order-desk",
        # What else happens to be installed here would tell of the same calls.
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "openai",
    }
    done = subprocess.run(
        [str(instrument), sys.executable, str(SCRIPTS / f"{script}.py")],
        env=os.environ | variables | {"MODEL": model} | more,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ANSWER in done.stdout, done.stderr


def did(api: Api) -> list[tuple[str, str]]:
    return [
        (e.event_type, e.text if e.event_type == "message" else e.name) for e in list_events(api)
    ]


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with serving_model() as address:
        yield address


@pytest.mark.parametrize("script", ["openai_agent", "pydantic_agent"])
def test_what_an_agent_did_is_remembered(
    script: str, server: LocalServer, api: Api, model: str
) -> None:
    run(script, model, server.http_address, str(api.secret))
    until(lambda: len(list_events(api)) >= len(DID))
    assert did(api) == DID
    events = list_events(api)
    (session_id,) = {e.session_id for e in events}
    session = session_of(api, session_id)
    assert (session.agent_id, session.llm_call_count, session.tool_call_count) == (
        "order-desk",
        2,
        1,
    )
    assert (events[3].call_id, events[3].payload["arguments"]["order"]) == ("call_9f3b", 4711)
    assert events[4].payload["result"]["state"] == "sent"


@dataclass
class Relay:
    """Hands what is exported on to a server, and remembers it.

    Args:
        to: the server's address.
    """

    to: str
    seen: list[tuple[str, Mapping[str, str], bytes]] = field(default_factory=list)

    def handler(self) -> type[BaseHTTPRequestHandler]:
        relay = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {
                    name.lower(): self.headers[name]
                    for name in ("Authorization", "Content-Type", "Content-Encoding")
                    if name in self.headers
                }
                relay.seen.append((self.path, headers, body))
                answer = httpx2.post(f"{relay.to}{self.path}", content=body, headers=headers)
                self.send_response(answer.status_code)
                self.send_header("Content-Type", answer.headers["content-type"])
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, *_args: Any) -> None:
                """Say nothing."""

        return Handler


@dataclass(frozen=True)
class Exported:
    """What a LangChain agent exported to a tenant."""

    api: Api
    requests: list[tuple[str, Mapping[str, str], bytes]]


@pytest.fixture(scope="module")
def exported(server: LocalServer, model: str) -> Exported:
    api = server.keys.tenant()
    relay = Relay(server.http_address)
    with serving(relay.handler()) as endpoint:
        run(
            "langchain_agent", model, endpoint, str(api.secret),
            OTEL_BSP_MAX_EXPORT_BATCH_SIZE="1", OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
        )  # fmt: skip
    until(lambda: len(list_events(api)) >= len(DID))
    return Exported(api, relay.seen)


def send(address: str, secret: str | None, exported: Exported) -> Iterator[None]:
    """Export once more what was exported, with another key: a step for each request."""
    for path, headers, body in exported.requests:
        own = {**headers, "authorization": f"Bearer {secret}"}
        assert httpx2.post(f"{address}{path}", content=body, headers=own).status_code == 200
        yield


def test_a_langchain_agent_can_be_recalled_reflected_on_and_woken_up(exported: Exported) -> None:
    api = exported.api
    assert did(api) == DID
    events = list_events(api)
    (session_id,) = {e.session_id for e in events}
    assert events[4].payload["result"]["state"] == "sent"
    until(lambda: events[-1].id in ids_of(recall(api, "when did the order leave the warehouse")))
    sequences = reflect(api, SEQUENCES, {"min_length": 1})
    assert "find_order" in str(sequences)
    assert sequences.metadata.sessions_analyzed == 1
    api.events.EndSession(events_pb.EndSessionRequest(session_id=session_id))
    until(lambda: session_id in sessions_found(get_context(api, "the order 4711")))
    until(lambda: wake_up(api).sessions_considered == 1)  # Once it is summarised.


def test_exporting_twice_changes_nothing(server: LocalServer, exported: Exported) -> None:
    before = list_events(exported.api)
    assert len(exported.requests) > 3
    for _ in range(2):
        for _step in send(server.http_address, exported.api.secret, exported):
            pass
    once = server.keys.tenant()
    for _ in range(2):
        for _step in send(server.http_address, once.secret, exported):
            pass
    until(lambda: len(list_events(once)) >= len(DID))
    assert did(once) == DID
    assert list_events(exported.api) == before


def test_a_kill_in_between_loses_no_acknowledged_span(tmp_path: Path, exported: Exported) -> None:
    """Half of it is acknowledged when the server dies; then the other half alone is sent."""
    data = tmp_path / "data"
    changed = {"http_listen": "127.0.0.1:0", "otlp_wait_seconds": 3600}
    first = ServerProcess(data, **changed)
    secret = first.keys.tenant().secret
    sending = send(first.http_address, secret, exported)
    for _ in range(len(exported.requests) // 2):
        next(sending)
    first.kill()
    with server_process(data, **changed) as again:
        api = again.keys.api(secret)
        half = Exported(api, exported.requests[len(exported.requests) // 2 :])
        for _step in send(again.http_address, secret, half):
            pass
        until(lambda: len(list_events(api)) >= len(DID))
        assert did(api) == DID
        assert verify(api).valid
