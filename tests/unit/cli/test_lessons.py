from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mneme._core.convert import fill
from mneme.messages import (
    ArchiveLessonResponse,
    CreateLessonResponse,
    DeleteLessonResponse,
    ExportLessonsResponse,
    GetLessonResponse,
    Importance,
    ImportConflict,
    ImportLessonsResponse,
    Lesson,
    ListLessonsResponse,
    SearchLessonsResponse,
    UnarchiveLessonResponse,
    UpdateLessonResponse,
)
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer, failure

LESSON = Lesson(
    id="01LESSON",
    title="Always run tests",
    content="They find\nwhat eyes miss.",
    category="deployment",
    importance=Importance.IMPORTANCE_HIGH,
    tags=["ci"],
    access_count=3,
)


def test_a_list_is_a_table_of_what_matches(served: ScriptedServer) -> None:
    served.on("ListLessons", ListLessonsResponse(lessons=[LESSON]))
    result = mneme(
        "lessons", "list", "--category", "deployment", "--importance", "HIGH", "--tag", "ci"
    )
    assert result.lines[0].split()[:4] == ["LESSON", "CATEGORY", "IMPORTANCE", "TITLE"]
    assert result.lines[1].split()[:3] == ["01LESSON", "deployment", "high"]
    chosen = served.last("ListLessons").filter
    assert chosen.category == "deployment"
    assert chosen.importance == Importance.IMPORTANCE_HIGH
    assert list(chosen.tags) == ["ci"]
    assert not chosen.include_archived


def test_a_list_as_json_is_one_lesson_a_line(served: ScriptedServer) -> None:
    served.on("ListLessons", ListLessonsResponse(lessons=[LESSON, Lesson(id="2")]))
    documents = mneme("lessons", "list", "--json").documents
    assert [d["id"] for d in documents] == ["01LESSON", "2"]
    assert documents[0]["access_count"] == 3
    assert documents[0].keys() == documents[1].keys()


def test_a_list_says_when_there_is_more(served: ScriptedServer) -> None:
    served.on("ListLessons", ListLessonsResponse(lessons=[LESSON] * 3))
    result = mneme("lessons", "list", "--limit", "2", "--json")
    assert len(result.lines) == 2
    assert "There are more than 2; --limit 0 shows all." in result.err


def test_creating_prints_the_id_and_sends_every_field(served: ScriptedServer) -> None:
    served.on("CreateLesson", CreateLessonResponse(lesson=LESSON))
    result = mneme(
        *["lessons", "create", "--title", "T", "--content", "C", "--category", "deployment"],
        *["--importance", "critical", "--agent", "a", "--project", "p", "--tag", "x"],
        *["--context", '{"topics": ["ci"]}', "--source-session", "s", "--source-event", "e"],
        *["--id", "mine"],
    )
    assert result.out == "01LESSON\n"
    request = served.last("CreateLesson")
    assert (request.title, request.content, request.category) == ("T", "C", "deployment")
    assert request.importance == Importance.IMPORTANCE_CRITICAL
    assert (request.agent_id, request.project, list(request.tags)) == ("a", "p", ["x"])
    assert request.context.fields["topics"].list_value.values[0].string_value == "ci"
    assert (request.source_session_id, request.source_event_id) == ("s", "e")
    assert request.lesson_id == "mine"


def test_content_may_come_from_standard_input(served: ScriptedServer) -> None:
    mneme("lessons", "create", "--title", "T", "--content", "-", stdin="many\nlines\n")
    assert served.last("CreateLesson").content == "many\nlines"
    result = mneme("lessons", "create", "--title", "T", "--content", "-", stdin="")
    assert result.code == 2
    assert "standard input is empty" in result.err


def test_json_that_is_no_object_is_wrong_usage(served: ScriptedServer) -> None:
    result = mneme("lessons", "create", "--title", "T", "--content", "C", "--context", "[1]")
    assert result.code == 2
    assert "is not a JSON object" in result.err
    assert served.seen == []


