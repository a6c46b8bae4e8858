"""The version, and programs whose extra is missing."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import mneme
import mneme_mcp.entry
import mneme_server.commands.entry
import pytest
from mneme._extras import from_wheels, start
from unit.cli.command import mneme as command

ROOT = Path(__file__).parents[3]
_SPEAKING = {".md", ".py", ".sh", ".ts", ".tsx", ".yaml"}


def test_each_command_tells_the_version_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--version").out == f"mneme {mneme.__version__}\n"
    for program, entry in (
        ("mneme-server", mneme_server.commands.entry),
        ("mneme-mcp", mneme_mcp.entry),
    ):
        with pytest.raises(SystemExit, match=r"^0$"):
            entry.main(["--version"])
        assert capsys.readouterr().out == f"{program} {mneme.__version__}\n"


def test_both_clients_have_one_version() -> None:
    package = json.loads((ROOT / "clients/typescript/package.json").read_text())
    assert package["version"] == mneme.__version__


def test_a_program_without_its_libraries_names_the_extra_in_one_breath(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "program_to_start.py").write_text("import no_such_library.part")
    monkeypatch.syspath_prepend(tmp_path)
    code = start("mneme-x", extra="x", module="program_to_start", arguments=[])
    shown = capsys.readouterr()
    assert (code, shown.out) == (1, "")
    assert shown.err.startswith("mneme-x: ")
    assert "extra `x` (No module named 'no_such_library')" in shown.err
    assert f"mneme_grpc-{mneme.__version__}-py3-none-any.whl[x]" in shown.err


def test_a_missing_module_of_our_own_is_a_bug_and_shows_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_program.py").write_text("import mneme_server.no_such_module")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        start("mneme-x", extra="x", module="broken_program", arguments=[])


def test_the_extras_that_messages_name_are_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == "mneme-grpc"
    assert {"server", "mcp", "sentence-transformers"} <= set(project["optional-dependencies"])


def test_nothing_tells_to_install_from_a_registry_what_is_on_none() -> None:
    """By their names alone pip would find nothing, or what somebody else called so."""
    by_name = re.compile(r"(?:install|pip)\b[^.]*[\s'\"=]mneme[-_](?:grpc|minilm)(?![-_\w])")
    told = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in _sources()
        for line in file.read_text().splitlines()
        if by_name.search(line)
    ]
    assert told == []


def _sources() -> Iterator[Path]:
    """What speaks to users: code, and pages."""
    yield from ROOT.glob("*.md")
    for folder in ("server", "clients", "mcp_adapter", "scripts", "dashboard", "deploy", "docs"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in _SPEAKING and "node_modules" not in file.parts:
                yield file


def test_what_a_message_installs_is_a_wheel_that_make_dist_builds() -> None:
    told = from_wheels("server,rl")
    assert "`make dist`" in told
    assert told.endswith(
        f"pip install 'dist/mneme_grpc-{mneme.__version__}-py3-none-any.whl[server,rl]'"
        " dist/mneme_minilm-*.whl"
    )
    assert "mneme_minilm" not in from_wheels("verify")
