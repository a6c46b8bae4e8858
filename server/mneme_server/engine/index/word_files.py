"""tantivy's files at work, which are open only while somebody uses them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import tantivy
from tantivy import Query, Schema, Searcher, TextAnalyzer

from mneme_server.common.errors import is_failure
from mneme_server.engine.index.layout import ANALYZER, ID

_HEAP_BYTES = 15_000_000  # The least that tantivy accepts for a thread.
_WRITER_BYTES = 3_000_000
"""Of a writer that is held, in fact; measured over a hundred of them. It takes more only while it
commits much."""


class LexicalDamaged(Exception):
    """The copy on the disk cannot be used; the index must be built again."""


class WordFiles:
    """The files of one index in `folder`, a folder of the process. Not thread-safe.

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
