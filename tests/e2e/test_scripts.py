"""The shell scripts of examples/grpcurl do their jobs against a real server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mneme import MnemeClient
from support.server import ADMIN_KEY, ServerProcess, server_process

SCRIPTS = Path(__file__).parents[2] / "examples/grpcurl"
NAMES = {path.name for path in SCRIPTS.glob("*.sh")} - {"call.sh"}
STAND_IN = Path(__file__).with_name("grpcurl.py")

# What a shell or JSON would stumble over.
AWKWARD = 'It said "no"\n\tand C:\\temp & $HOME `id` é 记忆'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with server_process(tmp_path_factory.mktemp("scripts") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `grpcurl` that takes what the real one takes."""
    folder = tmp_path_factory.mktemp("bin")
    shim = folder / "grpcurl"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n')
    shim.chmod(0o755)
    return folder


class Shell:
    """Runs the scripts with one tool and one key, by default the administrator's."""

    def __init__(self, server: ServerProcess, commands: Path, tool: str) -> None:
        path = [str(commands), sysconfig.get_path("scripts"), os.environ["PATH"]]
        self.environment = os.environ | {
            "PATH": os.pathsep.join(path),
            "MNEME_ADDRESS": server.address,
            "MNEME_CURL": tool,
            "MNEME_API_KEY": ADMIN_KEY,
        }

    def run(
        self, script: str, *arguments: str, given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SCRIPTS / script, *arguments],
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def answers(self, script: str, *arguments: str, given: str = "") -> list[dict[str, object]]:
        """The JSON documents that a script prints."""
        done = self.run(script, *arguments, given=given)
        assert done.returncode == 0, f"{script} failed\n{done.stdout}{done.stderr}"
        decoder, rest, found = json.JSONDecoder(), done.stdout.strip(), []
        while rest:
            document, end = decoder.raw_decode(rest)
            found.append(document)
            rest = rest[end:].strip()
        return found

    def answer(self, script: str, *arguments: str, given: str = "") -> dict[str, object]:
        """The one JSON document that a script prints."""
        (document,) = self.answers(script, *arguments, given=given)
        return document


@pytest.fixture(scope="module", params=["buf", "grpcurl"])
def shell(request: pytest.FixtureRequest, server: ServerProcess, commands: Path) -> Shell:
    """The scripts with a key of a tenant of their own, which `tenant.sh` makes."""
    shell = Shell(server, commands, request.param)
    made = shell.answer("tenant.sh", f"by-{request.param}", "scripts")
    shell.environment["MNEME_API_KEY"] = str(made["secret"])
    return shell


def test_recorded_events_are_recalled(shell: Shell) -> None:
    events = (SCRIPTS / "events.jsonl").read_text()
    safe = {"acknowledgedCount": "3"}
    assert shell.answer("record.sh", given=events) == safe | {"recordedCount": "3"}
    assert shell.answer("record.sh", given=events) == safe | {"duplicateCount": "3"}
    answer = shell.answer("recall.sh", "cents are missing on a bill", "2", "event", "lesson")
    results = answer["results"]
    assert isinstance(results, list)
    assert len(results) == 2
    assert "cent" in results[0]["text"]
    assert shell.answer("recall.sh", "anything at all")["outcome"] == "RECALL_OUTCOME_FOUND"


