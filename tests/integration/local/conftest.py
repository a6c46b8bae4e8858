"""Folders for `mneme.local`, whose servers end soon after their participants."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.folders import record_of, wait_until
from support.server import model_dir


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_MODEL_DIR", str(model_dir()))
    monkeypatch.setenv("MNEME_LINGER_SECONDS", "1")


@pytest.fixture
def new_folder(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Names folders; whatever serves them is ended after the test."""
    made: list[Path] = []

    def name(text: str = "memory") -> Path:
        made.append(tmp_path / text)
        return made[-1]

    yield name
    for folder in made:
        if not (folder / "local.json").exists():
            continue
        pid = record_of(folder).get("pid", 0)
        if _serves(pid, folder):
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda pid=pid, folder=folder: not _serves(pid, folder), "it has ended")


@pytest.fixture
def folder(new_folder: Callable[[str], Path]) -> Path:
    """A folder that is not made yet."""
    return new_folder("memory")


def _serves(pid: int, folder: Path) -> bool:
    try:
        return str(folder) in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False
