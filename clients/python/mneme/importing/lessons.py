"""Brings in lessons as `ExportLessons` gives them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mneme._generated.choices import ImportConflictChoice
from mneme.client import MnemeClient
from mneme.errors import ArgumentError
from mneme.importing.plan import exact
from mneme.importing.reading import Broken, Record, read_records
from mneme.messages import ImportLessonsResponse, Lesson
from mneme.plain import from_dict

_MAX_BATCH = 500
_MAX_BATCH_BYTES = 1024 * 1024


def import_lessons(
    client: MnemeClient, file: Path, *, on_conflict: ImportConflictChoice | None = None
) -> ImportLessonsResponse:
    """Import a file of lessons; returns the sums of what became of them.

    The whole file is read before anything is sent, so that a broken line brings nothing in.

    Raises:
        ArgumentError: a record is no lesson; the message names its place.
        MnemeError: the server refused a batch; batches before it are in.
    """
    with file.open("rb") as stream:
        lessons = [_lesson(record) for record in read_records(stream, str(file))]
    totals = ImportLessonsResponse()
    for batch in _batches(lessons):
        answer = client.import_lessons(batch, on_conflict=on_conflict)
        totals.created_count += answer.created_count
        totals.replaced_count += answer.replaced_count
        totals.unchanged_count += answer.unchanged_count
        totals.skipped_count += answer.skipped_count
        totals.lesson_ids.extend(answer.lesson_ids)
    return totals


def _lesson(record: Record | Broken) -> Lesson:
    if isinstance(record, Broken):
        raise ArgumentError(f"{record.place}: {record.reason}")
    try:
        return from_dict(exact(record.value), Lesson())
    except ArgumentError as error:
        raise ArgumentError(f"{record.place}: no lesson: {error}") from error


def _batches(lessons: list[Lesson]) -> Iterator[list[Lesson]]:
    batch: list[Lesson] = []
    size = 0
    for lesson in lessons:
        length = lesson.ByteSize()
        if batch and (len(batch) == _MAX_BATCH or size + length > _MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(lesson)
        size += length
    if batch:
        yield batch
