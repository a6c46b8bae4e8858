"""Knowledge logs as files: nothing is lost between writers, and nothing is read twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mneme.knowledge_log import LogReader, append, entry_of, request_of


def entry(lesson: str = "verify ownership", project: str = "gptcoach2") -> dict[str, object]:
    return entry_of(
        project=project, event_type="error", context="npm install failed", lesson=lesson
    )


_WRITER = """
import sys
from pathlib import Path
from mneme.knowledge_log import append, entry_of
folder, writer = Path(sys.argv[1]), sys.argv[2]
for number in range(50):
    lesson = f"{writer}-{number}"
    append(folder, entry_of(project="r", event_type="error", context="c", lesson=lesson))
"""


def test_a_logged_line_is_json_with_the_fields_of_the_schema(tmp_path: Path) -> None:
    path = append(tmp_path, entry())
    assert path == tmp_path / "logs" / "gptcoach2.jsonl"
    (line,) = path.read_text().splitlines()
    assert set(json.loads(line)) == {
        "timestamp", "agent_id", "repo", "event_type", "context", "command", "lesson",
        "success_rate", "tags",
    }  # fmt: skip


def test_several_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, str(number)]) for number in range(4)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    lessons = [line.entry["lesson"] for line in LogReader(tmp_path).new_lines() if line.entry]
    assert sorted(lessons) == sorted(f"{w}-{n}" for w in range(4) for n in range(50))


def test_a_line_that_a_crash_cut_off_does_not_swallow_the_next_one(tmp_path: Path) -> None:
    path = append(tmp_path, entry("first"))
    with path.open("a") as file:
        file.write('{"repo": "gptcoach2", "less')
    append(tmp_path, entry("second"))
    lines = list(LogReader(tmp_path).new_lines())
    assert [line.entry["lesson"] for line in lines if line.entry] == ["first", "second"]
    assert [(line.number, bool(line.problem)) for line in lines] == [
        (1, False),
        (2, True),
        (3, False),
    ]


def test_a_reader_goes_on_where_it_stopped(tmp_path: Path) -> None:
    reader = LogReader(tmp_path)
    append(tmp_path, entry("first"))
    assert [line.number for line in reader.new_lines()] == [1]
    assert list(reader.new_lines()) == []
    append(tmp_path, entry("second"))
    append(tmp_path, entry("elsewhere", project="other"))
    assert [(line.path.stem, line.number) for line in reader.new_lines()] == [
        ("gptcoach2", 2),
        ("other", 1),
    ]


def test_a_line_that_is_still_being_written_waits(tmp_path: Path) -> None:
    reader = LogReader(tmp_path)
    path = append(tmp_path, entry("first"))
    whole = path.read_text()
    path.write_text(whole[:-1])
    assert list(reader.new_lines()) == []
    path.write_text(whole)
    assert [line.number for line in reader.new_lines()] == [1]


def test_an_entry_becomes_the_request_that_logs_it() -> None:
    fields = request_of(entry())
    assert (fields["project"], fields["type"], fields["lesson"]) == (
        "gptcoach2", "error", "verify ownership",
    )  # fmt: skip
    assert fields["timestamp"].tzinfo is not None
    assert fields["success_rate"] is None


def test_a_success_rate_is_text_in_the_log_and_a_fraction_in_the_request() -> None:
    logged = entry_of(project="r", event_type="error", context="c", lesson="l", success_rate="9/10")
    assert logged["success_rate"] == "9/10"
    assert request_of(logged)["success_rate"] == {"successes": 9, "tries": 10}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"project": "../evil"}, "repo"),
        ({"project": ""}, "repo"),
        ({"event_type": "oops"}, "event_type"),
        ({"context": ""}, "context"),
        ({"lesson": ""}, "lesson"),
        ({"success_rate": "3/2"}, "success_rate"),
        ({"lesson": "caf\udce9"}, "lesson holds what is not Unicode"),
        ({"tags": ["caf\udce9"]}, "tags holds what is not Unicode"),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused_before_it_is_written(
    changed: dict[str, Any], problem: str
) -> None:
    values: dict[str, Any] = {"project": "r", "event_type": "error", "context": "c", "lesson": "l"}
    with pytest.raises(ValueError, match=problem):
        entry_of(**values | changed)


@pytest.mark.parametrize("field", ["project", "event_type", "success_rate"])
def test_of_a_huge_value_only_its_beginning_is_repeated(field: str) -> None:
    values: dict[str, Any] = {"project": "r", "event_type": "error", "context": "c", "lesson": "l"}
    with pytest.raises(ValueError, match="'xxxxx") as refused:
        entry_of(**values | {field: "x" * 50_000})
    assert len(str(refused.value)) < 250