def test_watching_shows_what_was_recorded(shell: Shell) -> None:
    with subprocess.Popen(
        [SCRIPTS / "watch.sh", "0"],
        env=shell.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as watching:
        assert watching.stdout is not None
        shown = ""
        for line in watching.stdout:
            shown += line
            if "demo:3" in line:
                break
        # The script and the tool that it runs.
        os.killpg(watching.pid, 15)
    assert "demo:1" in shown


def test_a_lesson_is_kept_word_by_word_and_found(shell: Shell, server: ServerProcess) -> None:
    kept = shell.answer("learn.sh", "Quotes", AWKWARD, "shell", "HIGH")
    lesson = kept["lesson"]
    assert isinstance(lesson, dict)
    assert lesson["content"] == AWKWARD
    assert lesson["importance"] == "IMPORTANCE_HIGH"
    assert len(shell.answer("lessons.sh")["lessons"]) == 1  # type: ignore[arg-type]
    assert len(shell.answer("lessons.sh", AWKWARD)["results"]) == 1  # type: ignore[arg-type]
    with MnemeClient(server.address, api_key=shell.environment["MNEME_API_KEY"]) as client:
        assert client.get_lesson(lesson["id"]).lesson.content == AWKWARD


def test_experience_is_logged_and_asked_for(shell: Shell) -> None:
    shell.answer("log.sh", "invoices", "ERROR", "make release", "the tag exists", "make release")
    answer = shell.answer("knowledge.sh", "release tag", "invoices")
    assert "the tag exists" in str(answer["markdown"])


def test_sessions_are_analysed_and_handed_over(shell: Shell) -> None:
    assert "errorPatterns" in shell.answer("reflect.sh", "ERROR_PATTERNS", "fixer")
    slept = shell.answer("sleep.sh", "demo", "found the float", 'chose "cents"')
    assert slept["handover"]["progress"] == ["found the float", 'chose "cents"']  # type: ignore[index]
    assert shell.answer("wake-up.sh")["lastHandover"]["sessionId"] == "demo"  # type: ignore[index]
    assert shell.answer("context.sh", "totals off by a cent")["totalSessions"] == "1"


def test_an_administrator_sees_the_server_and_makes_a_backup(
    server: ServerProcess, commands: Path
) -> None:
    for tool in ("buf", "grpcurl"):
        shell = Shell(server, commands, tool)
        health, stats = shell.answers("status.sh")
        assert health == {"status": "SERVING"}
        assert "tenant" in stats
        *_, ended = shell.answers("backup.sh")
        backup: Any = ended["operation"]
        assert Path(backup["response"]["path"]).exists()


def test_a_call_that_fails_ends_the_script_with_a_status_and_the_reason(
    shell: Shell, server: ServerProcess, commands: Path
) -> None:
    done = shell.run("recall.sh", "x", "1000")
    assert done.returncode != 0
    assert "limit" in done.stdout + done.stderr
    shell = Shell(server, commands, "buf")
    shell.environment["MNEME_API_KEY"] = "mn_wrong"
    done = shell.run("status.sh")
    assert done.returncode != 0
    assert "unauthenticated" in (done.stdout + done.stderr).lower()


def test_missing_arguments_are_asked_for(shell: Shell) -> None:
    done = shell.run("learn.sh", "a title alone")
    assert done.returncode == 2
    assert done.stderr == "usage: learn.sh TITLE CONTENT [CATEGORY [IMPORTANCE]]\n"


def test_the_key_is_in_no_list_of_processes(tmp_path: Path) -> None:
    for tool in ("grpcurl", "buf"):
        shim = tmp_path / tool
        shim.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        shim.chmod(0o755)
        environment = os.environ | {
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "MNEME_CURL": tool,
            "MNEME_API_KEY": "mn_secret",
            "MNEME_TLS": "/etc/ca.pem",
        }
        done = subprocess.run(
            [SCRIPTS / "wake-up.sh"], env=environment, capture_output=True, text=True, check=True
        )
        assert "mn_secret" not in done.stdout
        assert "/etc/ca.pem" in done.stdout.splitlines()
        assert "-plaintext" not in done.stdout.splitlines()


def test_the_readme_of_the_scripts_names_each_of_them_and_its_block_runs(shell: Shell) -> None:
    page = (SCRIPTS / "README.md").read_text()
    assert set(re.findall(r"\[`(\S+\.sh)`\]", page)) - {"call.sh"} == NAMES
    (block,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=SCRIPTS,
        env=shell.environment,
        check=True,
        capture_output=True,
        timeout=60,
    )


def test_every_script_has_its_job_in_a_test() -> None:
    tests = Path(__file__).read_text()
    assert {name for name in NAMES if f'"{name}"' not in tests} == set()
