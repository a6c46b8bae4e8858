"""The copy of the words' index in the tenant's folder.

    index/lexical/manifest.json   the layout, tantivy's own lists, and the SHA-256 of each file
    index/lexical/<segment>.*     tantivy's files; a segment never changes once it is written

It is written file by file, then the manifest is replaced, then what is not in it goes: whenever the
process dies, the manifest names files that are whole. It is read, and never mapped.
"""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any

from mneme_server.engine.corpus.feed import Position
from mneme_server.engine.index.files import (
    digest,
    keep_only,
    named_in,
    sync_folder,
    unsealed,
    write_pieces,
    write_sealed,
)

_MANIFEST = "manifest.json"
_END, _MAGIC = struct.Struct("<II"), 1337
"""What ends each of tantivy's files."""
_LISTS = ("meta.json", ".managed.json")
"""tantivy's files that name the others. They are replaced as a whole: the manifest holds them."""


class SavedWords:
    """The copy in `folder`. `layout` names its form; one of another form cannot be used.

    `position` is the row of the feed up to which it holds what there is, None without a copy.
    """

    def __init__(self, folder: Path, layout: str) -> None:
        self._folder = folder
        self._layout = layout
        self._known: dict[str, str] = {}
        self.position: Position | None = None

    @property
    def bytes(self) -> int:
        """The size of the copy; 0 when there is none."""
        if not self._folder.is_dir():
            return 0
        return sum(file.stat().st_size for file in self._folder.iterdir() if file.is_file())

    def restore(self, target: Path) -> None:
        """Copy the files into the empty folder `target`; nothing when there is no copy.

        Raises:
            ValueError: a file is missing or is not what was written, or the manifest is not; the
                message says which. What is in `target` then cannot be used.
            OSError: a file cannot be read, or `target` has no room.
        """
        if not self._folder.is_dir() or not any(self._folder.iterdir()):
            return
        manifest = self._manifest()
        for name, expected in manifest["files"].items():
            file = named_in(self._folder / _MANIFEST, name)
            data = file.read_bytes()
            if digest(data) != expected:
                raise ValueError(f"{file} does not have its checksum")
            if not _is_whole(data):  # It was copied from a file that was damaged at work.
                raise ValueError(f"{file} is not what was written at first")
            (target / name).write_bytes(data)
        for name in _LISTS:
            (target / name).write_text(manifest["lists"][name])
        self._known = dict(manifest["files"])
        self.position = Position(*map(int, manifest["position"]))

    def save(self, source: Path, position: Position) -> None:
        """Make the copy that of `source`, which nobody changes meanwhile.

        Raises:
            OSError: the disk is full or cannot be written; the copy before stays.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        lists = {name: (source / name).read_text() for name in _LISTS}
        files: dict[str, str] = {}
        for file in _segment_files(source, json.loads(lists[_LISTS[0]])):
            known = self._known.get(file.name)
            if known is None or not (self._folder / file.name).exists():
                known, _ = write_pieces(self._folder / file.name, [file.read_bytes()])
            files[file.name] = known
        sync_folder(self._folder)
        manifest = {
            "layout": self._layout, "position": position, "files": files, "lists": lists,
        }  # fmt: skip
        write_sealed(self._folder / _MANIFEST, manifest)
        self._known, self.position = files, position
        keep_only(self._folder, {_MANIFEST, *files})

    def destroy(self) -> None:
        """Delete the copy."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._known, self.position = {}, None

    def _manifest(self) -> dict[str, Any]:
        path = self._folder / _MANIFEST
        try:
            manifest: dict[str, Any] = unsealed(path, json.loads(path.read_bytes()))
            if manifest["layout"] != self._layout:
                raise ValueError(f"{path} names another layout than {self._layout}")
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} is not what was written there") from error
        return manifest


def _is_whole(data: bytes) -> bool:
    """Whether a segment's file has the checksum that tantivy wrote at its end.

    Behind the content are a line of JSON, its length, and a number that is always the same.
    """
    try:
        length, magic = _END.unpack(data[-_END.size :])
        content = len(data) - _END.size - length
        checksum = json.loads(data[content : -_END.size])["crc"]
    except (struct.error, ValueError, KeyError, TypeError):
        return False
    return bool(magic == _MAGIC and zlib.crc32(memoryview(data)[:content]) == checksum)


def _segment_files(folder: Path, meta: dict[str, Any]) -> list[Path]:
    """Return the files of the segments that `meta` names; merged ones may still lie beside them."""
    used = {segment["segment_id"].replace("-", "") for segment in meta["segments"]}
    return sorted(file for file in folder.iterdir() if file.name.partition(".")[0] in used)
