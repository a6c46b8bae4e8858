"""Files that are for the server's user alone: nobody else on the machine may read memories."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

FOLDER, FILE = 0o700, 0o600
_OTHERS = 0o077
_WRITABLE_BY_OTHERS = 0o022


def make_new_ones_private() -> None:
    """Have this process, and those that it starts, make files and folders for their owner only."""
    os.umask(_OTHERS)


def strangers(folder: Path, names: Collection[str] = ()) -> list[tuple[Path, str]]:
    """Return the folder, and those of the files in it, that somebody else has a hand in, each with
    how: it belongs to another user (not to root, who has a hand in everything), is a link, or
    others than its owner may write to it. Where the system has no users, there are none.
    """
    if not hasattr(os, "getuid"):
        return []
    trusted = {os.getuid(), 0}
    found = []
    for path in (folder, *(folder / name for name in names)):
        try:
            status = path.lstat() if path is not folder else path.stat()
        except FileNotFoundError:
            continue
        if status.st_uid not in trusted:
            found.append((path, f"belongs to another user ({status.st_uid})"))
        elif stat.S_ISLNK(status.st_mode):
            found.append((path, "is a link"))
        elif status.st_mode & _WRITABLE_BY_OTHERS:
            found.append((path, "can be written to by other users"))
    return found


def make_private(folder: Path) -> list[Path]:
    """Have a folder that exists be for its owner only, and where it was not, all that lies in it,
    too: another program or a copy made it. A folder that is private already
    need not be gone through, since nobody else gets at what lies in it.

    Returns:
        What others may still read since it belongs to somebody else, as a volume that is mounted
        may. Links are left alone.
    """
    if not folder.stat().st_mode & _OTHERS:
        return []
    found = [folder, *(path for path in folder.rglob("*") if not path.is_symlink())]
    return [path for path in found if not _tightened(path)]


def _tightened(path: Path) -> bool:
    """Return whether it is its owner's now. What is neither a file nor a folder is: a socket."""
    try:
        mode = path.stat().st_mode
        is_folder = stat.S_ISDIR(mode)
        if mode & _OTHERS and (is_folder or stat.S_ISREG(mode)):
            path.chmod(FOLDER if is_folder else FILE)
    except FileNotFoundError:
        return True  # It is gone meanwhile.
    except OSError:
        return False
    return True
