"""tantivy's files: what they hold, those at work, and their copy in the tenant's folder."""

from __future__ import annotations

import json
import os
import shutil
import struct
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import tantivy
from tantivy import FieldType, PreTokenizedString, Query, Schema, Searcher, TextAnalyzer, Token

from mneme_server.common.errors import is_failure
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
from mneme_server.engine.index.words.analysis import TEXTS_OF, WordField, Words
from mneme_server.engine.index.words.counted import WaitingDocument

ID = "doc_id"
LANGUAGE = "language"
_COUNTS = "counts"
ANALYZER = "mneme_en"
_SESSION = "session"
_KIND = "kind"
_FIELDS = ",".join([*(field.value for field in WordField), _SESSION, _KIND, LANGUAGE, _COUNTS])
LAYOUT = f"9:{ANALYZER}:{_FIELDS}"
"""Names the form of the files; what has another one is built again when it is opened. Its number
grows when words are made otherwise."""
_HEAP_BYTES = 15_000_000  # The least that tantivy accepts for a thread.
_WRITER_BYTES = 3_000_000
"""Of a writer that is held, in fact; measured over a hundred of them. It takes more only while it
commits much."""
_MANIFEST = "manifest.json"
_END, _MAGIC = struct.Struct("<II"), 1337
"""What ends each of tantivy's files."""
_LISTS = ("meta.json", ".managed.json")
"""tantivy's files that name the others. They are replaced as a whole: the manifest holds them."""


