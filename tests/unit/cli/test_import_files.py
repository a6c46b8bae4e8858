"""`mneme import` of folders, its dry run, and its masking of secrets."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme.client import MnemeClient
from mneme.importing import import_file
from mneme.importing.redaction import Redactor
from support.transcripts.walked import held_in
from support.transcripts.written import WRITERS
from unit.cli.command import mneme
from unit.cli.memory import Memory
from unit.client.scripted import ScriptedServer

CHAT = [{"role": "user", "content": "hello"}]
HOUR_AGO = 1_700_000_000


def write(file: Path, value: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value))
    return file


def test_a_folder_is_walked_and_what_is_no_transcript_is_skipped(
    memory: Memory, tmp_path: Path
) -> None:
    write(tmp_path / "a" / "chat.json", CHAT)
    write(tmp_path / "package.json", {"name": "x"})
    (tmp_path / "notes.txt").write_text("hello")
    result = mneme("import", str(tmp_path))
    assert result.code == 0
    assert "1 file skipped: nothing in them is recognised" in result.err
    assert len(memory.events) == 1


def test_a_named_file_that_is_no_transcript_is_broken(memory: Memory, tmp_path: Path) -> None:
    result = mneme("import", str(write(tmp_path / "package.json", {"name": "x"})))
    assert result.code == 1
    assert "record 1, line 1: not recognised" in result.err


def test_what_another_program_writes_to_a_pipe_is_read_once_and_whole(
    memory: Memory, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write, args=(pipe, CHAT), daemon=True)
    writer.start()
    assert mneme("import", str(pipe)).code == 0
    writer.join(10)
    assert len(memory.events) == 1


def test_the_usual_places_are_found(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    project = tmp_path / "claude" / "projects" / "-tickets"
    project.mkdir(parents=True)
    WRITERS["claude-code"](project, 1)
    WRITERS["codex"](tmp_path / "codex", 1)
    (archived,) = WRITERS["codex"](tmp_path / "old", 2)
    target = tmp_path / "codex" / "archived_sessions" / archived.name
    target.parent.mkdir()
    archived.rename(target)
    result = mneme("import", "--claude-code", "--codex", "--json")
    assert result.code == 0
    (summary,) = result.documents
    formats = Counter(name for file in summary["files"] for name in file["formats"])
    assert formats == {"claude-code": 2, "codex": 2}
    assert summary["sessions"] == 3
    assert {s.agent_id for s in memory.sessions.values()} == {"claude-code", "codex"}
    assert {s.project for s in memory.sessions.values()} == {"tickets"}


def test_nothing_to_import_and_a_folder_that_is_not_there_say_so(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "nothing to import: name files or folders" in mneme("import").err
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "none"))
    result = mneme("import", "--codex")
    assert result.code == 2
    assert f"cannot read {tmp_path / 'none' / 'sessions'}: No such file" in result.err


def test_an_unknown_format_names_the_known_ones(memory: Memory) -> None:
    result = mneme("import", "-", "--format", "xml")
    assert result.code == 2
    assert (
        "known formats: agentlens, anthropic, claude-code, codex, events, inspect-ai, mem0"
        in result.err
    )


def test_a_dry_run_tells_what_each_file_would_make_and_sends_nothing(
    served: ScriptedServer, tmp_path: Path
) -> None:
    chat = write(tmp_path / "chat.json", [*CHAT, {"role": "wizard", "content": "x"}])
    served.stop()
    result = mneme("import", "--dry-run", str(chat))
    assert result.code == 0
    size = chat.stat().st_size
    assert result.lines == [
        f"{chat}: openai, 1 session, 2 events (1 message, 1 custom), 1 not known, {size} bytes",
        "dry run, nothing was sent. 1 record read: 1 session, 2 new events, 0 already there, "
        "0 broken",
    ]
    assert served.seen == []


def test_a_dry_run_counts_what_a_real_one_records(memory: Memory, tmp_path: Path) -> None:
    for form, writer in WRITERS.items():
        folder = tmp_path / form
        folder.mkdir()
        writer(folder, 1)
    rehearsed = mneme("import", "--dry-run", "--json", str(tmp_path)).documents[0]
    real = mneme("import", "--json", str(tmp_path)).documents[0]
    assert real["events"] == len(memory.events)
    same = ("events", "sessions", "records", "lessons", "duplicates", "files", "kept")
    assert {key: rehearsed[key] for key in same} == {key: real[key] for key in same}


def test_lessons_of_an_export_come_in(
    memory: Memory, served: ScriptedServer, tmp_path: Path
) -> None:
    (file,) = WRITERS["agentlens"](tmp_path, 1)
    result = mneme("import", str(file))
    assert "1 lesson, " in result.out
    (lesson,) = served.last("ImportLessons").lessons
    assert (lesson.id, lesson.title, lesson.agent_id) == ("les-1", "T", "seller")


def test_one_call_imports_one_transcript_with_its_subagents(
    memory: Memory, served: ScriptedServer, tmp_path: Path
) -> None:
    (file,) = WRITERS["claude-code"](tmp_path, 1)
    with MnemeClient(served.address, api_key="mn_x") as client:
        totals = import_file(client, file, complete=True)
        again = import_file(client, file, complete=True)
    assert not totals.broken
    assert totals.events == len(memory.events)
    assert (again.events, again.duplicates) == (0, totals.events)
    expected = held_in("claude-code", tmp_path)
    calls = sum(
        event.call_id != "" and event.event_type == "tool_call" for event in memory.events.values()
    )
    assert calls == expected.arguments.total()
    assert list(memory.ended) == [file.stem]


def test_a_session_that_goes_on_is_not_ended_and_its_last_answer_s_usage_waits(
    memory: Memory, tmp_path: Path
) -> None:
    answer = {
        "type": "assistant",
        "uuid": "u1",
        "sessionId": "s1",
        "timestamp": datetime.now(UTC).isoformat(),
        "message": {
            "id": "m1",
            "role": "assistant",
            "content": [{"type": "text", "text": "well"}],
            "stop_reason": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    }
    file = write(tmp_path / "s1.jsonl", answer)
    assert "1 answers whose usage is not known yet" in mneme("import", str(file)).err
    assert (len(memory.events), memory.ended) == (1, {})
    rest = json.loads(json.dumps(answer)) | {"uuid": "u2"}
    rest["message"] |= {"stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 9}}
    file.write_text(f"{json.dumps(answer)}\n{json.dumps(rest)}\n")
    os.utime(file, (HOUR_AGO, HOUR_AGO))
    assert mneme("import", str(file)).code == 0
    assert sum(event.output_tokens for event in memory.events.values()) == 9
    assert list(memory.ended) == ["s1"]


@pytest.mark.parametrize(
    ("age", "asked"), [(timedelta(hours=2), []), (timedelta(0), ["--complete"])]
)
def test_a_session_is_complete_whose_last_line_is_an_hour_old_or_that_is_said_to_be(
    age: timedelta, asked: list[str], memory: Memory, tmp_path: Path
) -> None:
    said = {"role": "user", "content": "Why is the build red?"}
    line = {"type": "user", "uuid": "u1", "sessionId": "s1", "message": said}
    file = write(tmp_path / "s1.jsonl", line | {"timestamp": _at(age)})
    assert mneme("import", str(file), *asked).code == 0
    assert list(memory.ended) == ["s1"]


def _at(age: timedelta) -> str:
    return (datetime.now(UTC) - age).isoformat()


def test_a_result_s_path_never_leads_out_of_its_session_s_folder(
    memory: Memory, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("not yours")
    text = "<persisted-output>\nOutput too large. Full output saved to: ../../secret.txt\n"
    block = {"type": "tool_result", "tool_use_id": "t", "content": text}
    line = {"type": "user", "uuid": "u", "sessionId": "s", "timestamp": "2026-03-01T12:00:00Z"}
    write(tmp_path / "s.jsonl", line | {"message": {"role": "user", "content": [block]}})
    result = mneme("import", str(tmp_path / "s.jsonl"))
    assert "1 results of which only the beginning is left" in result.err
    assert all("not yours" not in str(event) for event in memory.events.values())


SECRETS = {
    "AWS key": "AKIAIOSFODNN7EXAMPLE",
    "GitHub token": "ghp_" + "a1B2" * 9,
    "Anthropic key": "sk-ant-api03-" + "x" * 30,
    "OpenAI key": "sk-proj-" + "y" * 30,
    "Slack token": "xoxb-123456789012-abcdefghij",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklmno",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize(("kind", "secret"), SECRETS.items())
def test_well_known_secrets_are_masked_wherever_they_stand(kind: str, secret: str) -> None:
    masked: Counter[str] = Counter()
    value = {"a": [f"before {secret} after"], secret: {"deep": [secret]}}
    shown = json.dumps(Redactor(masked)(value))
    assert json.dumps(secret)[1:-1] not in shown
    assert shown.count(f"[masked: {kind}]") == masked[kind] == 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("DB_PASSWORD=hunter2hunter2 make", "DB_PASSWORD=[masked: assignment] make"),
        ("DB_PASS=hunter2hunter2 make", "DB_PASS=[masked: assignment] make"),
        ("MYSQL_PWD='hunter2hunter2' mysql", "MYSQL_PWD='[masked: assignment]' mysql"),
        ('{"api_key": "abcdefgh12345"}', '{"api_key": "[masked: named value]"}'),
        ('body: {"api_key": "abcdefgh12345"}', 'body: {"api_key": "[masked: assignment]"}'),
        ('{\\"secret\\": \\"abcdefgh12345\\"}', '{\\"secret\\": \\"[masked: assignment]\\"}'),
        (
            "curl -H 'Authorization: Bearer abcdefghijklmnop.qrs'",
            "curl -H 'Authorization: Bearer [masked: authorization header]'",
        ),
        (
            "postgres://me:s3cr3t@db/x",
            "postgres://me:[masked: password in a URL]@db/x",
        ),
        ("postgres://me:s3@cr3t@db/x", "postgres://me:[masked: password in a URL]@db/x"),
        ("HTTPS://me:s3cr3t@host", "HTTPS://me:[masked: password in a URL]@host"),
        (
            "Authorization: Basic YWRtaW46YWRtaW4=",
            "Authorization: Basic [masked: authorization header]",
        ),
        ("> Cookie: a=b; c=d\n> Accept: */*", "> Cookie: [masked: cookie]\n> Accept: */*"),
        (
            "< set-cookie: sid=s%3A1f; Path=/; HttpOnly",
            "< set-cookie: [masked: cookie]; HttpOnly",
        ),
        ('Cookie: sid="1f"; t=2', "Cookie: [masked: cookie]"),
        ("curl -H 'Cookie: sid=1f' x", "curl -H 'Cookie: [masked: cookie]' x"),
        (r'sent "Cookie: a=b\r\nHost: x"', r'sent "Cookie: [masked: cookie]\r\nHost: x"'),
        (r"{\"Set-Cookie\": \"a=b\"} was sent", r"{\"Set-Cookie\": \"[masked: cookie]\"} was sent"),
        ("Cookie: id=eyJhbGciOiJ9.eyJzdWIiOiIx.abcdefghij; c=d", "Cookie: [masked: cookie]"),
        ("document.cookie = 'sid=1f'", "document.cookie = '[masked: cookie]'"),
        ("Cookie: a small cake", "Cookie: a small cake"),
        ("Set-Cookie: one header for each", "Set-Cookie: one header for each"),
        ("cookie == other; x=1", "cookie == other; x=1"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7", "AWS_SECRET_ACCESS_KEY=[masked: assignment]"),
        ('"SecretAccessKey": "wJalrXUtnFEMI/K7"', '"SecretAccessKey": "[masked: assignment]"'),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAabcd\nefghijklmnopqrst\n[cut]",
            "[masked: private key]\n[cut]",
        ),
        (
            r'curl -d "{\\\"password\\\": \\\"hunter2hunter2\\\"}"',
            r'curl -d "{\\\"password\\\": \\\"[masked: assignment]\\\"}"',
        ),
        ('if "-----BEGIN PRIVATE KEY-----" in text:', 'if "-----BEGIN PRIVATE KEY-----" in text:'),
        ("max_tokens: 123456789", "max_tokens: 123456789"),
        ("token = get_token(request)", "token = get_token(request)"),
        ("the secret of good bread is time", "the secret of good bread is time"),
        ("sk-learn is a library", "sk-learn is a library"),
        ("PWD=/home/ann/compass bypass=everything", "PWD=/home/ann/compass bypass=everything"),
        ("http://host:8080/path", "http://host:8080/path"),
    ],
)
def test_named_secrets_are_masked_and_what_only_looks_like_one_is_not(
    text: str, shown: str
) -> None:
    assert Redactor(Counter())(text) == shown


@pytest.mark.parametrize(("kind", "secret"), SECRETS.items())
def test_a_secret_behind_a_line_break_is_masked_in_json_that_stands_in_a_text_too(
    kind: str, secret: str
) -> None:
    text = "answered: " + json.dumps(f"key:\n{secret}\n")
    assert Redactor(Counter())(text) == f'answered: "key:\\n[masked: {kind}]\\n"'


def test_what_stands_under_a_secret_s_name_in_arguments_that_are_a_text_is_masked() -> None:
    said = {"password": "hunter2", "phrases": [{"passphrase": "correct horse, battery"}], "n": 1}
    text = json.dumps({"body": json.dumps(said)})
    masked = Redactor(Counter())(text)
    assert json.loads(json.loads(masked)["body"]) == {
        "password": "[masked: named value]",
        "phrases": [{"passphrase": "[masked: named value]"}],
        "n": 1,
    }


def test_a_value_under_a_secret_s_name_is_masked() -> None:
    value = {"password": "short", "input_tokens": 5, "nested": {"apiKey": "x"}, "name": "n"}
    value |= {"Cookie": f"id={SECRETS['JWT']}; c=d", "Authorization": f"Bearer {'a1B2' * 9}"}
    assert Redactor(Counter())(value) == {
        "password": "[masked: named value]",
        "input_tokens": 5,
        "nested": {"apiKey": "[masked: named value]"},
        "Cookie": "[masked: named value]",
        "Authorization": "Bearer [masked: authorization header]",
        "name": "n",
    }


@given(st.text(), st.sampled_from(list(SECRETS.values())), st.text())
def test_masking_twice_changes_nothing_more(before: str, secret: str, after: str) -> None:
    once = Redactor(Counter())(f"{before} {secret} {after}")
    assert Redactor(Counter())(once) == once


def test_masked_sessions_have_the_ids_that_they_have_unmasked(
    memory: Memory, tmp_path: Path
) -> None:
    secret = SECRETS["OpenAI key"]
    for form, writer in WRITERS.items():
        folder = tmp_path / form
        folder.mkdir()
        for file in writer(folder, 3):
            if file.suffix != ".zst":
                file.write_text(file.read_text().replace("ticket", secret))
    result = mneme("import", "--redact", str(tmp_path))
    assert "masked: " in result.err
    assert " OpenAI key" in result.err
    assert all(secret not in str(event) for event in memory.events.values())
    assert all(secret not in str(session) for session in memory.sessions.values())
    masked, _ = set(memory.events), memory.events.clear()
    memory.sessions.clear()
    mneme("import", str(tmp_path))
    assert set(memory.events) == masked
    assert any(secret in str(event) for event in memory.events.values())
