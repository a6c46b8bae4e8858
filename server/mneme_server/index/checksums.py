"""Checksums of the lexical index's files.

tantivy notices truncated files, but not a changed byte in the middle of one, and some missing files
only when a search needs them.
"""

from __future__ import annotations

import json
from pathlib import Path

from mneme_server.index.files import digest_of, write_atomically

_NAME = "mneme-checksums.json"


class Checksums:
    """What is known about the immutable files of a folder.

    Segments never change once written; a file that came after the last `write` is not covered, one
    that was merged away since is not missed. `layout` tells which code wrote the index: another
    layout counts as damage, as does an index without a record.
    """

    def __init__(self, folder: Path, layout: str) -> None:
        self._folder = folder
        self._layout = layout
        self._known: dict[str, str] = {}

    def verify(self) -> None:
        """Compare the files with the record.

        Raises:
            ValueError: they differ, or the record cannot be read; the message says which.
        """
        if not any(self._folder.glob("*")):
            self._folder.mkdir(parents=True, exist_ok=True)
            self.write()
            return
        path = self._folder / _NAME
        if not path.exists():
            raise ValueError(f"{path} is missing")
        record = json.loads(path.read_bytes())
        if not isinstance(record, dict) or record.get("layout") != self._layout:
            raise ValueError(f"{path} names another layout than {self._layout}")
        self._known = dict(record["files"])
        used = self._segments() if self._known else set()
        for name, expected in self._known.items():
            file = self._folder / name
            if not file.exists():
                # Of a segment in use only the list of deleted documents is ever replaced.
                if name.partition(".")[0] in used and file.suffix != ".del":
                    raise ValueError(f"{file} is missing")
            elif digest_of(file) != expected:
                raise ValueError(f"{file} does not have its checksum")

    def _segments(self) -> set[str]:
        """Return the segments that the index uses, as their files are named."""
        path = self._folder / "meta.json"
        try:
            segments = json.loads(path.read_bytes())["segments"]
            return {segment["segment_id"].replace("-", "") for segment in segments}
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is not what tantivy writes") from error

    def write(self) -> None:
        """Record the files as they are now."""
        files = [f for f in self._folder.iterdir() if f.is_file() and f.suffix not in _CHANGING]
        self._known = {f.name: self._known.get(f.name) or digest_of(f) for f in files}
        record = {"layout": self._layout, "files": self._known}
        write_atomically(self._folder / _NAME, json.dumps(record, indent=1).encode())


_CHANGING = {".json", ".lock", ".tmp"}
