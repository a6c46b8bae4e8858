"""The index on disk, but for the words.

    index/manifest.json     what the copy is and the SHA-256 of each of its files
    index/graph-7           a graph: its ranges, levels, links and codes
    index/ids-7             the document of each position, int64, -1 for removed ones
    index/tail-7            the vectors behind the graphs, float32
    index/rows-7.0          the documents' attributes, a column behind the other, a chunk of rows
    index/names-7           the names that numbers in them stand for

Files are written under a new number, then the manifest is replaced, then the old files go: whenever
the process dies, the manifest on disk names files that are whole. What did not change keeps its
file. All are read, and none is ever mapped: whoever truncates a mapped file ends the process.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.feed import Position
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.index.columns import CHUNK, CopiedColumns, DocumentTable
from mneme_server.engine.index.dense import DenseIndex
from mneme_server.engine.index.files import (
    PieceReader,
    keep_only,
    named_in,
    sync_folder,
    unsealed,
    write_pieces,
    write_sealed,
)
from mneme_server.engine.index.graph import Graph
from mneme_server.engine.index.rows import NO_ROW

Entry = Mapping[str, Any]

FORMAT = 3
_MANIFEST = "manifest.json"
_GRAPH = ("size", "neighbours", "entry", "breadth")
"""What the manifest says of a graph."""


class SavedIndex:
    """The copy of attributes and vectors in the tenant's folder, and what it lacks.

    Args:
        folder: where it lies.
        lock: held by whoever changes the index, and to call `changed`.
        loaded: what was found there.
    """

    def __init__(self, folder: SnapshotFolder, lock: threading.Lock, loaded: LoadedIndex) -> None:
        self._folder = folder
        self._lock = lock
        self._writing = threading.Lock()  # Two at once would sweep each other's files away.
        self._documents, self._vectors = loaded.documents, loaded.vectors
        self._position = loaded.position

    def lacks(self, position: Position) -> int:
        """Return how much of what there is at `position` it does not hold, in documents, vectors or
        rows of the feed."""
        rows = position.number - self._position.number
        return max(self._documents, self._vectors, rows)

    def changed(self, *, documents: int = 0, vectors: int = 0) -> None:
        """Note that so many documents or vectors came, changed or went."""
        self._documents += documents
        self._vectors += vectors

    def save(self, table: DocumentTable, dense: DenseIndex, position: Position) -> None:
        """Write what changed since the last time: everything that was applied up to `position`.

        Raises:
            OSError: the disk is full or cannot be written; the copy before stays.
        """
        with self._writing:
            self._save(table, dense, position)

    def _save(self, table: DocumentTable, dense: DenseIndex, position: Position) -> None:
        gone = not self._folder.exists()
        with self._lock:
            same = not self._documents and not self._vectors
            if not gone and same and self._folder.holds(dense.graphs):
                copied = None
            else:
                if gone:
                    self._folder.forget()
                    table.touch()
                documents, vectors = self._documents, self._vectors
                copied = table.export()
                graphs, rows, tail = dense.export()
                doc_ids = np.full(rows.size, NO_ROW, np.int64)
                doc_ids[rows != NO_ROW] = table.doc_id[rows[rows != NO_ROW]]
        if copied is None:
            if position != self._position:
                self._folder.move(position)
                self._position = position
            return
        try:
            self._folder.write(position, graphs, doc_ids, tail, copied)
        except BaseException:
            with self._lock:
                table.touch(copied.chunks)
            raise
        with self._lock:
            self._documents -= documents
            self._vectors -= vectors
            self._position = position


@dataclass(frozen=True, slots=True)
class LoadedIndex:
    """What an index begins with. The snapshot holds what there is up to `position`, but for so many
    `documents` and `vectors`; `new` without a snapshot."""

    table: DocumentTable
    position: Position
    documents: int
    vectors: int
    new: bool


class SnapshotFolder:
    """The copy in `folder`.

    Args:
        folder: where it lies.
        model_id: what made the vectors.
        dimensions: their length.
        layout: names what the columns are made of; those of another one cannot be used.
    """

    def __init__(self, folder: Path, model_id: str, dimensions: int, layout: str) -> None:
        self._folder = folder
        self._model_id = model_id
        self._dimensions = dimensions
        self._layout = layout
        self._manifest: Mapping[str, Any] | None = None
        self._graphs: weakref.WeakKeyDictionary[Graph, Entry] = weakref.WeakKeyDictionary()
        self._chunks: dict[int, Entry] = {}

    def exists(self) -> bool:
        """Whether there is a snapshot, intact or not."""
        return (self._folder / _MANIFEST).exists()

    def holds(self, graphs: Sequence[Graph]) -> bool:
        """Whether the copy has all of these."""
        return all(graph in self._graphs for graph in graphs)

    def forget(self) -> None:
        """Keep nothing of what was written before: it is not there any more."""
        self._graphs.clear()
        self._chunks = {}

    def read(self) -> Snapshot | None:
        """Read the vectors; None when there is no snapshot.

        Raises:
            SnapshotDamaged: it is of another format or does not have its checksums.
        """
        manifest = read_manifest(self._folder)
        if manifest is None:
            return None
        try:
            snapshot = self._read(manifest)
        except (KeyError, TypeError, ValueError, AttributeError, OSError, MemoryError) as error:
            raise SnapshotDamaged(f"{self._folder / _MANIFEST}: {error!r}") from error
        self._manifest = manifest
        return snapshot

    def restore_columns(self) -> DocumentTable:
        """Return the columns of the snapshot that was read last.

        Raises:
            SnapshotDamaged: they cannot be read.
        """
        table = DocumentTable()
        try:
            assert self._manifest is not None
            columns = self._manifest["columns"]
            names = json.loads(self._bytes(columns["names"]).tobytes())
            names["tags"] = [tuple(tags) for tags in names["tags"]]
            table.restore(
                int(columns["rows"]),
                names,
                lambda chunk, arrays: self._read_into(columns["chunks"][chunk], arrays),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OSError, MemoryError) as error:
            raise SnapshotDamaged(f"{self._folder / _MANIFEST}: {error!r}") from error
        self._chunks = dict(enumerate(columns["chunks"]))
        return table

    def write(
        self,
        position: Position,
        graphs: Sequence[Graph],
        doc_ids: NDArray[np.int64],
        tail: Matrix,
        columns: CopiedColumns,
    ) -> None:
        """Replace the snapshot by one of what is given. Of the columns what is not given stays.

        Raises:
            OSError: the disk is full or the folder cannot be written; the one before stays.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        number = self._number() + 1
        entries = [self._graphs.get(graph) or self._write_graph(graph, number) for graph in graphs]
        chunks = {**self._chunks} | {
            chunk: self._write(f"rows-{number}.{chunk}", arrays)
            for chunk, arrays in columns.chunks.items()
        }
        chunks = {chunk: chunks[chunk] for chunk in range(-(-columns.rows // CHUNK))}
        names = np.frombuffer(json.dumps(columns.names).encode(), np.uint8)
        manifest = {
            "format": FORMAT,
            "number": number,
            "model_id": self._model_id,
            "dimensions": self._dimensions,
            "position": position,
            "graphs": entries,
            "ids": self._write(f"ids-{number}", [doc_ids]),
            "tail": self._write(f"tail-{number}", [tail]),
            "columns": {
                "layout": self._layout,
                "rows": columns.rows,
                "chunks": list(chunks.values()),
                "names": self._write(f"names-{number}", [names]),
            },
        }
        sync_folder(self._folder)
        write_sealed(self._folder / _MANIFEST, manifest)
        self._manifest, self._chunks = manifest, chunks
        self._graphs.update(zip(graphs, entries, strict=True))
        self._sweep(manifest)

    def move(self, position: Position) -> None:
        """Say that the snapshot holds what there is up to another row.

        Raises:
            OSError: as `write`.
        """
        if self._manifest is not None:
            self._manifest = {**self._manifest, "position": position}
            write_sealed(self._folder / _MANIFEST, self._manifest)

    def _read(self, manifest: Mapping[str, Any]) -> Snapshot:
        graphs = [self._read_graph(entry) for entry in manifest["graphs"]]
        self._graphs.update(zip(graphs, manifest["graphs"], strict=True))
        doc_ids = self._bytes(manifest["ids"]).view(np.int64)
        tail = self._bytes(manifest["tail"]).view(np.float32)
        vectors = tail.reshape(-1, self._dimensions)
        if doc_ids.size != sum(graph.size for graph in graphs) + len(vectors) or any(
            graph.dimensions != self._dimensions for graph in graphs
        ):
            raise ValueError("the files do not belong together")
        return Snapshot(
            position=Position(*map(int, manifest["position"])),
            graphs=graphs,
            doc_ids=doc_ids,
            tail=vectors,
            columns=manifest["columns"]["layout"] == self._layout,
        )

    def _read_graph(self, entry: Entry) -> Graph:
        with closing(PieceReader(self._path(entry))) as file:
            graph = Graph.from_arrays(
                file.into,
                dimensions=self._dimensions,
                **{name: int(entry[name]) for name in _GRAPH},
            )
            file.finish(entry["sha256"])
        return graph

    def _write_graph(self, graph: Graph, number: int) -> Entry:
        place = len(list(self._folder.glob(f"graph-{number}.*")))
        written = self._write(f"graph-{number}.{place}", graph.arrays())
        return {**written, **{name: getattr(graph, name) for name in _GRAPH}}

    def _write(self, name: str, pieces: Iterable[NDArray[Any]]) -> Entry:
        sha256, size = write_pieces(self._folder / name, pieces)
        return {"name": name, "sha256": sha256, "bytes": size}

    def _bytes(self, entry: Entry) -> NDArray[np.uint8]:
        data = np.empty(int(entry["bytes"]), np.uint8)
        self._read_into(entry, [data])
        return data

    def _read_into(self, entry: Entry, arrays: Sequence[NDArray[Any]]) -> None:
        with closing(PieceReader(self._path(entry))) as file:
            for array in arrays:
                file.into(array)
            file.finish(entry["sha256"])

    def _path(self, entry: Entry) -> Path:
        return named_in(self._folder / _MANIFEST, str(entry["name"]))

    def _number(self) -> int:
        try:
            manifest = read_manifest(self._folder)
            return int(manifest["number"]) if manifest else 0
        except (SnapshotDamaged, KeyError, ValueError):
            return 0

    def _sweep(self, manifest: Mapping[str, Any]) -> None:
        """Delete the files of snapshots before."""
        columns = manifest["columns"]
        entries = [
            manifest["ids"], manifest["tail"], columns["names"], *manifest["graphs"],
            *columns["chunks"],
        ]  # fmt: skip
        keep_only(self._folder, {_MANIFEST, *(entry["name"] for entry in entries)})


def read_manifest(folder: Path) -> Mapping[str, Any] | None:
    """Read the manifest alone; None when there is no snapshot.

    Raises:
        SnapshotDamaged: it cannot be read or is of another format.
    """
    path = folder / _MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        if isinstance(manifest, dict) and "sha256" in manifest:
            manifest = unsealed(path, manifest)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SnapshotDamaged(f"{path}: {error!r}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise SnapshotDamaged(f"{path} is not of format {FORMAT}")
    return manifest


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All vectors up to the row `position` of the feed.

    `doc_ids` (n,) names the document of each position; the first ones lie in `graphs`, the others
    in `tail`. `columns` tells whether `restore_columns` has something to read.
    """

    position: Position
    graphs: Sequence[Graph]
    doc_ids: NDArray[np.int64]
    tail: Matrix
    columns: bool


class SnapshotDamaged(Exception):
    """The snapshot cannot be used; the message says which file and why."""
