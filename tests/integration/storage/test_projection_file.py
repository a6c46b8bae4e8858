"""The file of a projection gives back what was put there, or says that it cannot."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme_server.common.errors import DataLoss
from mneme_server.engine.corpus.feed import START, Position
from mneme_server.engine.store.projection import ProjectionFile
from mneme_server.engine.store.projection_reader import ShownRow

LAYOUT = "of the tests"
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
"""What PostgreSQL stores."""


def row(doc_id: int, text: str = "a heron", source: str | None = None) -> ShownRow:
    return ShownRow(doc_id, source, text)


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.integers(1, 20), TEXTS, max_size=5),
            st.sets(st.integers(1, 20), max_size=5),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_it_holds_what_was_put_last_also_when_it_is_opened_again(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[tuple[dict[int, str], set[int], bool]],
) -> None:
    path = tmp_path_factory.mktemp("file") / "it"
    file, held = ProjectionFile(path, LAYOUT), dict[int, str]()
    file.write(whole=True)
    for number, (put, removed, closed) in enumerate(writes, 1):
        rows = [row(doc_id, text, text or None) for doc_id, text in put.items()]
        file.write(rows, sorted(removed), position=Position(number, -number))
        held = {n: text for n, text in (held | put).items() if n not in removed}
        if closed:
            file.close()
            file = ProjectionFile(path, LAYOUT)
        assert file.position == Position(number, -number)
    assert dict(file.by_id(range(30))) == held
    wanted = set(held.values()) - {""}
    assert {text for _, text in file.by_source(sorted(wanted))} == wanted
    file.close()


def test_a_file_that_was_not_filled_to_its_end_is_not_used(tmp_path: Path) -> None:
    file = ProjectionFile(tmp_path / "it", LAYOUT)
    file.write([row(1)], position=Position(3, 7))
    file.close()
    with pytest.raises(DataLoss, match="not whole"):
        ProjectionFile(tmp_path / "it", LAYOUT)


def test_a_file_of_another_layout_is_not_used(tmp_path: Path) -> None:
    file = ProjectionFile(tmp_path / "it", LAYOUT)
    file.write(whole=True)
    file.close()
    with pytest.raises(DataLoss, match="of another version"):
        ProjectionFile(tmp_path / "it", "another")


def test_a_text_that_was_changed_on_the_disk_is_not_given_back(tmp_path: Path) -> None:
    file = ProjectionFile(tmp_path / "it", LAYOUT)
    file.write([row(1, "a heron eats"), row(2, "an otter sleeps")], whole=True)
    file.close()
    content = (tmp_path / "it").read_bytes()
    (tmp_path / "it").write_bytes(content.replace(b"a heron eats", b"a heron hits"))
    again = ProjectionFile(tmp_path / "it", LAYOUT)
    assert again.by_id([2]) == [(2, "an otter sleeps")]
    with pytest.raises(DataLoss, match="checksum"):
        again.by_id([1, 2])
    again.close()


def test_what_fails_half_way_changes_nothing(tmp_path: Path) -> None:
    file = ProjectionFile(tmp_path / "it", LAYOUT)
    file.write([row(1, "as it was")], position=Position(1, 1), whole=True)
    broken = ShownRow(2, None, None)  # type: ignore[arg-type]
    with pytest.raises((DataLoss, AttributeError)):
        file.write([row(1, "as it is"), broken], position=Position(2, 2))
    assert file.by_id([1, 2]) == [(1, "as it was")]
    assert file.position == Position(1, 1)
    file.close()


def test_what_was_removed_is_overwritten(tmp_path: Path) -> None:
    file = ProjectionFile(tmp_path / "it", LAYOUT)
    file.write([row(n, f"the secret of heron {n}") for n in range(500)], whole=True)
    file.empty_log()
    assert b"the secret" in bytes_of(tmp_path)
    file.write((), range(500))
    file.empty_log()
    assert b"the secret" not in bytes_of(tmp_path)
    file.close()


def test_a_closed_file_says_so_and_a_removed_one_leaves_nothing(tmp_path: Path) -> None:
    file = ProjectionFile(tmp_path / "it", LAYOUT)
    file.write([row(1)], whole=True)
    file.by_id([1])
    file.remove()
    assert not [*tmp_path.iterdir()]
    with pytest.raises(OSError, match="closed"):
        file.by_id([1])
    with pytest.raises(OSError, match="closed"):
        file.write([row(2)])


def test_it_is_read_while_it_is_written_to(tmp_path: Path) -> None:
    file = ProjectionFile(tmp_path / "it", LAYOUT)
    file.write([row(1)], whole=True)
    assert file.position == START
    writer = sqlite3.connect(f"file:{tmp_path / 'it'}?vfs=unix-excl", uri=True)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM memories")
    assert file.by_id([1]) == [(1, "a heron")]
    writer.rollback()
    writer.close()
    file.close()
