"""Lessons: kept, changed, archived, counted, moved, and found at once."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api, grpc, refused
from support.making import (
    at,
    export_lessons,
    ids_of,
    lesson,
    list_lessons,
    recall,
    search_lessons,
    struct,
)
from support.server import LocalServer

FULL: dict[str, Any] = {
    "title": "Retry once", "content": "A timeout of the bank is worth one retry.",
    "category": "payments", "importance": 3, "agent_id": "clerk", "project": "shop",
    "tags": ["bank", "http"], "context": {"trigger": {"status": 504}}, "source_session_id": "s-1",
    "source_event_id": "e-1",
}  # fmt: skip


def get(api: Api, lesson_id: str) -> learn_pb.Lesson:
    return api.learn.GetLesson(learn_pb.GetLessonRequest(lesson_id=lesson_id)).lesson


def update(api: Api, lesson_id: str, **changes: Any) -> learn_pb.Lesson:
    request = learn_pb.UpdateLessonRequest(
        lesson=learn_pb.Lesson(id=lesson_id, **changes), update_mask=FieldMask(paths=changes)
    )
    return api.learn.UpdateLesson(request).lesson


def archive(api: Api, lesson_id: str) -> learn_pb.Lesson:
    request = learn_pb.ArchiveLessonRequest(lesson_id=lesson_id)
    return api.learn.ArchiveLesson(request).lesson


def bring_in(api: Api, *lessons: learn_pb.Lesson, on_conflict: int = 0) -> Any:
    return api.learn.ImportLessons(
        learn_pb.ImportLessonsRequest(lessons=lessons, on_conflict=on_conflict)
    )


def test_a_lesson_comes_back_as_it_was_saved(api: Api) -> None:
    saved = lesson(api, lesson_id="mine", **FULL)
    for name, value in FULL.items():
        expected = struct(**value) if name == "context" else value
        got = getattr(saved, name)
        assert (list(got) if name == "tags" else got) == expected, name
    assert saved.id == "mine"
    assert saved.created_at == saved.updated_at
    assert not saved.HasField("archived_at")
    read = get(api, "mine")
    read.ClearField("last_accessed_at")
    read.access_count = 0
    assert read == saved


def test_a_lesson_gets_an_id_a_category_and_an_importance_when_it_has_none(api: Api) -> None:
    saved = lesson(api, "title", "content")
    assert len(saved.id) == 26
    assert (saved.category, saved.importance) == ("general", 2)


def test_saving_a_lesson_again_changes_nothing_unless_it_says_something_else(api: Api) -> None:
    first = lesson(api, lesson_id="mine", **FULL)
    assert lesson(api, lesson_id="mine", **FULL) == first
    others: dict[str, Any] = {
        "title": "x", "content": "x", "category": "x", "importance": 1, "agent_id": "x",
        "project": "x", "tags": ["x"], "context": {"x": 1}, "source_session_id": "x",
        "source_event_id": "x",
    }  # fmt: skip
    for name, value in others.items():
        with refused() as failure:
            lesson(api, lesson_id="mine", **(FULL | {name: value}))
        assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "lesson_id")
    assert export_lessons(api) == [first]


def test_a_lesson_is_found_by_meaning_and_by_words_the_moment_it_is_saved(api: Api) -> None:
    for n in range(10):
        saved = lesson(api, f"Rule {n}", f"Always water the plant{n} on Mondays")
        assert search_lessons(api, f"plant{n}", limit=1) == [saved.id]
        answer = recall(api, "gardening once a week", mode=recall_pb.RECALL_MODE_DENSE, limit=100)
        assert saved.id in ids_of(answer)
        assert answer.pending_count == 0


def test_an_updated_lesson_is_found_by_its_new_text_only_and_at_once(api: Api) -> None:
    saved = lesson(api, "Penguins", "They live in Antarctica")
    other = lesson(api, "Camels", "They live in the desert")
    changed = update(api, saved.id, title="Compilers", content="They translate source code")
    assert changed.updated_at.ToMicroseconds() > saved.updated_at.ToMicroseconds()
    assert changed.created_at == saved.created_at
    assert search_lessons(api, "program translation", limit=1) == [saved.id]
    found = recall(api, "penguins", mode=recall_pb.RECALL_MODE_LEXICAL)
    assert found.results == []
    assert search_lessons(api, "animals", limit=1) == [other.id]


@pytest.mark.parametrize(
    ("field", "value", "after"),
    [
        ("title", "New", "New"), ("content", "New words", "New words"),
        ("category", "ops", "ops"), ("category", "", "general"),
        ("importance", 4, 4), ("importance", 0, 2), ("agent_id", "", ""),
        ("project", "other", "other"), ("tags", ["b", "a", "b"], ["a", "b"]), ("tags", [], []),
        ("context", struct(k=1), struct(k=1)), ("source_session_id", "s-2", "s-2"),
        ("source_event_id", "", ""),
    ],
)  # fmt: skip
def test_an_update_changes_the_fields_that_the_mask_names_and_no_others(
    field: str, value: Any, after: Any, api: Api
) -> None:
    before = lesson(api, lesson_id="mine", **FULL)
    request = learn_pb.UpdateLessonRequest(
        lesson=learn_pb.Lesson(id="mine", **{field: value}), update_mask=FieldMask(paths=[field])
    )
    changed = api.learn.UpdateLesson(request).lesson
    got = getattr(changed, field)
    assert (list(got) if field == "tags" else got) == after
    for name in learn_pb.Lesson.DESCRIPTOR.fields_by_name:
        if name not in (field, "updated_at", "etag"):
            assert getattr(changed, name) == getattr(before, name), name
    assert list_lessons(api) == [changed]


def test_an_update_that_says_what_is_there_already_changes_nothing(api: Api) -> None:
    before = lesson(api, lesson_id="mine", **FULL)
    assert update(api, "mine", title=FULL["title"]) == before


def test_the_filters_of_recall_follow_an_update(api: Api) -> None:
    saved = lesson(api, "Rule", "words", agent_id="a", project="p", tags=["x"])
    update(api, saved.id, agent_id="b", project="q", tags=["y"])
    for old, new in (
        ({"agent_id": "a"}, {"agent_id": "b"}), ({"project": "p"}, {"project": "q"}),
        ({"tags": ["x"]}, {"tags": ["y"]}),
    ):  # fmt: skip
        assert search_lessons(api, "rule", **old) == []
        assert search_lessons(api, "rule", **new) == [saved.id]


def test_an_archived_lesson_leaves_lists_searches_and_recall(api: Api) -> None:
    saved, kept = lesson(api, "Rule one", "about water"), lesson(api, "Rule two", "about water")
    archived = archive(api, saved.id)
    assert archived.HasField("archived_at")
    assert archive(api, saved.id) == archived, "archiving it again changes nothing"
    assert [found.id for found in list_lessons(api)] == [kept.id]
    assert [found.id for found in list_lessons(api, include_archived=True)] == [kept.id, saved.id]
    assert search_lessons(api, "water") == [kept.id]
    assert set(search_lessons(api, "water", include_archived=True)) == {kept.id, saved.id}
    assert [found.id for found in export_lessons(api)] == [kept.id]
    assert len(export_lessons(api, include_archived=True)) == 2
    assert ids_of(recall(api, "water")) == [kept.id]
    assert set(ids_of(recall(api, "water", include_archived=True))) == {kept.id, saved.id}
    assert get(api, saved.id).archived_at == archived.archived_at
    with refused() as failure:
        update(api, saved.id, title="new")
    assert (failure.code, failure.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION, "CONSTRAINT_VIOLATION",
    )  # fmt: skip
    assert failure.field == "lesson.id"


def test_gets_and_searches_are_counted_and_lists_recalls_and_exports_are_not(api: Api) -> None:
    saved, other = lesson(api, "Rule", "about water"), lesson(api, "Other", "about fire")
    list_lessons(api)
    export_lessons(api)
    recall(api, "water")
    assert get(api, saved.id).access_count == 1
    search_lessons(api, "water", limit=1)
    read = get(api, saved.id)
    assert read.access_count == 3
    assert read.last_accessed_at.ToMicroseconds() >= read.created_at.ToMicroseconds()
    assert get(api, other.id).access_count == 1, "what a search did not return is not counted"
    assert read.updated_at == saved.updated_at


def test_no_access_is_lost_when_many_read_at_once(api: Api) -> None:
    saved = lesson(api, "Rule", "about water")
    threads = [
        threading.Thread(target=lambda: [get(api, saved.id) for _ in range(10)]) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert get(api, saved.id).access_count == 51


def test_concurrent_updates_of_different_fields_are_both_kept(api: Api) -> None:
    saved = lesson(api, "Rule", "about water")
    threads = [
        threading.Thread(target=update, args=(api, saved.id), kwargs={name: f"new {name}"})
        for name in ("title", "content", "project", "agent_id", "category")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (now,) = list_lessons(api)
    assert (now.title, now.content, now.project, now.agent_id, now.category) == (
        "new title", "new content", "new project", "new agent_id", "new category",
    )  # fmt: skip
    assert ids_of(recall(api, "new title new content")) == [saved.id]


@pytest.fixture(scope="module")
def shelf(server: LocalServer) -> Api:
    """Return a tenant with lessons of many kinds; nobody may change them."""
    api = server.keys.tenant("shelf")
    for name, fields in {
        "a": {"agent_id": "x", "category": "ops", "importance": 4},
        "b": {"agent_id": "y", "category": "ops", "tags": ["t", "u"]},
        "c": {"category": "code", "project": "p", "tags": ["t"]},
        "d": {"agent_id": "x", "project": "p", "importance": 4},
    }.items():
        lesson(api, f"Lesson {name}", "about deployments", lesson_id=name, **fields)
    return api


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, "abcd"), ({"agent_id": "x"}, "ad"), ({"category": "ops"}, "ab"),
        ({"category": "general"}, "d"), ({"importance": 4}, "ad"), ({"importance": 2}, "bc"),
        ({"project": "p"}, "cd"), ({"tags": ["t"]}, "bc"), ({"tags": ["t", "u"]}, "b"),
        ({"agent_id": "x", "project": "p"}, "d"), ({"agent_id": "nobody"}, ""),
    ],
)  # fmt: skip
def test_lists_searches_and_exports_take_the_same_filters(
    filters: dict[str, Any], expected: str, shelf: Api
) -> None:
    assert "".join(found.id for found in list_lessons(shelf, **filters)) == expected[::-1]
    assert "".join(sorted(search_lessons(shelf, "deployments", **filters))) == expected
    assert "".join(found.id for found in export_lessons(shelf, **filters)) == expected
    answer = shelf.learn.SearchLessons(
        learn_pb.SearchLessonsRequest(query="x", filter=learn_pb.LessonFilter(**filters))
    )
    assert answer.searched_count == len(expected)


def test_a_search_is_limited_ranked_and_cut_at_min_score(api: Api) -> None:
    for n in range(15):
        lesson(api, f"Fact {n}", "Deploy on Tuesdays" if n == 7 else f"Fruit number {n}")
    request = learn_pb.SearchLessonsRequest(query="when to deploy?")
    answer = api.learn.SearchLessons(request)
    scores = [found.score for found in answer.results]
    assert len(scores) == 10
    assert answer.results[0].lesson.title == "Fact 7"
    assert scores == sorted(scores, reverse=True)
    request.min_score = scores[0]
    assert len(api.learn.SearchLessons(request).results) == 1
    assert len(search_lessons(api, "when to deploy?", limit=3)) == 3


def test_exported_lessons_come_back_whole_in_another_tenant(server: LocalServer, api: Api) -> None:
    lesson(api, lesson_id="full", **FULL)
    get(api, "full")
    archive(api, lesson(api, "Old", "habit", lesson_id="old").id)
    for n in range(250):  # More than a page of the export.
        bring_in(api, learn_pb.Lesson(id=f"n{n:03}", title="t", content=f"{n}")) if n % 50 == 0 \
            else None  # fmt: skip
    exported = export_lessons(api, include_archived=True)
    assert [found.id for found in exported] == sorted(found.id for found in exported)
    other = server.keys.tenant("imported")
    report = bring_in(other, *exported)
    assert (report.created_count, list(report.lesson_ids)) == (
        len(exported), [found.id for found in exported],
    )  # fmt: skip
    assert export_lessons(other, include_archived=True) == exported
    assert search_lessons(other, "retry after a timeout", limit=1) == ["full"]
    again = bring_in(other, *exported)
    assert (again.created_count, again.unchanged_count) == (0, len(exported))


def test_an_import_that_meets_other_content_fails_skips_or_replaces(api: Api) -> None:
    lesson(api, "Mine", "my words about tea", lesson_id="1")
    theirs = learn_pb.Lesson(id="1", title="Theirs", content="other words about coffee")
    new = learn_pb.Lesson(id="2", title="New", content="words")
    for choice in (0, learn_pb.IMPORT_CONFLICT_FAIL):
        with refused() as failure:
            bring_in(api, new, theirs, on_conflict=choice)
        assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "lessons[1].id")
    assert len(export_lessons(api)) == 1, "all or none"
    skipped = bring_in(api, new, theirs, on_conflict=learn_pb.IMPORT_CONFLICT_SKIP)
    assert (skipped.created_count, skipped.skipped_count) == (1, 1)
    assert get(api, "1").title == "Mine"
    replaced = bring_in(api, new, theirs, on_conflict=learn_pb.IMPORT_CONFLICT_REPLACE)
    assert (replaced.unchanged_count, replaced.replaced_count) == (1, 1)
    assert get(api, "1").title == "Theirs"
    assert search_lessons(api, "coffee", limit=1) == ["1"]
    assert recall(api, "tea", mode=recall_pb.RECALL_MODE_LEXICAL).results == []


def test_an_import_keeps_given_times_and_makes_missing_ids(api: Api) -> None:
    given = learn_pb.Lesson(
        title="t", content="c", created_at=at(1), updated_at=at(2), last_accessed_at=at(3),
        access_count=7,
    )  # fmt: skip
    (lesson_id,) = bring_in(api, given).lesson_ids
    (kept,) = export_lessons(api)
    given.id, given.category, given.importance = lesson_id, "general", 2
    assert len(lesson_id) == 26
    given.etag = kept.etag
    assert kept == given


def test_a_lesson_of_the_last_moment_that_is_kept_can_be_changed_and_archived(api: Api) -> None:
    last = Timestamp(seconds=253_402_300_799, nanos=999_999_000)
    bring_in(api, learn_pb.Lesson(id="old", title="t", content="c", updated_at=last))
    assert update(api, "old", content="changed").updated_at == last
    assert archive(api, "old").content == "changed"
    assert get(api, "old").HasField("archived_at")


def test_one_id_twice_in_an_import_is_one_lesson_or_a_conflict(api: Api) -> None:
    one = learn_pb.Lesson(id="1", title="t", content="c")
    report = bring_in(api, one, one)
    assert (report.created_count, report.unchanged_count) == (1, 1)
    other = learn_pb.Lesson(id="2", title="t", content="other")
    with refused() as failure:
        bring_in(api, other, learn_pb.Lesson(id="2", title="t", content="third"))
    assert failure.field == "lessons[1].id"


def test_lessons_too_long_for_one_answer_are_fewer_than_asked_for(api: Api) -> None:
    context = {"log": "word " * 10_000}
    for n in range(12):
        lesson(api, f"word {n}", "\N{PILE OF POO}" * 60_000, context=context)
    request = learn_pb.SearchLessonsRequest(query="word", limit=100)
    answer = api.learn.SearchLessons(request)
    assert 0 < len(answer.results) < 12
    assert answer.searched_count == 12
    assert answer.ByteSize() < 4 * 1024 * 1024


def with_words(api: Api, words: str, **fields: Any) -> tuple[list[str], int]:
    """The lessons that hold words, over all pages, and how many there are said to be."""
    request = learn_pb.ListLessonsRequest(words=words, **fields)
    found: list[str] = []
    while True:
        page = api.learn.ListLessons(request)
        found += [one.id for one in page.lessons]
        if not page.next_page_token:
            return found, page.total_size
        request.page_token = page.next_page_token


def test_words_are_looked_for_in_all_lessons_however_many_are_newer(api: Api) -> None:
    lesson(api, "Repeat with an Idempotency key", "ÜBERWEISUNG twice is worse", lesson_id="old")
    many = [learn_pb.Lesson(title=f"Lesson {n}", content="of something else") for n in range(1_200)]
    for start in range(0, len(many), 500):
        bring_in(api, *many[start : start + 500])
    assert with_words(api, "idempotency") == (["old"], 1)
    assert with_words(api, "  überweisung IDEMPOTENCY ") == (["old"], 1), "all of them, in any case"
    assert with_words(api, "u\u0308berweisung") == (["old"], 1), "in any of Unicode's forms"
    assert with_words(api, "idempotency else") == ([], 0)
    ids, total = with_words(api, "else something", page_size=500)
    assert (len(ids), len(set(ids)), total) == (1_200, 1_200, 1_200)
    assert with_words(api, "")[1] == 1_201


def test_words_are_looked_for_among_what_passes_the_filter(api: Api) -> None:
    lesson(api, "Retry once", lesson_id="shop", project="shop")
    lesson(api, "Retry twice", lesson_id="bank", project="bank")
    lesson(api, "Retry never", lesson_id="gone", project="bank")
    archive(api, "gone")
    of_bank = learn_pb.LessonFilter(project="bank")
    assert with_words(api, "retry", filter=of_bank) == (["bank"], 1)
    of_bank.include_archived = True
    assert with_words(api, "retry", filter=of_bank)[1] == 2
    assert with_words(api, "100% _ \\", filter=of_bank) == ([], 0), "signs are only signs"


def delete(api: Api, lesson_id: str) -> learn_pb.Lesson:
    request = learn_pb.DeleteLessonRequest(lesson_id=lesson_id)
    return api.learn.DeleteLesson(request).lesson


def test_an_archived_lesson_is_deleted_as_others_are_and_counted_no_more(api: Api) -> None:
    lesson(api, "Tides", lesson_id="archived", tags=["sea"])
    lesson(api, "Waves", lesson_id="active", tags=["sea"])
    archive(api, "archived")
    for gone in ("archived", "active"):
        assert delete(api, gone).id == gone
    request = learn_pb.ListLessonsRequest(filter=learn_pb.LessonFilter(include_archived=True))
    assert api.learn.ListLessons(request) == learn_pb.ListLessonsResponse()
    assert api.learn.ListLessons(learn_pb.ListLessonsRequest()).total_size == 0
    assert export_lessons(api, include_archived=True) == []


def test_a_lesson_under_the_id_of_a_deleted_one_has_no_uses(api: Api) -> None:
    lesson(api, "Tides", lesson_id="it")
    assert get(api, "it").access_count == 1
    delete(api, "it")
    assert lesson(api, "Waves", lesson_id="it").access_count == 0
    assert get(api, "it").access_count == 1