def tantivy_schema() -> tantivy.Schema:
    """Return tantivy's schema."""
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field(ID, indexed=True, fast=True)
    builder.add_text_field(_SESSION, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(_KIND, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(LANGUAGE, tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field(_COUNTS, stored=True)
    for field in WordField:
        builder.add_text_field(field.value, tokenizer_name=ANALYZER, index_option="freq")
    return builder.build()


def tantivy_document(waiting: WaitingDocument, words: Words, *, counted: bool) -> tantivy.Document:
    """Return what is written of a document; `counted`, how often it has its words, too."""
    document, language = waiting.document, waiting.language
    # A number of another type than the schema's would kill the writer's thread at the next flush.
    made = tantivy.Document()
    made.add_integer(ID, document.doc_id)
    made.add_text(_KIND, document.kind.name)
    if document.session_id:
        made.add_text(_SESSION, document.session_id)
    if counted:
        made.add_bytes(_COUNTS, waiting.counts)
    if language:
        made.add_text(LANGUAGE, language)
        # The fields' own analyzer is the English one.
        for field in WordField:
            made.add_pre_tokenized_text(field.value, _tokens(words.of(document, field, language)))
    else:
        spaced: dict[str, str] = {}  # What two fields have in common is worked off once.
        for field, texts_of in TEXTS_OF.items():
            texts = texts_of(document)
            spaced |= {text: words.spaced(text) for text in texts if text not in spaced}
            made.add_text(field.value, "\n".join([spaced[text] for text in texts]))
    return made


def _tokens(words: Sequence[str]) -> PreTokenizedString:
    return PreTokenizedString("", [Token(word, place, 0, 0) for place, word in enumerate(words)])


def term_query(schema: tantivy.Schema, field: WordField, word: str, weight: float) -> Query:
    """Return what finds a word in a field."""
    query = Query.term_query(schema, field.value, word, "freq")
    return query if weight == 1.0 else Query.boost_query(query, weight)


def ids_query(schema: tantivy.Schema, doc_ids: Sequence[int]) -> Query:
    """Return what finds documents by their ids."""
    return Query.term_set_query(schema, ID, doc_ids)


def id_range_query(schema: tantivy.Schema, first: int, last: int) -> Query:
    """Return what finds documents with ids from `first` to `last`."""
    return Query.range_query(schema, ID, FieldType.Integer, first, last)


def sessions_query(schema: tantivy.Schema, session_ids: Sequence[str]) -> Query:
    """Return what finds the documents of sessions."""
    return Query.term_set_query(schema, _SESSION, session_ids)


def kinds_query(schema: tantivy.Schema, names: Sequence[str]) -> Query:
    """Return what finds the documents of kinds of memory."""
    return Query.term_set_query(schema, _KIND, names)


def counts_in(searcher: Searcher) -> dict[int, bytes] | None:
    """Return how often each document has its words, by its id; None where that was not written of
    every one."""
    if not searcher.num_docs:
        return {}
    hits = searcher.search(Query.all_query(), searcher.num_docs, count=False).hits
    places = [place for _, place in hits]
    found: dict[int, bytes] = {}
    for doc_id, place in zip(searcher.fast_field_values(ID, places), places, strict=True):
        counts = searcher.doc(place).get_first(_COUNTS)
        if counts is None or doc_id is None:
            return None
        found[int(doc_id)] = bytes(counts)
    return found


class WordFiles:
    """The files of one index at work in `folder`, a folder of the process; they are open only while
    somebody uses them. Not thread-safe.

    tantivy's binding starts a thread for each index that is open, which looks at a file twice a
    second and takes 80 µs of processor time a second for that; it ends once nothing refers to the
    index or to a searcher of it any more. To open the files again takes 0.2 ms of processor time,
    and 0.7 ms those of a hundred thousand documents.

    Args:
        folder: where they are; it may be empty.
        schema: of the index.
        analyzer: makes the words of texts that come without.

    Raises:
        ValueError: the files are not what was written.
    """

    def __init__(self, folder: Path, schema: Schema, analyzer: TextAnalyzer) -> None:
        self._folder = folder
        self._schema = schema
        self._analyzer = analyzer
        self._index: tantivy.Index | None = None
        self._writer: tantivy.IndexWriter | None = None
        everything = {"n": {"stats": {"field": ID}}}
        self.searcher().aggregate(Query.all_query(), everything)  # Or else it is damaged.

    @property
    def is_open(self) -> bool:
        """Whether tantivy has them open."""
        return self._index is not None

    @property
    def has_writer(self) -> bool:
        """Whether the writer and its memory are held."""
        return self._writer is not None

    @property
    def bytes(self) -> int:
        """What the files take, which lie in memory where the system offers that, and the writer."""
        files = 0
        with suppress(OSError):  # They are just being removed.
            files = sum(entry.stat().st_size for entry in os.scandir(self._folder))
        return files + (_WRITER_BYTES if self.has_writer else 0)

    def searcher(self) -> Searcher:
        """Return what searches all that was written, opening the files if need be.

        Raises:
            ValueError: they cannot be opened.
        """
        return self._opened().searcher()

    def write(self, removed: Iterable[int], added: Iterable[tantivy.Document]) -> None:
        """Delete documents, add others and commit that.

        Raises:
            ValueError: tantivy could not; nothing is written.
        """
        index = self._opened()
        try:
            if self._writer is None:
                self._writer = index.writer(_HEAP_BYTES, 1)
            for doc_id in removed:
                self._writer.delete_documents_by_term(ID, doc_id)
            for document in added:
                self._writer.add_document(document)
            self._writer.commit()
        except BaseException:
            self._writer = None  # With it goes what it had taken but not committed.
            raise
        index.reload()

    def release_writer(self) -> None:
        """Let the writer end what it does, and give its memory back."""
        if self._writer is not None:
            self._writer.wait_merging_threads()
            self._writer = None
            self._opened().reload()

    def drop_writer(self) -> None:
        """Let go of the writer, and of what it has not committed."""
        self._writer = None

    def close(self) -> None:
        """Let go of the files, unless the writer is held; searchers that there are keep them."""
        if self._writer is None:
            self._index = None

    def _opened(self) -> tantivy.Index:
        index = self._index
        if index is None:
            index = tantivy.Index(self._schema, path=str(self._folder))
            index.register_tokenizer(ANALYZER, self._analyzer)
            self._index = index
        return index


def raise_damaged(error: BaseException) -> NoReturn:
    """Raise a failure as that of the files, and anything else as it is."""
    if is_failure(error):
        raise LexicalDamaged(str(error)) from error
    raise error


class LexicalDamaged(Exception):
    """The copy on the disk cannot be used; the index must be built again."""


class SavedWords:
    """The copy of the words' index in `folder`, in the tenant's. `layout` names its form; one
    of another form cannot be used.

        index/lexical/manifest.json   the layout, tantivy's own lists, and the SHA-256 of each file
        index/lexical/<segment>.*     tantivy's files; a segment never changes once it is written

    It is written file by file, then the manifest is replaced, then what is not in it goes: whenever
    the process dies, the manifest names files that are whole. It is read, and never mapped.

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
