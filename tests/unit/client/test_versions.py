"""The version, and programs whose extra is missing."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import mneme
import mneme_mcp.entry
import mneme_server.entry
import pytest
from mneme._extras import start
from unit.cli.command import mneme as command

ROOT = Path(__file__).parents[3]


def test_each_command_tells_the_version_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--version").out == f"mneme {mneme.__version__}\n"
    for program, entry in (("mneme-server", mneme_server.entry), ("mneme-mcp", mneme_mcp.entry)):
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
