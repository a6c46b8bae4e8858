"""What holds for every command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from mneme.cli.app import App
from mneme.cli.commands import COMMANDS as LISTED
from mneme.cli.main import build_whole
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer, failure


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(_commands(build_whole()))
SHARED = {"--address", "--api-key", "--tls", "--ca", "--insecure", "--timeout", "--json"}


def test_the_commands_are_the_ones_that_scripts_rely_on() -> None:
    changes = ["get", "update", "delete"]
    assert {" ".join(path) for path in COMMANDS} == {
        *["call", "recall", "agents", "status", "import", "reflect", "log"],
        *["context", "sleep", "wake-up", "timeline", "profile"],
        *[f"reflections {n}" for n in ["list", "search", "store", "summary", *changes]],
        *[f"knowledge {n}" for n in ["list", "query", "sync", *changes]],
        *[f"lessons {n}" for n in ["list", "create", "search", "archive", "unarchive", *changes]],
        *[f"lessons {n}" for n in ["import", "export"]],
        "remember",
        *[f"memories {n}" for n in ["list", "get", "update", "search", "delete"]],
        *[f"memories {n}" for n in ["import", "export"]],
        *[f"episodes {n}" for n in ["list", "store", "search", *changes]],
        *[f"skills {n}" for n in ["list", "create", "search", *changes]],
        *[f"skills {n}" for n in ["use", "link", "unlink", "consolidate"]],
        *[f"{kind} {n}" for kind in ("episodes", "skills") for n in ["import", "export"]],
        *["forget", "certify", "verify", "audit"],
        *[f"proof {n}" for n in ["head", "keys", "rotate"]],
        *[f"causal {n}" for n in ["add", "list", "query", "discover", *changes]],
        *["causal nightly", "open"],
        *[f"alerts {n}" for n in ["create", "list", "get", "update", "delete"]],
        *[f"alerts {n}" for n in ["history", "test", "try", "secret"]],
        *[f"experiments {n}" for n in ["create", "list", *changes]],
        *[f"experiments {n}" for n in ["assign", "observe", "analyze", "conclude"]],
        *[f"learning {n}" for n in ["algorithms", "list", "show", "start", "predict"]],
        *[f"learning {n}" for n in ["feedback", "metrics", "train", "end", "delete", "import"]],
        "learning download",
        *[f"sessions {n}" for n in ["list", "search", "show", "start", "end", "grade", "grades"]],
        *[f"events {n}" for n in ["list", "record", "watch", "verify"]],
        *[f"admin tenants {n}" for n in ["list", "create", "delete", "move"]],
        *[f"admin keys {n}" for n in ["list", "create", "revoke"]],
        *[f"hooks {n}" for n in ["install", "uninstall", "list", "run"]],
        *["admin backup", "admin restore", "admin reindex"],
        *[f"operations {n}" for n in ["list", "get", "wait", "cancel"]],
    }


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_takes_the_shared_options_and_says_what_it_does(
    path: tuple[str, ...],
) -> None:
    command = COMMANDS[path]
    options = {option for param in command.params for option in param.opts}
    assert options >= SHARED
    assert command.help
    assert mneme(*path, "--help").code == 0


@pytest.mark.parametrize(
    "line",
    [
        ["--json", "--timeout", "7", "--api-key", "mn_a", "recall", "q"],
        ["recall", "q", "--json", "--timeout", "7", "--api-key", "mn_a"],
        [
            "--timeout=99",
            "--api-key=mn_b",
            "--json",
            "recall",
            "--api-key=mn_a",
            "q",
            "--timeout=7",
        ],
    ],
)
def test_shared_options_stand_before_or_after_the_command_and_the_later_wins(
    line: list[str], served: ScriptedServer
) -> None:
    result = mneme(*line)
    assert result.documents[0]["results"] == []
    call = served.calls("Recall")[0]
    assert call.metadata["authorization"] == "Bearer mn_a"
    assert call.seconds_left is not None
    assert call.seconds_left < 8


def test_the_address_option_wins_over_the_environment(
    served: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_ADDRESS", "127.0.0.1:1")
    assert mneme("recall", "q", "--address", served.address).code == 0


def test_without_a_server_the_message_says_where_it_looked_and_how_to_start_one(
    served: ScriptedServer,
) -> None:
    served.stop()
    result = mneme("recall", "q")
    assert result.code == 3
    assert f"no Mneme server answers at {served.address}" in result.err
    assert "`make serve` or `mneme-server serve`" in result.err
    assert "--address or MNEME_ADDRESS" in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("INVALID_ARGUMENT", 2),
        ("UNAUTHENTICATED", 4),
        ("PERMISSION_DENIED", 4),
        ("NOT_FOUND", 5),
        ("ALREADY_EXISTS", 1),
        ("FAILED_PRECONDITION", 1),
        ("RESOURCE_EXHAUSTED", 1),
        ("INTERNAL", 1),
        ("DEADLINE_EXCEEDED", 3),
        ("UNIMPLEMENTED", 1),
    ],
)
def test_each_kind_of_failure_has_its_exit_code(
    code: str, exit_code: int, served: ScriptedServer
) -> None:
    served.on("Recall", lambda request, context: failure(context, code, "no", reason="WHY"))
    result = mneme("recall", "q")
    assert result.code == exit_code
    assert result.err.startswith("mneme: no [WHY]\n")


def test_a_missing_key_is_answered_with_how_to_give_one(served: ScriptedServer) -> None:
    served.on(
        "Recall",
        lambda r, context: failure(context, "UNAUTHENTICATED", "no key", reason="API_KEY_MISSING"),
    )
    assert "Give an API key with --api-key or MNEME_API_KEY." in mneme("recall", "q").err


def test_with_json_an_error_is_json_too(served: ScriptedServer) -> None:
    served.on(
        "Recall",
        lambda request, context: failure(
            context,
            "INVALID_ARGUMENT",
            "wrong",
            reason="OUT_OF_RANGE",
            violations=[("limit", "at most 100", "OUT_OF_RANGE")],
        ),
    )
    result = mneme("recall", "q", "--json")
    error = json.loads(result.err)["error"]
    assert error["code"] == "INVALID_ARGUMENT"
    assert error["reason"] == "OUT_OF_RANGE"
    assert error["violations"][0]["field"] == "limit"
    assert error["exit_code"] == result.code == 2


@pytest.mark.parametrize(
    "line",
    [
        ["recall"],
        ["recall", "q", "--limit", "0"],
        ["recall", "q", "--mode", "fuzzy"],
        ["recall", "q", "--from", "last summer"],
        ["recall", "q", "--no-such-option"],
        ["recall", "what hooks run", "--no-such-option"],
        ["no-such-command"],
        ["recall", "q", "--ca", "/no/such/file"],
        ["recall", "q", "--address", "host:port"],
        ["recall", "q", "--address", "mneme.example.com:1", "--api-key", "mn_k"],
        ["import", "/no/such/file.json"],
    ],
)
def test_wrong_usage_ends_with_2_before_anything_is_sent(
    line: list[str], served: ScriptedServer
) -> None:
    result = mneme(*line)
    assert result.code == 2
    assert result.err
    assert served.seen == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["recall", "q", "--limit", "1000"], "--limit: must be at most 100"),
        (["recall", "q", "--limit", "many"], "--limit: is not a whole number"),
        (["recall"], "QUERY: is required"),
        (["lessons", "create", "--title", "t"], "--content: is required"),
        (["recall", "q", "--mode", "nonsense"], "--mode: 'nonsense' is not one of"),
        (["recall", "q", "--nope"], "--nope"),
        (["nonsense"], "nonsense"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_in_words_of_its_own(
    line: list[str], said: str, served: ScriptedServer
) -> None:
    result = mneme(*line)
    assert result.code == 2
    assert result.err.startswith("mneme: ")
    assert said in result.err
    assert "--help` lists what it takes" in result.err
    for library in ("Value error", "Input should", "Traceback", "╭"):
        assert library not in result.err


def test_wrong_usage_is_json_where_json_is_wanted(served: ScriptedServer) -> None:
    result = mneme("recall", "q", "--limit", "1000", "--json")
    error = json.loads(result.err)["error"]
    assert error["exit_code"] == 2
    assert "--limit: must be at most 100" in error["message"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--success-rate", "11/10"], "success_rate '11/10' is not X/Y"),
        (["--repo", "my app"], "repo 'my app' is not a name"),
        (["--context", ""], "context is missing"),
        (["--context", "caf\udce9"], "context holds what is not Unicode"),
    ],
)
def test_an_entry_of_the_log_that_cannot_be_used_is_refused_in_words(
    options: list[str], said: str, tmp_path: Path
) -> None:
    line = ["--repo", "r", "--type", "error", "--context", "c", "--lesson", "l"]
    result = mneme("log", *line, *options, "--folder", str(tmp_path))
    assert result.code == 2
    assert said in result.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where a folder belongs")
    line = ["--repo", "r", "--type", "error", "--context", "c", "--lesson", "l"]
    result = mneme("log", *line, "--folder", str(tmp_path))
    assert result.code == 1
    assert f"{tmp_path / 'logs'}: " in result.err


def test_a_server_without_tls_says_so_where_tls_is_spoken_to_it(served: ScriptedServer) -> None:
    result = mneme("recall", "q", "--tls")
    assert result.code == 3
    assert "it does not speak TLS: connect without TLS" in result.err
    assert "SSL" not in result.err


def test_a_server_with_tls_is_suspected_where_plaintext_is_ended(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    credentials = grpc.ssl_server_credentials(
        [(certificate.private_key_pem.bytes(), certificate.cert_chain_pems[0].bytes())]
    )
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    server = ScriptedServer().start(credentials)
    try:
        plain = mneme("recall", "q", "--address", server.address)
        assert "does it want TLS?" in plain.err
        foreign = mneme("recall", "q", "--address", server.address, "--tls")
        assert "its certificate is not trusted" in foreign.err
        other = mneme("recall", "q", "--address", server.address, "--ca", str(tmp_path / "ca.pem"))
        assert "its certificate is for another name" in other.err
    finally:
        server.stop()


def test_a_bug_is_not_dressed_up_as_an_error(
    served: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mneme.cli.cells.preview", lambda *a: int("no number"))
    from mneme.messages import RecallResponse, RecallResult

    served.on("Recall", RecallResponse(results=[RecallResult(text="x")]))
    with pytest.raises(ValueError, match="no number"):
        mneme("recall", "q")


def _process(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | changes,
    )


def test_python_m_mneme_is_the_command_line() -> None:
    result = _process("-m", "mneme", "--help")
    assert result.returncode == 0
    assert "Exit codes: 0 done" in " ".join(result.stdout.split())


@pytest.mark.parametrize("line", [["--help"], ["--version"], ["recall", "--help"]])
def test_help_loads_neither_grpc_nor_the_messages(line: list[str]) -> None:
    loaded = _modules_loaded_by(line)
    assert loaded & {"grpc", "google.protobuf", "mneme.client"} == set()


def test_a_line_imports_the_module_of_its_own_command_alone() -> None:
    homes = {f"mneme.cli.{listed.home}" for listed in LISTED.values()}
    assert _modules_loaded_by(["--version"]) & homes == set()
    assert _modules_loaded_by(["--help"]) & homes == set()
    assert _modules_loaded_by(["recall", "--help"]) & homes == {"mneme.cli.recall"}
    assert _modules_loaded_by(["--json", "hooks", "list"]) & homes == {"mneme.cli.hooks"}


def test_the_version_is_shown_without_what_draws_help_and_parses_options() -> None:
    loaded = _modules_loaded_by(["--version"])
    assert loaded & {"rich", "pydantic", "asyncio", "mneme._generated"} == set()


def _modules_loaded_by(line: list[str]) -> set[str]:
    code = (
        "import sys\n"
        "from mneme.cli.main import run\n"
        f"try: run({line!r})\n"
        "except SystemExit: pass\n"
        "print(*sys.modules)"
    )
    return set(_process("-c", code).stdout.splitlines()[-1].split())


@pytest.mark.parametrize("name", LISTED)
def test_the_list_of_commands_says_what_the_help_of_each_says_first(name: str) -> None:
    own = build_whole().commands[name].help
    assert own is not None
    assert LISTED[name].help == own.partition("\n\n")[0].replace("\n", " ")


def test_every_command_that_a_module_adds_to_the_root_is_listed() -> None:
    for listed in LISTED.values():
        if not listed.group:
            root = App()
            import_module(f"mneme.cli.{listed.home}").register(root)
            assert {command.name for command in root.registered_commands} <= LISTED.keys()


def test_the_entry_point_exists_after_installation(served: ScriptedServer) -> None:
    command = Path(sys.executable).with_name("mneme")
    if not command.exists():
        pytest.skip("the package is not installed beside this Python")
    result = subprocess.run(
        [command, "recall", "q", "--json"], capture_output=True, text=True, check=False
    )
    assert json.loads(result.stdout)["results"] == []


def test_output_in_a_locale_without_unicode_still_holds_every_character(
    served: ScriptedServer,
) -> None:
    from mneme.messages import RecallResponse, RecallResult

    served.on("Recall", RecallResponse(results=[RecallResult(text="Grüße", score=1)]))
    result = subprocess.run(
        [sys.executable, "-m", "mneme", "recall", "q"],
        capture_output=True,
        check=False,
        env=os.environ | {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
    )
    assert "Grüße" in result.stdout.decode()
