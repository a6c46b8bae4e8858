"""Lessons that several change at once, and archived ones that are brought back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api, failure_of, grpc, refused
from support.contexts import get_context
from support.making import export_lessons, ids_of, lesson, list_lessons, recall, search_lessons

ABORTED = (grpc.StatusCode.ABORTED, "ETAG_MISMATCH")


def get(api: Api, lesson_id: str) -> learn_pb.Lesson:
    return api.learn.GetLesson(learn_pb.GetLessonRequest(lesson_id=lesson_id)).lesson


def update(api: Api, lesson_id: str, etag: str = "", **changes: Any) -> learn_pb.Lesson:
    request = learn_pb.UpdateLessonRequest(
        lesson=learn_pb.Lesson(id=lesson_id, etag=etag, **changes),
        update_mask=FieldMask(paths=changes),
    )
    return api.learn.UpdateLesson(request).lesson


def archive(api: Api, lesson_id: str, etag: str = "") -> learn_pb.Lesson:
    request = learn_pb.ArchiveLessonRequest(lesson_id=lesson_id, etag=etag)
    return api.learn.ArchiveLesson(request).lesson


def restore(api: Api, lesson_id: str, etag: str = "") -> learn_pb.Lesson:
    request = learn_pb.UnarchiveLessonRequest(lesson_id=lesson_id, etag=etag)
    return api.learn.UnarchiveLesson(request).lesson


def delete(api: Api, lesson_id: str, etag: str = "") -> learn_pb.Lesson:
    request = learn_pb.DeleteLessonRequest(lesson_id=lesson_id, etag=etag)
    return api.learn.DeleteLesson(request).lesson


def _every_answer(api: Api, lesson_id: str) -> Iterator[learn_pb.Lesson]:
    yield get(api, lesson_id)
    yield from list_lessons(api)
    yield from export_lessons(api)
    search = learn_pb.SearchLessonsRequest(query="tides")
    yield from (found.lesson for found in api.learn.SearchLessons(search).results)
    yield from (found.lesson for found in get_context(api, "tides").lessons)


def test_every_answer_that_holds_a_lesson_has_the_same_etag(api: Api) -> None:
    saved = lesson(api, "Tides", "They follow the moon", tags=["b", "a"], category="")
    etags = [held.etag for held in _every_answer(api, saved.id)]
    assert len(etags) == 5
    assert {*etags} == {saved.etag}
    assert saved.etag


def test_a_change_with_the_lesson_s_etag_is_made_and_gives_it_another(api: Api) -> None:
    saved = lesson(api, "Tides", "They follow the moon")
    changed = update(api, saved.id, saved.etag, title="Ebb and flow")
    archived = archive(api, saved.id, changed.etag)
    assert archive(api, saved.id, archived.etag) == archived, "nothing is left to change"
    restored = restore(api, saved.id, archived.etag)
    assert len({saved.etag, changed.etag, archived.etag}) == 3
    assert restored == changed, "it is what it was before it was archived, its etag as well"


CHANGES: dict[str, Callable[[Api, str, str], object]] = {
    "update": lambda api, id_, etag: update(api, id_, etag, title="mine"),
    "update to what it is already": lambda api, id_, etag: update(api, id_, etag, title="theirs"),
    "archive": archive,
    "unarchive": restore,
    "delete": delete,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_change_with_an_older_etag_is_refused_and_changes_nothing(
    change: Callable[[Api, str, str], object], api: Api
) -> None:
    saved = lesson(api, "Tides", "They follow the moon")
    theirs = update(api, saved.id, title="theirs")
    with refused() as failure:
        change(api, saved.id, saved.etag)
    assert (failure.code, failure.reason) == ABORTED
    assert "read the lesson again" in failure.message
    assert export_lessons(api, include_archived=True) == [theirs]


def test_an_archived_lesson_is_not_what_was_read_before(api: Api) -> None:
    saved = lesson(api, "Tides", "They follow the moon")
    archived = archive(api, saved.id)
    for change in (CHANGES["update"], archive, restore, delete):
        with refused() as failure:
            change(api, saved.id, saved.etag)
        assert (failure.code, failure.reason) == ABORTED
    with refused() as failure:
        update(api, saved.id, archived.etag, title="new")
    assert failure.reason == "CONSTRAINT_VIOLATION"


def test_an_update_that_arrived_is_refused_when_it_is_sent_again_with_its_etag(api: Api) -> None:
    saved = lesson(api, "Tides", "They follow the moon")
    changed = update(api, saved.id, saved.etag, title="Ebb and flow")
    with refused() as failure:
        update(api, saved.id, saved.etag, title="Ebb and flow")
    assert (failure.code, failure.reason) == ABORTED
    assert export_lessons(api) == [changed], "reading it shows that the first one was made"


@pytest.mark.parametrize("same", [True, False], ids=["the same words", "words of their own"])
def test_of_many_updates_with_the_same_etag_exactly_one_is_made(same: bool, api: Api) -> None:
    saved = lesson(api, "Tides", "They follow the moon")
    made: list[learn_pb.Lesson] = []
    refusals: list[tuple[object, str]] = []
    ready = threading.Barrier(8)

    def change(words: str) -> None:
        ready.wait()
        try:
            made.append(update(api, saved.id, saved.etag, content=words))
        except grpc.RpcError as error:
            failure = failure_of(error)
            refusals.append((failure.code, failure.reason))

    threads = [
        threading.Thread(target=change, args=("mine" if same else f"mine {n}",)) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert refusals == [ABORTED] * 7
    assert list_lessons(api) == made


def test_an_import_does_not_look_at_etags(api: Api) -> None:
    saved = lesson(api, "Tides", "They follow the moon")
    update(api, saved.id, title="Ebb and flow")
    request = learn_pb.ImportLessonsRequest(
        lessons=[saved], on_conflict=learn_pb.IMPORT_CONFLICT_REPLACE
    )
    assert api.learn.ImportLessons(request).replaced_count == 1
    assert list_lessons(api) == [saved], "the same content and times, the same etag"


def test_a_restored_lesson_is_listed_and_found_at_once_and_may_be_changed(api: Api) -> None:
    saved, other = lesson(api, "Tides", "about water"), lesson(api, "Rain", "about water")
    archive(api, saved.id)
    assert search_lessons(api, "water") == [other.id]
    restored = restore(api, saved.id)
    assert not restored.HasField("archived_at")
    assert restored.updated_at == saved.updated_at
    assert {found.id for found in list_lessons(api)} == {saved.id, other.id}
    assert set(search_lessons(api, "water")) == {saved.id, other.id}
    assert set(ids_of(recall(api, "sea", mode=recall_pb.RECALL_MODE_DENSE))) == {saved.id, other.id}
    assert update(api, saved.id, title="Ebb").title == "Ebb"


def test_restoring_what_is_not_archived_changes_nothing(api: Api) -> None:
    saved = lesson(api, "Tides", "They follow the moon")
    assert restore(api, saved.id) == saved
    archive(api, saved.id)
    assert restore(api, saved.id) == restore(api, saved.id) == saved
