"""Heavy work on files of databases, for processes of its own; it imports what it needs, no more."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from mneme_server.common.progress import Step

_CHUNK_BYTES = 4 * 1024 * 1024


def digest(step: Step, *, path: str) -> str:
    """Return the SHA-256 of a file, in hex."""
    total = Path(path).stat().st_size
    sha256, done = hashlib.sha256(), 0
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            sha256.update(chunk)
            done += len(chunk)
            step.report("checking", done, total)
    return sha256.hexdigest()


def duplicate(step: Step, *, source: str, target: str) -> None:
    """Copy a file."""
    total, done = Path(source).stat().st_size, 0
    with Path(source).open("rb") as file, Path(target).open("wb") as copy:
        while chunk := file.read(_CHUNK_BYTES):
            copy.write(chunk)
            done += len(chunk)
            step.report("copying", done, total)


def damage(step: Step, *, path: str, modules: Sequence[str]) -> str:
    """Return the first damage found in a tenant's database; empty when there seems to be none.

    Args:
        step: see `Step`.
        path: the file; nobody else has it open.
        modules: those that say which tables it has.
    """
    from mneme_server.engine.store.examination import first_damage

    for module in modules:
        import_module(module)
    step.report("examining")
    found = first_damage(Path(path))
    return "" if found is None else found.message
