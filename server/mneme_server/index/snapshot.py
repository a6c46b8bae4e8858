"""The vectors' snapshot on disk.

    index/manifest.json      what the snapshot is and the SHA-256 of each of its files
    index/vectors-7.graph    FAISS's form of the graph, if there is one
    index/vectors-7.ids      the document of each position, int64, -1 for removed ones
    index/vectors-7.tail     the vectors behind the graph, float32

Files are written under a new number, then the manifest is replaced, then the old files go: whenever
the process dies, the manifest on disk names files that are whole.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.corpus.feed import Position
from mneme_server.corpus.ports import Matrix
from mneme_server.index.files import digest, sync_folder, write_atomically, write_durably
from mneme_server.index.graph import Graph

FORMAT = 2
_MANIFEST = "manifest.json"


class SnapshotDamaged(Exception):
    """The snapshot cannot be used; the message says which file and why."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All vectors up to the row `position` of the feed.

    `doc_ids` (n,) names the document of each position; the first ones lie in `graph`, the others
    in `tail`.
    """

    model_id: str
    dimensions: int
    position: Position
    graph: Graph | None
    doc_ids: NDArray[np.int64]
    tail: Matrix


def write(folder: Path, snapshot: Snapshot) -> int:
    """Write `snapshot`, replacing the one before. Return the bytes written.

    Raises:
        OSError: the disk is full or the folder cannot be written; the one before stays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = _number(folder) + 1
    files: dict[str, dict[str, str]] = {}
    total = 0
    for part, data in _parts(snapshot):
        name = f"vectors-{number}.{part}"
        write_durably(folder / name, data)
        files[part] = {"name": name, "sha256": digest(data)}
        total += data.nbytes
    manifest = {
        "format": FORMAT,
        "number": number,
        "model_id": snapshot.model_id,
        "dimensions": snapshot.dimensions,
        "position": snapshot.position,
        "files": files,
    }
    sync_folder(folder)
    write_atomically(folder / _MANIFEST, json.dumps(manifest, indent=1).encode())
    names = {_MANIFEST, *(entry["name"] for entry in files.values())}
    for file in folder.iterdir():
        if file.is_file() and file.name not in names:
            file.unlink()
    return total


def move(folder: Path, position: Position) -> None:
    """Say that the snapshot holds what there is up to another row; nothing when there is none.

    Raises:
        OSError: as `write`.
    """
    try:
        manifest = read_manifest(folder)
    except SnapshotDamaged:
        return
    if manifest is not None:
        moved = json.dumps({**manifest, "position": position}, indent=1)
        write_atomically(folder / _MANIFEST, moved.encode())


def exists(folder: Path) -> bool:
    """Whether there is a snapshot, intact or not."""
    return (folder / _MANIFEST).exists()


def read(folder: Path) -> Snapshot | None:
    """Read the snapshot; None when there is none.

    Raises:
        SnapshotDamaged: it is of another format or does not have its checksums.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return None
    try:
        return _read_parts(folder, manifest)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SnapshotDamaged(f"{folder / _MANIFEST}: {error!r}") from error


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Read the manifest alone; None when there is no snapshot.

    Raises:
        SnapshotDamaged: it cannot be read or is of another format.
    """
    path = folder / _MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SnapshotDamaged(f"{path}: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise SnapshotDamaged(f"{path} is not of format {FORMAT}")
    return manifest


def _parts(snapshot: Snapshot) -> list[tuple[str, NDArray[Any]]]:
    parts: list[tuple[str, NDArray[Any]]] = [
        ("ids", np.ascontiguousarray(snapshot.doc_ids, np.int64)),
        ("tail", np.ascontiguousarray(snapshot.tail, np.float32)),
    ]
    if snapshot.graph is not None:
        parts.append(("graph", snapshot.graph.to_bytes()))
    return parts


def _read_parts(folder: Path, manifest: dict[str, Any]) -> Snapshot:
    dimensions, files = int(manifest["dimensions"]), manifest["files"]
    doc_ids = np.frombuffer(_checked(folder, files["ids"]), np.int64)
    tail = np.frombuffer(_checked(folder, files["tail"]), np.float32).reshape(-1, dimensions)
    graph = None
    if "graph" in files:
        graph = Graph.from_bytes(np.frombuffer(_checked(folder, files["graph"]), np.uint8))
    graphed = graph.size if graph else 0
    if doc_ids.size != graphed + len(tail) or (graph and graph.dimensions != dimensions):
        raise SnapshotDamaged(f"the files in {folder} do not belong together")
    return Snapshot(
        model_id=str(manifest["model_id"]),
        dimensions=dimensions,
        position=Position(*map(int, manifest["position"])),
        graph=graph,
        doc_ids=doc_ids,
        tail=tail,
    )


def _checked(folder: Path, entry: dict[str, str]) -> bytes:
    path = folder / entry["name"]
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SnapshotDamaged(f"{path}: {error}") from error
    if digest(data) != entry["sha256"]:
        raise SnapshotDamaged(f"{path} does not have its checksum")
    return data


def _number(folder: Path) -> int:
    try:
        manifest = read_manifest(folder)
        return int(manifest["number"]) if manifest else 0
    except (SnapshotDamaged, KeyError, ValueError):
        return 0
