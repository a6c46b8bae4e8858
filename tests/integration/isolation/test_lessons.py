"""Tenants do not see each other's lessons."""

from __future__ import annotations

from google.protobuf.field_mask_pb2 import FieldMask
from mneme.v1 import learn_service_pb2 as learn_pb
from support.isolation import OTHER, Checks, World, answered_as_absent, not_found
from support.making import export_lessons, lesson, list_lessons, search_lessons, struct

isolates = Checks()


@isolates("mneme.v1.LearnService/CreateLesson")
def _(world: World) -> None:
    created = lesson(world.ours, "Mine", "something else", lesson_id=OTHER)
    assert (created.id, created.content, created.category) == (OTHER, "something else", "general")


@isolates("mneme.v1.LearnService/GetLesson")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.LearnService/GetLesson",
        lambda asked: learn_pb.GetLessonRequest(lesson_id=asked),
    )
    assert not_found(answer)
    request = learn_pb.GetLessonRequest(lesson_id="lesson")
    counts = [world.ours.learn.GetLesson(request).lesson.access_count for _ in range(2)]
    assert counts == [1, 2]  # And `everything` shows that the other's count stayed.


@isolates("mneme.v1.LearnService/ListLessons")
def _(world: World) -> None:
    mine = world.ours.learn.ListLessons(learn_pb.ListLessonsRequest())
    assert ([found.id for found in mine.lessons], mine.total_size) == (["lesson"], 1)
    for field in ("agent_id", "category", "project", "tags"):
        answer = answered_as_absent(
            world.ours,
            "mneme.v1.LearnService/ListLessons",
            lambda asked, field=field: learn_pb.ListLessonsRequest(filter=_filter(field, asked)),
        )
        assert answer == [""], field


@isolates("mneme.v1.LearnService/SearchLessons")
def _(world: World) -> None:
    assert search_lessons(world.ours, "retry a refused payment once") == ["lesson"]
    request = learn_pb.SearchLessonsRequest(query="retry a refused payment once")
    assert world.ours.learn.SearchLessons(request).searched_count == 1
    for field in ("agent_id", "category", "project", "tags"):
        answer = answered_as_absent(
            world.ours,
            "mneme.v1.LearnService/SearchLessons",
            lambda asked, field=field: learn_pb.SearchLessonsRequest(
                query="retry a refused payment once", filter=_filter(field, asked)
            ),
        )
        assert answer == [""], field


def _filter(field: str, asked: str) -> learn_pb.LessonFilter:
    return learn_pb.LessonFilter(**{field: [asked] if field == "tags" else asked})


@isolates("mneme.v1.LearnService/UpdateLesson")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.LearnService/UpdateLesson",
        lambda asked: learn_pb.UpdateLessonRequest(
            lesson=learn_pb.Lesson(id=asked, title="taken over"),
            update_mask=FieldMask(paths=["title"]),
        ),
    )
    assert not_found(answer)
    world.ours.learn.UpdateLesson(
        learn_pb.UpdateLessonRequest(
            lesson=learn_pb.Lesson(id="lesson", context=struct(ours=True)),
            update_mask=FieldMask(paths=["context"]),
        )
    )


@isolates("mneme.v1.LearnService/ArchiveLesson")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.LearnService/ArchiveLesson",
        lambda asked: learn_pb.ArchiveLessonRequest(lesson_id=asked),
    )
    assert not_found(answer)
    world.ours.learn.ArchiveLesson(learn_pb.ArchiveLessonRequest(lesson_id="lesson"))
    assert [found.id for found in list_lessons(world.theirs)] == [OTHER, "lesson"]


@isolates("mneme.v1.LearnService/UnarchiveLesson")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.LearnService/UnarchiveLesson",
        lambda asked: learn_pb.UnarchiveLessonRequest(lesson_id=asked),
    )
    assert not_found(answer)
    world.ours.learn.ArchiveLesson(learn_pb.ArchiveLessonRequest(lesson_id="lesson"))
    world.ours.learn.UnarchiveLesson(learn_pb.UnarchiveLessonRequest(lesson_id="lesson"))
    assert [found.id for found in list_lessons(world.ours)] == ["lesson"]


@isolates("mneme.v1.LearnService/DeleteLesson")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.LearnService/DeleteLesson",
        lambda asked: learn_pb.DeleteLessonRequest(lesson_id=asked),
    )
    assert not_found(answer)
    world.ours.learn.DeleteLesson(learn_pb.DeleteLessonRequest(lesson_id="lesson"))
    assert list_lessons(world.ours, include_archived=True) == []
    assert [found.id for found in list_lessons(world.theirs)] == [OTHER, "lesson"]


@isolates("mneme.v1.LearnService/ImportLessons")
def _(world: World) -> None:
    brought = [learn_pb.Lesson(id=OTHER, title="Mine", content="something else")]
    answer = world.ours.learn.ImportLessons(
        learn_pb.ImportLessonsRequest(lessons=brought, on_conflict=learn_pb.IMPORT_CONFLICT_REPLACE)
    )
    assert (answer.created_count, answer.replaced_count) == (1, 0)


@isolates("mneme.v1.LearnService/ExportLessons")
def _(world: World) -> None:
    assert [found.id for found in export_lessons(world.ours)] == ["lesson"]
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.LearnService/ExportLessons",
        lambda asked: learn_pb.ExportLessonsRequest(filter=_filter("agent_id", asked)),
    )
    assert answer == []


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    isolates.run(rpc, world)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, over_rest: World) -> None:
    isolates.run(rpc, over_rest)
