"""A model is sent as it was when that began, or the caller is told to begin anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.common.errors import DataLoss, NotFound, Reason, Unavailable
from mneme_server.engine.store.sqlite_store import SqliteStores
from mneme_server.features.learning.export.exports import DownloadModel, file_name
from mneme_server.features.learning.store.exports import CHUNK_BYTES, SqlLearningExports
from mneme_server.features.learning.store.sessions import SqlLearningSessions
from store_contract.samples import export_of, learning_session

MODEL = os.urandom(20 * CHUNK_BYTES)


class Kept:
    """A tenant with a session that exported a model, and who downloads it."""

    def __init__(self, root: Path) -> None:
        self.store = SqliteStores(root, tenant_schema()).open("acme")
        self.number = 0
        self.begin()
        self.export(MODEL)
        tenants: Any = self
        self.download = DownloadModel(tenants).download

    @contextmanager
    def open(self, _tenant_id: str) -> Iterator[Any]:
        yield self.store

    def begin(self) -> None:
        with self.store.write() as unit:
            self.number = unit.get(SqlLearningSessions).add(learning_session("s")).number

    def export(self, data: bytes) -> None:
        with self.store.write() as unit:
            unit.get(SqlLearningExports).put(self.number, export_of(data), data)

    def delete(self) -> None:
        with self.store.write() as unit:
            unit.get(SqlLearningSessions).delete(self.number)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path)
    yield kept
    kept.store.close()


def test_its_parts_together_are_the_model(kept: Kept) -> None:
    model = kept.download("acme", "s")
    parts = list(model.parts)
    assert b"".join(parts) == MODEL
    assert max(map(len, parts)) == 512 * 1024


def test_another_model_ends_it_before_anything_of_that_is_sent(kept: Kept) -> None:
    parts = kept.download("acme", "s").parts
    first = next(parts)
    kept.export(os.urandom(len(MODEL)))
    with pytest.raises(Unavailable, match="begin anew") as refused:
        next(parts)
    assert refused.value.reason is Reason.TRANSACTION_FAILED
    assert MODEL.startswith(first)


def test_the_same_model_again_does_not_disturb_it(kept: Kept) -> None:
    parts = kept.download("acme", "s").parts
    first = next(parts)
    kept.export(MODEL)
    assert first + b"".join(parts) == MODEL


def test_a_session_that_is_deleted_meanwhile_ends_it(kept: Kept) -> None:
    parts = kept.download("acme", "s").parts
    next(parts)
    kept.delete()
    with pytest.raises(NotFound) as refused:
        next(parts)
    assert refused.value.reason is Reason.SESSION_NOT_FOUND


def test_the_same_model_of_a_session_that_took_its_place_is_another(kept: Kept) -> None:
    parts = kept.download("acme", "s").parts
    next(parts)
    kept.delete()
    kept.begin()
    kept.export(MODEL)
    with pytest.raises(Unavailable, match="begin anew"):
        next(parts)
    assert b"".join(kept.download("acme", "s").parts) == MODEL


def test_what_is_not_what_was_exported_is_damaged(kept: Kept) -> None:
    with kept.store.write() as unit:
        unit.get(SqlLearningExports).put(kept.number, export_of(MODEL), MODEL[:-1] + b"?")
    with pytest.raises(DataLoss, match="its digest differs"):
        list(kept.download("acme", "s").parts)


@pytest.mark.parametrize(
    ("session_id", "name"),
    [
        ("which-way", "7-which-way.npz"),
        ("../../etc/passwd", "7-etc-passwd.npz"),
        ("学习", "7-.npz"),
    ],
)
def test_a_file_is_called_what_a_file_may_be_called(session_id: str, name: str) -> None:
    from dataclasses import replace

    assert file_name(replace(learning_session(session_id), number=7)) == name
