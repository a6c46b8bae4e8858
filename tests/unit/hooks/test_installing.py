"""Hooks are added to a host's settings and taken out again; nothing else there changes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme.errors import ConfigurationError
from mneme.hooks.hosts import CLAUDE_CODE, CODEX, HOSTS, Host
from mneme.hooks.installing import install, installed, uninstall
from unit.cli.command import mneme

COMMAND = ["/opt/my tools/python", "-m", "mneme", "--local", "/home/me/.mneme"]
_HOOK = st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=20)})
_ENTRY = st.fixed_dictionaries(
    {"hooks": st.lists(_HOOK, max_size=2)}, optional={"matcher": st.text(max_size=5)}
)
_EVENTS = st.sampled_from([*CLAUDE_CODE.moments, "PostToolUse"])
_SETTINGS = st.fixed_dictionaries(
    {"model": st.text(max_size=5)},
    optional={"hooks": st.dictionaries(_EVENTS, st.lists(_ENTRY, max_size=2), max_size=3)},
)


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_a_host_without_settings_gets_some(host: Host, tmp_path: Path) -> None:
    file = tmp_path / "new" / host.file
    assert install(host, file, COMMAND)
    commands = installed(file)
    assert set(commands) == set(host.moments)
    for event, moment in host.moments.items():
        # Quoted: a host gives the line to a shell.
        assert commands[event].startswith("'/opt/my tools/python' -m mneme --local /home/me/.mneme")
        assert commands[event].endswith(f"hooks run {moment} --host {host.name}")


def test_installing_again_changes_nothing_and_elsewhere_replaces(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    assert install(CLAUDE_CODE, file, COMMAND)
    assert not install(CLAUDE_CODE, file, COMMAND)
    assert install(CLAUDE_CODE, file, ["mneme", "--address", "127.0.0.1:1"])
    assert all("--address 127.0.0.1:1" in line for line in installed(file).values())
    entries = json.loads(file.read_text())["hooks"]["SessionStart"]
    assert len(entries) == 1


def _without_nothing(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings without empty lists of hooks, which say the same as none."""
    hooks = {event: entries for event, entries in settings.get("hooks", {}).items() if entries}
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    return {**rest, **({"hooks": hooks} if hooks else {})}


@given(settings=_SETTINGS)
def test_what_is_taken_out_again_leaves_the_settings_as_they_were(
    settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("host") / "settings.json"
    file.write_text(json.dumps(settings))
    install(CLAUDE_CODE, file, COMMAND)
    with_ours = json.loads(file.read_text())
    assert with_ours["model"] == settings["model"]
    for event, entries in settings.get("hooks", {}).items():
        assert [e for e in with_ours["hooks"].get(event, []) if e in entries] == entries
    assert uninstall(file)
    assert not uninstall(file)
    assert _without_nothing(json.loads(file.read_text())) == _without_nothing(settings)


@pytest.mark.parametrize("text", ["{not json", "[]", '{"hooks": []}', '{"hooks": {"Stop": [1]}}'])
def test_what_is_no_settings_is_refused_and_kept(text: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"settings\.json"):
        install(CLAUDE_CODE, file, COMMAND)
    assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_settings_that_are_a_link_stay_one_and_keep_their_mode(tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.json"
    kept.write_text("{}")
    kept.chmod(0o600)
    link = tmp_path / "settings.json"
    link.symlink_to(kept)
    install(CLAUDE_CODE, link, COMMAND)
    assert link.is_symlink()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert installed(kept)


def test_the_host_s_own_variable_says_where_its_settings_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    assert CODEX.settings() == tmp_path / "hooks.json"
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert CLAUDE_CODE.settings() == tmp_path / ".claude" / "settings.json"
    assert CLAUDE_CODE.settings(Path("/shop")) == Path("/shop/.claude/settings.json")


def test_a_hook_runs_nothing_of_the_folder_in_which_the_agent_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CLAUDE_CODE.variable, str(tmp_path))
    assert mneme("hooks", "install", "claude-code").code == 0
    project = tmp_path / "project"
    project.mkdir()
    for name in ("mneme", "json", "typing"):
        (project / f"{name}.py").write_text("print('of the project')")
    for command in installed(tmp_path / CLAUDE_CODE.file).values():
        ran = subprocess.run(
            command,
            check=False,
            shell=True,
            cwd=project,
            input="no message",
            capture_output=True,
            text=True,
        )
        assert (ran.returncode, ran.stdout) == (1, "")
        assert "a host gives JSON" in ran.stderr
