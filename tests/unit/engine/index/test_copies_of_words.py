"""Copies of the words' files: made early, and restored only as tantivy wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.feed import Position
from mneme_server.engine.index.settings import IndexSettings
from mneme_server.engine.index.words.files import LexicalDamaged
from mneme_server.engine.index.words.lexical import LexicalIndex
from mneme_server.features.events.event_types import EVENT


def _documents(first: int, count: int) -> list[Document]:
    return [
        Document(n, EVENT, f"e{n}", f"heron number {n}", n) for n in range(first, first + count)
    ]


def _damage(file: Path) -> None:
    """Turn the first bits over where they lie: to cut a mapped file off would end the process."""
    with file.open("r+b") as mapped:
        turned = bytes(byte ^ 0xFF for byte in mapped.read(4))
        mapped.seek(0)
        mapped.write(turned)


def test_files_that_were_damaged_before_they_were_copied_are_not_restored(tmp_path: Path) -> None:
    words = LexicalIndex(tmp_path / "copy", IndexSettings())
    words.add(_documents(1, 50))
    words.commit()
    for file in words._folder.glob("*.store"):
        _damage(file)
    words.release_writer()
    words.discard()
    with pytest.raises(LexicalDamaged, match="not what was written at first"):
        LexicalIndex(tmp_path / "copy", IndexSettings())


def test_a_copy_is_due_early_and_then_whenever_there_is_twice_as_much(tmp_path: Path) -> None:
    words = LexicalIndex(tmp_path / "copy", IndexSettings())
    due, number = [], 0
    for step in range(1, 41):
        words.add(_documents(number + 1, 100), replace=False)
        number += 100
        words.reached(Position(step, step))
        words.commit()
        if words.wants_copy:
            due.append(number)
            words.release_writer()
    assert due == [1_000, 2_000, 4_000]
    words.close()
