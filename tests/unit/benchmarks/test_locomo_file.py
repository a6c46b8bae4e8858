import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.locomo_file import FormatError, evidence_ids, read_conversations


def _record(**changes: Any) -> dict[str, Any]:
    return {
        "sample_id": "c1",
        "conversation": {
            "speaker_a": "Ann",
            "session_10_date_time": "9:05 am on 3 June, 2023",
            "session_10": [{"speaker": "Ben", "dia_id": "D10:1", "text": "Later."}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                {"speaker": "Ann", "dia_id": "D2:1", "text": "Hi!"},
                {"speaker": "Ben", "dia_id": "D2:2", "text": "Look", "blip_caption": "a red boat"},
            ],
            "session_3_date_time": "1:00 pm on 9 May, 2023",
        },
        "qa": [
            {"question": "Who?", "evidence": ["D2:1; D10:1", "D"], "category": 1},
            {"question": "What?", "evidence": ["D7:7"], "category": 2},
            {"question": "Why?", "category": 5},
        ],
    } | changes


def _write(folder: Path, content: object) -> Path:
    path = folder / "talks.json"
    path.write_text(json.dumps(content))
    return path


def test_sessions_come_in_the_order_of_their_numbers_with_times_of_turns(tmp_path: Path) -> None:
    (conversation,) = read_conversations(_write(tmp_path, [_record()]))
    assert [session.id for session in conversation.sessions] == ["session_2", "session_10"]
    first, second = conversation.sessions[0].turns
    assert first.at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert (second.at - first.at).total_seconds() == 1
    assert conversation.session_of == {
        "D2:1": "session_2",
        "D2:2": "session_2",
        "D10:1": "session_10",
    }


def test_a_shared_picture_is_in_the_text(tmp_path: Path) -> None:
    (conversation,) = read_conversations(_write(tmp_path, [_record()]))
    texts = [turn.text for turn in conversation.sessions[0].turns]
    assert texts == ["Ann: Hi!", "Ben: Look [shares a red boat]"]


def test_questions_keep_the_evidence_that_is_a_turn_and_the_others_are_counted(
    tmp_path: Path,
) -> None:
    (conversation,) = read_conversations(_write(tmp_path, [_record()]))
    (question,) = conversation.questions
    assert question.evidence == {"D2:1", "D10:1"}
    assert question.category == "1"
    assert conversation.without_evidence == 2


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("D8:6; D9:17", ["D8:6", "D9:17"]),
        ("D1:1,D1:2 D1:3", ["D1:1", "D1:2", "D1:3"]),
        ("", []),
    ],
)
def test_one_evidence_string_may_hold_several_ids(text: str, ids: list[str]) -> None:
    assert evidence_ids(text) == ids


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({}, "a list of conversations"),
        ([{"qa": []}], "conversation 1: KeyError: 'conversation'"),
        ([_record(), _record(qa=[{}])], "conversation 2: KeyError: 'question'"),
    ],
)
def test_another_format_is_refused_with_the_place(
    tmp_path: Path, content: object, complaint: str
) -> None:
    with pytest.raises(FormatError, match=complaint):
        read_conversations(_write(tmp_path, content))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"missing\.json"):
        read_conversations(tmp_path / "missing.json")
