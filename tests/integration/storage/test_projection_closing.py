"""A tenant is closed at any moment: also while its copy of what is shown is being filled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mneme_server.engine.corpus.cache import do_at_once
from mneme_server.engine.corpus.document import Document, MemoryKind
from mneme_server.engine.corpus.feed import START
from mneme_server.engine.corpus.projection import ShownMemories
from mneme_server.engine.store.memories import MemoryKinds
from mneme_server.engine.store.projection import projecting
from mneme_server.engine.store.sqlite_store import SqliteTenantStore
from mneme_server.engine.store.unit import TenantSchema, Unit

PATIENCE_S = 60.0
NOTE = MemoryKind("note")
KINDS: Any = [{NOTE: None}]


class Slow:
    """A store that is read no more once `reads` transactions were, until it may go on."""

    def __init__(self, store: SqliteTenantStore, reads: int) -> None:
        self._store = store
        self._left = reads
        self.source = store.source
        self.halted, self.go_on = threading.Event(), threading.Event()

    @contextmanager
    def read(self) -> Iterator[Unit]:
        if not self._left:
            self.halted.set()
            assert self.go_on.wait(PATIENCE_S)
        self._left = max(0, self._left - 1)
        with self._store.read() as unit:
            yield unit


def test_a_copy_that_is_being_filled_is_let_go_of_whatever_was_written_since(
    tmp_path: Path,
) -> None:
    with_notes = SqliteTenantStore(tmp_path, "acme", TenantSchema.of(kinds=KINDS))

    def write(name: str) -> None:
        with with_notes.write() as unit:
            unit.documents.add([Document(0, NOTE, name, f"what {name} says", 1)])

    write("before")
    slow: Any = Slow(with_notes, reads=1)
    with with_notes.read() as unit:
        head = unit.feed.head()
    assert head > START
    project = projecting(MemoryKinds(KINDS))
    shown = ShownMemories("acme", slow, project(tmp_path / "shown", "acme", slow), head, do_at_once)
    assert slow.halted.wait(PATIENCE_S), "it is filled"
    write("meanwhile")
    live = shown._live
    closing = threading.Thread(target=shown.close, daemon=True)
    closing.start()
    assert live is not None
    assert live._closing.wait(PATIENCE_S)
    slow.go_on.set()
    closing.join(PATIENCE_S)
    assert not closing.is_alive()
    assert not [*(tmp_path / "shown").iterdir()], "what is not whole is not kept"
    with_notes.close()
