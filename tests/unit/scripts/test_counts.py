"""Counts of the code's structure, on a small tree of which each is known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from codetree import Code, Module, components
from counts import COUNTS, counted
from pages import ROOT

FILES = {
    "server/house/__init__.py": "",
    "server/house/rooms.py": '''"""Rooms of a house, and who may enter them."""

from __future__ import annotations

from typing import (
    Protocol,
)

from house import doors


class Doors(Protocol):
    """What doors can."""

    def open(self) -> None:
        """Open them."""


class Lamps(Protocol):
    def light(self) -> None: ...


class Windows(Protocol):
    def clean(self) -> None: ...


class Hall:
    def __init__(self, leases):
        self._leases = leases

    def open(self):
        if self._leases is not None and self.wet is None:
            return doors.closed(1, 2, 3, 4, 5, 6, 7, e=8)


class _Hall:
    def light(self):
        pass


class Clean:
    def clean(self): ...


class AlsoClean(Clean): ...
''',
    "server/house/cellar/closing.py": '''"""How doors are closed."""


def closed(a, b, c, d, e, f, g, *, e_):
    with a.open() as memory:
        pass


class _Door:
    """A foreground: named twice is one file that names the Foreground."""

    def named(self, a, b, c, d, e, f, g):
        return field(default_factory=Foreground)
''',
    "server/house/scheduling/turns.py": '"""Where the foreground may be named."""\n'
    + "x = 1\n" * 800,
    "tests/test_doors.py": "class FakeLamps:\n    def light(self): ...\n",
}
TRUTHS = {
    "files": 4,
    "lines": 44 + 14 + 801,
    "statements": 28 + 8 + 801,
    "short_files": 3,
    "lines_of_short_files": 44 + 14,
    "long_files": 1,
    "longest_file": 801,
    "inits": 1,
    "top_entries": 4,
    "largest_folder": 4,
    "ing_modules": 1,
    "question_docstrings": 2,
    "classes": 8,
    "repeated_classes": 1,
    "protocols": 3,
    "needless_protocols": 1,
    "as_memory": 1,
    "module_docstrings": 3,
    "docstrings": 3,
    "undocumented": 12,
    "import_percent": 0.6,
    "cohesive_percent": 100.0,
    "cluster_branches": 1,
    "foreground_files": 1,
    "private_schedulers": 1,
    "long_signatures": 1,
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_each_count_is_what_it_says(tree: Path) -> None:
    assert counted(Code.read(tree, "server/house")) == TRUTHS


def places(tree: Path, name: str) -> list[str]:
    return COUNTS[name][1](Code.read(tree, "server/house")).places


def test_a_count_tells_the_places_of_what_it_counts(tree: Path) -> None:
    assert places(tree, "repeated_classes") == ["Hall ×2: rooms.py:27 Hall, rooms.py:36 _Hall"]
    assert places(tree, "needless_protocols") == ["rooms.py:12 Doors"]
    assert places(tree, "long_signatures") == ["cellar/closing.py:4 closed: 8"]
    assert places(tree, "largest_folder") == ["__init__.py", "cellar", "rooms.py", "scheduling"]
    assert places(tree, "foreground_files") == ["cellar/closing.py: 3"]


ONE = "def one():\n    return 1\n"


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("import os\nLIMIT = 1\n", 0),
        (ONE, 1),
        (ONE + "def two():\n    return 2\n", 2),
        (ONE + "def two():\n    return one()\n", 1),
        (ONE + "class Two:\n    def three(self) -> 'one': ...\n", 1),
        ("LIMIT = 1\ndef one():\n    return LIMIT\ndef two():\n    return LIMIT\n", 1),
        ("import os\ndef one():\n    return os\ndef two():\n    return os\n", 2),
        (ONE + "def two():\n    return three()\ndef three(): ...\ndef four(x=one): ...\n", 2),
        (ONE + "TABLE = {1: one}\ndef two():\n    return TABLE\n", 1),
    ],
)
def test_names_hang_together_that_use_each_other_or_the_same_constant(
    text: str, groups: int
) -> None:
    assert components(Module(Path("house.py"), text)) == groups


def test_two_checkouts_are_counted_side_by_side(tree: Path) -> None:
    command = [sys.executable, ROOT / "scripts/counts.py", "--part", "server/house"]
    command += ["--tree", tree, "--tree", tree]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "| lines (`lines`) | 859 | 859 |" in table
    printed = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(printed.stdout) == {str(tree): TRUTHS}


def test_a_checkout_without_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folder server/house"):
        Code.read(tmp_path, "server/house")
