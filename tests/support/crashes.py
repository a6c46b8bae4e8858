"""Folders as a crash leaves them."""

from __future__ import annotations

import shutil
from pathlib import Path


def copy_as_of_one_moment(folder: Path, target: Path) -> None:
    """Copy a folder that is being written to, as a crash would leave it."""
    while True:
        before = contents(folder)
        shutil.rmtree(target, ignore_errors=True)
        try:
            shutil.copytree(folder, target)
        except shutil.Error:  # Something was removed meanwhile.
            continue
        if contents(folder) == before:
            return


def contents(folder: Path) -> list[tuple[Path, int, int]]:
    try:
        files = [(path, path.stat()) for path in sorted(folder.rglob("*"))]
    except FileNotFoundError:
        return contents(folder)
    return [(path, stat.st_size, stat.st_mtime_ns) for path, stat in files]