def test_one_lesson_is_shown_whole_with_its_lines(served: ScriptedServer) -> None:
    served.on("GetLesson", GetLessonResponse(lesson=LESSON))
    result = mneme("lessons", "get", "01LESSON")
    assert "Content     They find" in result.out
    assert "            what eyes miss." in result.out
    assert "Used        3 times" in result.out
    assert mneme("lessons", "get", "01LESSON", "--json").documents[0]["title"] == "Always run tests"


def test_a_missing_lesson_has_an_exit_code_of_its_own(served: ScriptedServer) -> None:
    served.on(
        "GetLesson",
        lambda request, context: failure(context, "NOT_FOUND", "no lesson x", reason="NOT_FOUND"),
    )
    result = mneme("lessons", "get", "x")
    assert result.code == 5
    assert result.err == "mneme: no lesson x [NOT_FOUND]\n"


def test_an_update_changes_only_what_is_given(served: ScriptedServer) -> None:
    served.on("UpdateLesson", UpdateLessonResponse(lesson=LESSON))
    assert mneme("lessons", "update", "l", "--content", "new", "--tag", "").out == "updated l\n"
    request = served.last("UpdateLesson")
    assert list(request.update_mask.paths) == ["content", "tags"]
    assert (request.lesson.id, request.lesson.content, list(request.lesson.tags)) == (
        "l",
        "new",
        [],
    )


def test_an_update_of_nothing_is_wrong_usage(served: ScriptedServer) -> None:
    result = mneme("lessons", "update", "l")
    assert result.code == 2
    assert "give at least one field to change" in result.err


def test_archiving_says_so(served: ScriptedServer) -> None:
    served.on("ArchiveLesson", ArchiveLessonResponse(lesson=LESSON))
    assert mneme("lessons", "archive", "l").out == "archived l\n"
    assert served.last("ArchiveLesson").lesson_id == "l"


def test_restoring_brings_an_archived_lesson_back(served: ScriptedServer) -> None:
    served.on("UnarchiveLesson", UnarchiveLessonResponse(lesson=LESSON))
    assert mneme("lessons", "unarchive", "l").out == "restored l\n"
    assert served.last("UnarchiveLesson").lesson_id == "l"


def test_deleting_for_good_asks_before(served: ScriptedServer) -> None:
    served.on("DeleteLesson", DeleteLessonResponse(lesson=LESSON))
    refused = mneme("lessons", "delete", "l", stdin="n\n")
    assert "Delete the lesson l for good?" in refused.err
    assert not served.calls("DeleteLesson")
    assert mneme("lessons", "delete", "l", "--yes", "--etag", "e1").out == "deleted l\n"
    assert served.last("DeleteLesson").etag == "e1"


def test_a_change_takes_an_etag_which_get_shows(served: ScriptedServer) -> None:
    served.on("GetLesson", GetLessonResponse(lesson=Lesson(id="l", etag="e1")))
    assert "Etag    e1" in mneme("lessons", "get", "l").out
    for command, rpc in (("archive", "ArchiveLesson"), ("unarchive", "UnarchiveLesson")):
        mneme("lessons", command, "l", "--etag", "e1")
        assert served.last(rpc).etag == "e1"
    mneme("lessons", "update", "l", "--title", "T", "--etag", "e1")
    request = served.last("UpdateLesson")
    assert (request.lesson.etag, list(request.update_mask.paths)) == ("e1", ["title"])


def test_a_change_of_what_has_changed_says_so(served: ScriptedServer) -> None:
    served.on(
        "ArchiveLesson",
        lambda request, context: failure(context, "ABORTED", "it moved", reason="ETAG_MISMATCH"),
    )
    result = mneme("lessons", "archive", "l", "--etag", "e1")
    assert result.code != 0
    assert result.err == "mneme: it moved [ETAG_MISMATCH]\n"


