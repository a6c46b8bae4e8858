"""What a command writes is marked as such, for reviews and statistics, and nothing else is."""

from __future__ import annotations

import re
import subprocess
from importlib import import_module
from pathlib import Path

import pytest
from support.recorded import RECORDED
from support.server import REPOSITORY

# What other commands than `make generate` write, whole.
OTHERS = {
    "benchmarks/RESULTS.md",
    "clients/typescript/package-lock.json",
    "dashboard/package-lock.json",
    "docs/demo.svg",
    "docs/guides/agents-day.md",
    "docs/reflect-examples.md",
    "docs/reflect-truth.md",
    *(f"tests/fixtures/recorded/{file.name}" for file in RECORDED.iterdir()),
}


def git(*arguments: str, given: str = "") -> str:
    done = subprocess.run(
        ("git", *arguments),
        cwd=REPOSITORY,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    if "not a git repository" in done.stderr:
        pytest.skip("the sources are in no repository of git's")
    assert done.returncode == 0, done.stderr
    return done.stdout


def marked(attribute: str, files: str) -> dict[str, str]:
    """Return what is said of an attribute where anything is said, by file."""
    said = git("check-attr", "-z", "--stdin", attribute, given=files).split("\0")
    return {
        file: value
        for file, value in zip(said[::3], said[2::3], strict=False)
        if value != "unspecified"
    }


def outputs() -> list[Path]:
    """Return what the scripts say that they write that `make generate` runs."""
    makefile = (REPOSITORY / "Makefile").read_text()
    (recipe,) = re.findall(r"^generate:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    scripts = re.findall(r"scripts/(\w+)\.py", recipe)
    assert scripts
    return [output for script in scripts for output in import_module(script).OUTPUTS]


def test_all_that_commands_write_is_marked_and_nothing_that_people_write() -> None:
    written = git("ls-files", "-z", "--", *map(str, outputs())).split("\0")
    marks = marked("linguist-generated", git("ls-files", "-z"))
    assert set(marks) == {*written, *OTHERS} - {""}
    assert set(marks.values()) == {"set"}


def test_what_shows_no_changes_is_generated() -> None:
    files = git("ls-files", "-z")
    assert marked("diff", files).keys() <= marked("linguist-generated", files).keys()
