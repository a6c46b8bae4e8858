"""Sets of conversations are read as they are, and judged by what is among the first ten."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.locomo_file import FormatError
from benchmarks.ranking.judging import CUT, ablations, judge, judge_sessions
from benchmarks.ranking.sets import (
    Asked,
    Attempts,
    Said,
    Talk,
    read_attempts,
    read_beam,
    read_facts,
    read_qmsum,
)
from benchmarks.session_questions import session_questions

AT = datetime(2025, 1, 1, tzinfo=UTC)


def write(folder: Path, content: object) -> Path:
    path = folder / "set.json"
    path.write_text(json.dumps(content))
    return path


def test_messages_keep_their_role_their_day_and_their_order(tmp_path: Path) -> None:
    messages = [
        {"id": 0, "session": "1", "day": "March-15-2024", "role": "user", "text": "Which tin?"},
        {"id": 1, "session": "1", "day": "", "role": "assistant", "text": "g" * 100_000},
    ]
    questions = [
        {"kind": "fact", "question": "Which tin did I ask for?", "evidence": [1]},
        {"kind": "abstention", "question": "Who is Ann?", "evidence": []},
    ]
    (talk,) = read_beam(write(tmp_path, [{"id": 2, "messages": messages, "questions": questions}]))
    first, second = talk.events
    assert (first.role, second.role) == ("user", "assistant")
    assert first.at.date() == second.at.date() == datetime(2024, 3, 15, tzinfo=UTC).date()
    assert first.at < second.at
    assert len(second.text) == 65_536
    assert talk.questions == [Asked("Which tin did I ask for?", frozenset({"1"}), "fact")]


def test_a_turn_of_a_meeting_begins_with_its_speaker(tmp_path: Path) -> None:
    meeting = {
        "id": "m",
        "turns": [{"id": 7, "speaker": "PhD A", "text": "Hi ."}],
        "questions": [{"question": "What was said?", "evidence": [7]}],
    }
    (talk,) = read_qmsum(write(tmp_path, [meeting]))
    assert [said.text for said in talk.events] == ["PhD A: Hi ."]
    assert talk.questions[0].evidence == {"7"}


def test_a_users_facts_are_read_with_what_nothing_answers(tmp_path: Path) -> None:
    user = {
        "user": "u1",
        "facts": [{"id": "f1", "date": "2026-01-05", "text": "Ann's plan is Premium."}],
        "questions": [{"q": "what does she pay for", "answers": ["f1"], "kind": "paraphrase"}],
        "near": ["when is Ann's birthday"],
        "foreign": ["who wrote Moby-Dick"],
    }
    (tmp_path / "u1.json").write_text(json.dumps(user))
    (talk,) = read_facts(tmp_path)
    assert talk == Talk(
        "u1",
        [Said("f1", "", "Ann's plan is Premium.", datetime(2026, 1, 5, tzinfo=UTC))],
        [Asked("what does she pay for", frozenset({"f1"}), "paraphrase")],
        near=["when is Ann's birthday"],
        foreign=["who wrote Moby-Dick"],
    )


def test_facts_that_are_no_object_are_refused(tmp_path: Path) -> None:
    (tmp_path / "u1.json").write_text("[]")
    with pytest.raises(FormatError, match="expected an object"):
        read_facts(tmp_path)


def test_tasks_are_read_once_and_runs_are_counted(tmp_path: Path) -> None:
    runs = [
        {"task_id": n // 2, "info": {"task": {"instruction": f"do {n // 2}"}}} for n in range(4)
    ]
    assert read_attempts(write(tmp_path, runs)) == Attempts({0: "do 0", 1: "do 1"}, 4)


def test_what_is_no_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="expected a list"):
        read_beam(write(tmp_path, {}))


def test_shares_are_told_by_kind_and_by_who_said_the_evidence() -> None:
    events = [Said(str(n), "s", "", AT, ("user", "assistant")[n % 2]) for n in range(20)]
    asked = [Asked("?", frozenset({"0", "1", "3"}), "fact"), Asked("?", frozenset({"2"}), "order")]
    found = judge([Talk("t", events, asked)], lambda _tenant, _text: ["3", "2", "0"])
    assert found.mean == pytest.approx((2 / 3 + 1) / 2)
    assert found.by_group() == pytest.approx(
        {"fact": 2 / 3, "order": 1.0, "said by the assistant": 0.5, "said by the user": 1.0}
    )


def test_only_the_first_ten_count() -> None:
    events = [Said(str(n), "s", "", AT) for n in range(20)]
    asked = [Asked("?", frozenset({str(CUT)}))]
    found = judge([Talk("t", events, asked)], lambda _tenant, _text: [str(n) for n in range(20)])
    assert found.mean == 0.0


def test_attempts_count_among_the_first_four_and_answers_by_the_first() -> None:
    right = {question.text: sorted(question.sessions) for question in session_questions()}

    def search(text: str) -> Sequence[str]:
        return right.get(text, ["task-1-trial-0-x", "task-2-trial-0-x", "task-1-trial-3-x"])

    found = judge_sessions(search, Attempts({1: "one", 2: "two"}, 8))
    assert found.attempts == pytest.approx((2 / 4 + 1 / 4) / 2)
    assert sum(found.first) == 20


def test_every_term_is_switched_off_once() -> None:
    for name, weights in ablations():
        assert getattr(weights, name) == 0.0
