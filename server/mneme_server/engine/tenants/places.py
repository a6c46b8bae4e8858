"""This server's data folder, where others have theirs and share the tenants with it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.erasures import Erasures
from mneme_server.engine.tenants.opening import COPIES

_FILE = "node.json"
_MARK_BYTES = 16
_OF_SQLITE = "*.db*"
"""The databases of tenants that were kept on SQLite, and moved from there."""


def enter(erasures: Erasures, data_dir: Path) -> None:
    """Make the folder known, or take the place that it has.

    Each start marks the place and the folder anew. So a folder that was put back from a copy is
    known for what it is: what was erased since may be in it, and nothing of tenants stays there.

    Raises:
        Unavailable: the store cannot be reached now.
        OSError: what lies in the folder of before that cannot be removed.
    """
    place, marks = _read(data_dir / _FILE)
    known = erasures.mark_of(place) if place else None
    mark, is_had = known or ("", False)
    if mark not in marks:
        if known is not None or not erasures.is_first():
            for folder in _folders(data_dir / "tenants"):
                remove_copies(folder)
        if known is None or is_had:
            place = new_id()
    made = secrets.token_hex(_MARK_BYTES)
    # Whichever of the two the store has when this is cut short, the folder knows it.
    _write(data_dir / _FILE, {"place": place, "marks": [made, mark]})
    erasures.enter(place, f"{socket.gethostname()}/{place[-8:]}", made)


def remove_copies(folder: Path) -> None:
    """Remove what is made of a tenant's rows from its folder, so that it is made again.

    Raises:
        OSError: some of it cannot be removed.
    """
    for name in COPIES:
        _remove(folder / name)


def remove_folder(folder: Path) -> None:
    """Remove the folder of a tenant that is gone. What lies there of one that was kept on SQLite,
    and moved, stays.

    Raises:
        OSError: some of it cannot be removed.
    """
    kept = set(folder.glob(_OF_SQLITE))
    if not kept:
        _remove(folder)
        return
    for path in set(folder.iterdir()) - kept:
        if path.is_dir():
            _remove(path)
        else:
            path.unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    while folder.exists():
        with suppress(FileNotFoundError):  # Somebody else removed a file of it meanwhile.
            shutil.rmtree(folder)


def _folders(root: Path) -> Sequence[Path]:
    return [path for path in root.iterdir() if path.is_dir()] if root.exists() else []


def _read(file: Path) -> tuple[str, Sequence[str]]:
    try:
        kept = json.loads(file.read_text())
        return str(kept["place"]), [str(mark) for mark in kept["marks"] if mark]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return "", ()


def _write(file: Path, kept: dict[str, object]) -> None:
    beside = file.with_suffix(".part")
    with beside.open("w") as writing:
        json.dump(kept, writing)
        writing.flush()
        os.fsync(writing.fileno())
    beside.replace(file)