def test_a_search_shows_scores_and_contents(served: ScriptedServer) -> None:
    answer = SearchLessonsResponse()
    fill(answer, {"results": [{"lesson": LESSON, "score": 0.91}], "searched_count": 4})
    served.on("SearchLessons", answer)
    result = mneme("lessons", "search", "deployment best practices", "--limit", "3")
    assert "0.91" in result.lines[1]
    assert "They find what eyes miss." in result.lines[1]
    assert served.last("SearchLessons").limit == 3
    assert mneme("lessons", "search", "q", "--json").documents[0]["results"][0]["score"] == 0.91


def test_a_search_without_results_says_how_many_were_searched(served: ScriptedServer) -> None:
    served.on("SearchLessons", SearchLessonsResponse(searched_count=1))
    assert mneme("lessons", "search", "q").err == "None of 1 lesson fits.\n"


def test_what_export_writes_import_reads(served: ScriptedServer, tmp_path: Path) -> None:
    lessons = [LESSON, Lesson(id="2", title="T", content="C", archived_at={"seconds": 5})]
    served.on(
        "ExportLessons",
        lambda request, context: (ExportLessonsResponse(lesson=lesson) for lesson in lessons),
    )
    file = tmp_path / "lessons.jsonl"
    exported = mneme("lessons", "export", str(file), "--archived")
    assert exported.err == f"2 lessons written to {file}\n"
    assert served.last("ExportLessons").filter.include_archived
    served.on("ImportLessons", ImportLessonsResponse(created_count=2))
    result = mneme("lessons", "import", str(file), "--on-conflict", "skip")
    assert result.out == "2 lessons created, 0 replaced, 0 unchanged, 0 skipped\n"
    request = served.last("ImportLessons")
    assert list(request.lessons) == lessons
    assert request.on_conflict == ImportConflict.IMPORT_CONFLICT_SKIP


def test_an_export_that_fails_leaves_the_file_of_the_one_before(
    served: ScriptedServer, tmp_path: Path
) -> None:
    def broken(request: Any, context: Any) -> Any:
        yield ExportLessonsResponse(lesson=LESSON)
        failure(context, "INTERNAL", "broken")

    served.on("ExportLessons", broken)
    file = tmp_path / "lessons.jsonl"
    file.write_text("before")
    assert mneme("lessons", "export", str(file)).code == 1
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]
    missing = mneme("lessons", "export", str(tmp_path / "nowhere/lessons.jsonl"))
    assert "nowhere/lessons.jsonl: No such file" in missing.err


def test_export_writes_to_standard_output_by_default(served: ScriptedServer) -> None:
    served.on("ExportLessons", lambda r, c: iter([ExportLessonsResponse(lesson=LESSON)]))
    assert mneme("lessons", "export").documents[0]["id"] == "01LESSON"


def test_many_lessons_are_imported_in_batches(served: ScriptedServer, tmp_path: Path) -> None:
    served.on(
        "ImportLessons",
        lambda request, context: ImportLessonsResponse(created_count=len(request.lessons)),
    )
    file = tmp_path / "lessons.jsonl"
    lines = [json.dumps({"id": f"l{n}", "title": "t", "content": "c"}) for n in range(1100)]
    file.write_text("\n".join(lines))
    assert "1,100 lessons created" in mneme("lessons", "import", str(file)).out
    assert [len(call.request.lessons) for call in served.calls("ImportLessons")] == [500, 500, 100]


def test_a_broken_file_of_lessons_brings_nothing_in(served: ScriptedServer, tmp_path: Path) -> None:
    file = tmp_path / "lessons.jsonl"
    file.write_text('{"title": "t", "content": "c"}\n{"titel": "t"}\n')
    result = mneme("lessons", "import", str(file))
    assert result.code == 2
    assert f"{file}: record 2, line 2: no lesson" in result.err
    assert served.calls("ImportLessons") == []
