"""The record of a folder's server, which participants read: the file `local.json` in the folder.

It holds a key, so that only its owner may read it. It is replaced as a whole, never changed in
place: whoever reads it sees one server's. It says nothing about whether that server still runs;
the lock does, and the server itself, by showing that it holds the certificate's private key.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

NAME = "local.json"
FORMAT = 1
"""How participants and servers find each other. Another number: they do not understand it."""

API = "mneme.v1"


class State(StrEnum):
    """What the process that wrote the record was doing. ELSEWHERE: serving, but not locally."""

    STARTING = "starting"
    SERVING = "serving"
    ENDING = "ending"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Record:
    """One server of the folder.

    Args:
        state: what it was doing last.
        version: the version of Mneme.
        key: the API key of all participants; it stays the same from server to server.
        address: host:port; empty while it does not serve.
        certificate: PEM; the server alone has its private key, in memory.
        instance: tells this run of the server from others.
        pid: for people and messages; nothing is decided by it.
        format: `FORMAT` of the server.
        api: the API packages that it serves.
    """

    state: State
    version: str
    key: str = field(repr=False)
    address: str = ""
    certificate: str = ""
    instance: str = ""
    pid: int = 0
    format: int = FORMAT
    api: tuple[str, ...] = (API,)


def read(folder: Path) -> Record | None:
    """Return the folder's record; None when there is none that can be read."""
    try:
        values: Any = json.loads((folder / NAME).read_text())
        known = {f.name: values[f.name] for f in fields(Record) if f.name in values}
        return Record(**(known | {"state": State(values["state"])}))
    except (OSError, ValueError, TypeError, KeyError):
        # It was never written, or not by Mneme; nothing is lost by writing it anew.
        return None


def write(folder: Path, record: Record) -> None:
    """Put the record in the place of the former one.

    Raises:
        OSError: the folder cannot be written to.
    """
    part = folder / f".{NAME}.{os.getpid()}"
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(record), file, indent=1)
    part.replace(folder / NAME)
