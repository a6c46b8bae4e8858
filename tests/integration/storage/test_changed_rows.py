"""What changes while a tenant is copied is brought to the copy, whatever changed it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme_server.capabilities import tenant_schema
from mneme_server.engine.store.sqlite_store import FILE_NAME, SqliteStores, SqliteTenantStore
from mneme_server.engine.store.tenant_copy import catch_up, copy_rows, rows_of
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.sessions import SqlSessions
from mneme_server.features.learn.store.lessons import SqlLessons
from mneme_server.features.skills.model import Skill
from mneme_server.features.skills.store.skills import SqlSkills
from store_contract.conftest import document, fill
from store_contract.samples import event, lesson, session

pytestmark = pytest.mark.slow

SCHEMA = tenant_schema()


def quietly(*_: object) -> None:
    """Tell nobody."""


class Copied:
    """A tenant that is copied while it changes, and the copy."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self.source: SqliteTenantStore = SqliteStores(folder / "here", SCHEMA).open("acme")
        self.target = SqliteStores(folder / "there", SCHEMA).open("acme")
        for one in (self.source, self.target):
            opened.callback(one.close)
        self.last = 0

    def copy(self) -> None:
        self.source.note_changes()
        with self.source.read() as unit:
            copy_rows(unit, self.target, quietly)

    def catch_up(self) -> int:
        """Catch up; return how many rows that took. What there is then has to be the same."""
        with self.source.frozen() as then, then.read() as unit:
            caught = catch_up(unit, self.target, self.last)
            here = rows_of(unit, quietly)
        with self.target.read() as unit:
            assert rows_of(unit, quietly) == here
        self.last = caught.last
        return caught.rows

    def run(self, sql: str, *values: object) -> None:
        """Change rows past all that knows what they mean."""
        with self.source.write() as unit:
            unit.changed_rows._driver.execute(sql, values)


@pytest.fixture
def copied(tmp_path: Path) -> Iterator[Copied]:
    with ExitStack() as opened:
        made = Copied(tmp_path, opened)
        fill(made.source)
        made.copy()
        yield made


def test_nothing_that_changed_is_nothing_to_catch_up_with(copied: Copied) -> None:
    assert copied.catch_up() == 0


def test_rows_that_come_change_and_go_are_brought_over(copied: Copied) -> None:
    with copied.source.write() as unit:
        unit.get(SqlSessions).save([session("s3")])
        unit.get(SqlEvents).append([event("e3", "s3", 1)])
        unit.get(SqlLessons).save([lesson("later")])
        unit.documents.add([document("e3")])
    assert copied.catch_up() > 0
    copied.run("UPDATE sessions SET project = 'another' WHERE id = 's3'")
    copied.run("DELETE FROM events WHERE id = 'e3'")
    assert copied.catch_up() == 2
    assert copied.catch_up() == 0


def test_rows_that_go_with_others_go_there_too(copied: Copied) -> None:
    with copied.source.write() as unit:
        unit.get(SqlLessons).save([lesson("tagged", tags=("one", "two"))])
    assert copied.catch_up() > 2
    copied.run("DELETE FROM lessons WHERE id = 'tagged'")
    assert copied.catch_up() > 2, "its tags went with it"


@pytest.mark.parametrize("many", [2, 3, 501])
def test_skills_that_take_each_others_names_are_brought_over(copied: Copied, many: int) -> None:
    def named(*names: str) -> None:
        with copied.source.write() as unit:
            for place, name in enumerate(names):
                unit.get(SqlSkills).save(Skill(f"k{place}", name))

    names = [f"name {place}" for place in range(many)]
    named(*names)
    copied.catch_up()
    named(*(f"meanwhile {name}" for name in names))
    named(*names[1:], names[0])
    assert copied.catch_up() == many


def test_what_is_undone_is_not_noted(copied: Copied) -> None:
    def undone() -> None:
        with copied.source.write() as unit:
            unit.get(SqlSessions).save([session("s9")])
            raise LookupError

    with pytest.raises(LookupError):
        undone()
    assert copied.catch_up() == 0


def test_nothing_is_noted_once_it_ended_and_notes_begin_anew(copied: Copied) -> None:
    copied.source.end_notes()
    assert not copied.source.notes_changes()
    copied.source.end_notes()
    with copied.source.write() as unit:
        unit.get(SqlSessions).save([session("s9")])
    copied.source.note_changes()
    assert copied.source.notes_changes()
    with copied.source.read() as unit:
        assert unit.changed_rows.after(0) == (0, {})


def test_nothing_is_left_in_the_file_of_what_was_noted(copied: Copied, tmp_path: Path) -> None:
    with copied.source.write() as unit:
        unit.overwrite()
        unit.changed_rows._driver.execute(
            "INSERT INTO totals (tenant_id, name, value) VALUES ('acme', 'of the heron', 1)"
        )
        unit.changed_rows._driver.execute("DELETE FROM totals WHERE name = 'of the heron'")
    copied.source.close()
    file = tmp_path / "here" / "acme" / FILE_NAME
    assert b"of the heron" in file.read_bytes()
    again = SqliteStores(tmp_path / "here", SCHEMA).open("acme")
    again.end_notes()
    again.close()
    assert b"of the heron" not in file.read_bytes()


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("save"), st.integers(0, 5), st.sampled_from(["a", "b", "c"])),
        st.tuples(st.just("delete"), st.integers(0, 5), st.just("")),
        st.tuples(st.just("rename"), st.integers(0, 5), st.sampled_from(["x", "y"])),
        st.tuples(st.just("catch up"), st.just(0), st.just("")),
    ),
    max_size=20,
)


@settings(max_examples=15)
@given(changes=CHANGES)
def test_whatever_changes_in_whatever_order_the_copy_ends_up_the_same(
    changes: list[tuple[str, int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with ExitStack() as opened:
        copied = Copied(tmp_path_factory.mktemp("copied"), opened)
        copied.copy()
        for what, number, text in changes:
            name: Any = f"n{number}"
            if what == "catch up":
                copied.catch_up()
            elif what == "save":
                copied.run(
                    "INSERT INTO totals (tenant_id, name, value) VALUES ('acme', ?, ?)"
                    " ON CONFLICT DO UPDATE SET value = excluded.value",
                    name, ord(text),
                )  # fmt: skip
            elif what == "delete":
                copied.run("DELETE FROM totals WHERE name = ?", name)
            else:
                copied.run("UPDATE OR IGNORE totals SET name = ? WHERE name = ?", text, name)
        copied.catch_up()
