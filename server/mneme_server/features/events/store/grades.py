"""Grades in a tenant's database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, func, select

from mneme_server.common.stored import reads
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.records import row_reader, row_writer
from mneme_server.engine.store.rows import (
    chunks,
    equal_where_given,
    insert_rows,
    latest_after,
    read_with,
)
from mneme_server.features.events.model import GRADE, Grade, GradeFilter
from mneme_server.features.events.store.tables import session_grades

_columns = session_grades.c


class SqlGrades:
    """The tenant's grades, to which rows are only added."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def total(self) -> int:
        """Return how many there are."""
        query = select(func.count()).select_from(session_grades)
        query = query.where(_columns.tenant_id == self._tenant_id)
        return int(self._connection.execute(query).scalar_one())

    def by_ids(self, grade_ids: Collection[str]) -> Mapping[str, Grade]:
        """Return those that exist, by id."""
        found = read_with(
            self._connection, session_grades, _grade, self._tenant_id, grade_ids, kind=GRADE
        )
        return {one.id: one for one in found}

    def add(self, grades: Sequence[Grade]) -> None:
        """Insert grades."""
        rows = [_grade_row(one, self._tenant_id) for one in grades]
        insert_rows(self._connection, session_grades, rows)

    def of_sessions(self, session_ids: Collection[str]) -> Mapping[str, Sequence[Grade]]:
        """Return the grades of each of these sessions, in no particular order."""
        found: dict[str, list[Grade]] = {one: [] for one in session_ids}
        for some in chunks(session_ids):
            query = select(session_grades).where(
                _columns.tenant_id == self._tenant_id, _columns.session_id.in_(some)
            )
            for one in read_rows(self._connection, query, _grade, kind=GRADE):
                found[one.session_id].append(one)
        return found

    def page(
        self, filter_: GradeFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Grade]:
        """Return grades, latest first, that come after the key (graded_us, id)."""
        query = select(session_grades).where(
            _columns.tenant_id == self._tenant_id,
            *equal_where_given(_columns, filter_, ("session_id", "grader")),
        )
        query = latest_after(query, _columns.graded_at, _columns.id, after, limit)
        return read_rows(self._connection, query, _grade, kind=GRADE)


_grade = reads(GRADE)(row_reader(session_grades, Grade))
_grade_row = row_writer(Grade, session_grades)
