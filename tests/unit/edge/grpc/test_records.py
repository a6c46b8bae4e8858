"""Messages and records are made of each other by the fields of both, and none is forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from mneme.v1 import learn_service_pb2 as pb
from mneme.v1 import memory_service_pb2
from mneme_server.common.errors import InvalidArgument
from mneme_server.edge.grpc.records import MessageReader, message_writer, named_only
from mneme_server.features.learn.messages import lesson, read_lesson
from mneme_server.features.learn.model import Lesson, LessonImportance
from mneme_server.features.memory.messages import read_memory

_TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)
_TIMES = st.integers(0, 253_402_300_799_999_999)
_LESSONS = st.builds(
    Lesson,
    id=_TEXTS,
    title=_TEXTS,
    content=_TEXTS,
    category=_TEXTS,
    importance=st.sampled_from(LessonImportance),
    agent_id=_TEXTS,
    project=_TEXTS,
    tags=st.frozensets(_TEXTS, max_size=3).map(lambda tags: tuple(sorted(tags))),
    context_json=st.sampled_from(["{}", '{"a":1,"b":["c",null]}']),
    source_session_id=_TEXTS,
    source_event_id=_TEXTS,
    access_count=st.integers(0, 2**31),
    last_accessed_us=st.none() | _TIMES,
    created_us=_TIMES,
    updated_us=_TIMES,
    archived_us=st.none() | _TIMES,
)


@given(_LESSONS)
def test_a_record_comes_back_from_its_message_as_it_was(stored: Lesson) -> None:
    assert read_lesson(lesson(stored)) == stored


@dataclass(frozen=True, slots=True)
class Part:
    """Less than a lesson."""

    id: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """More than what was found."""

    lesson: Lesson
    score: float
    similarity: float | None
    place: int


def test_a_field_of_a_message_that_nothing_fills_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"nothing of Part is mneme\.v1\.Lesson\.content"):
        message_writer(Part, pb.Lesson)(Part("a"))


def test_a_field_of_a_record_that_a_message_does_not_show_is_an_error_unless_it_says_so() -> None:
    one = Found(Lesson("a", "b", "c", "d"), 0.5, None, 3)
    with pytest.raises(TypeError, match="FoundLesson shows no place of Found"):
        message_writer(Found, pb.FoundLesson)(one)
    shown = message_writer(Found, pb.FoundLesson, unshown=["place"])(one)
    assert (shown.lesson.title, shown.score, shown.HasField("similarity")) == ("b", 0.5, False)


def test_a_field_of_a_message_that_nobody_reads_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"nothing of Part is .*content.* of mneme\.v1\.Lesson"):
        MessageReader(pb.Lesson, Part)(pb.Lesson())


def test_a_value_that_cannot_be_kept_is_named_by_its_path() -> None:
    bad: Any = pb.Lesson(importance="IMPORTANCE_HIGH", created_at=Timestamp(seconds=-1))
    with pytest.raises(InvalidArgument, match=r"^lessons\[3\]\.created_at: must be a time"):
        read_lesson(bad, "lessons[3]")


def test_an_update_reads_what_it_names_and_nothing_else() -> None:
    message = pb.Lesson(title="new", content="unread", tags=["b", "a", "b"])
    message.context.update({"why": "so"})
    assert read_lesson.changes(message, ["title", "tags", "context"], "lesson") == {
        "title": "new", "tags": ("a", "b"), "context_json": '{"why":"so"}',
    }  # fmt: skip


def test_an_update_that_names_a_field_without_a_value_clears_it() -> None:
    assert read_lesson.changes(pb.Lesson(), ["project", "tags"], "lesson") == {
        "project": "", "tags": (),
    }  # fmt: skip


def test_an_update_is_checked_by_its_named_fields_alone() -> None:
    """What it does not name may be anything: it is not looked at."""
    given = pb.Lesson(id="a", title="t" * 10_000, project="p", tags=["x"])
    checked = named_only(given, ["id", "project", "category"], title="-", content="-", category="c")
    assert checked == pb.Lesson(id="a", title="-", content="-", project="p")


def test_a_time_that_an_update_names_must_be_set() -> None:
    with pytest.raises(InvalidArgument, match=r"^memory\.since is named in update_mask"):
        read_memory.changes(memory_service_pb2.Memory(), ["since"], "memory")
