"""A mutant is tried on a tree of its own, with the tests that run what it changes, and put back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from mutants import Among, covering_tests, report_of, try_mutant
from mutanttrees import Covering, Tree, Warm, covered
from mutating import MODULE, Mutant, Source, changes
from pages import ROOT

FILE = "server/mneme_server/sums.py"
SUMS = '''
def total(values):
    """Add up."""
    result = 0
    while values:
        result += values.pop()
    return result


def largest(values):
    return max(values) if values else 0


def unseen(value):
    return not value


def met_by_chance(value):
    return value + 1
'''
FILES = {
    "server/mneme_server/__init__.py": '"""A server."""\n',
    FILE: SUMS,
    "tests/conftest.py": "import sys\nsys.path.insert(0, 'server')\n",
    "tests/test_in_process.py": (
        "from mneme_server import sums\n\ndef test_total():\n    assert sums.total([1, 2]) == 3\n"
    ),
    "tests/test_of_a_process.py": (
        "import subprocess, sys\n\n"
        "PROGRAM = 'from mneme_server import sums; print(sums.largest([1, 2]))'\n\n"
        "def test_largest():\n"
        "    made = subprocess.run([sys.executable, '-c', PROGRAM], cwd='server', text=True,\n"
        "                          capture_output=True)\n"
        "    assert made.stdout == '2\\n'\n"
    ),
    "tests/test_by_chance.py": (
        "from pathlib import Path\nfrom mneme_server import sums\n\n"
        "def test_once():\n    sums.met_by_chance(1)\n"
        "    if 'value - 1' in Path(sums.__file__).read_text():\n"
        "        Path('tried').open('a').write('x')\n"
        "        assert Path('tried').read_text() != 'x'\n"
    ),
    "tests/test_that_fails.py": (
        "from mneme_server import sums\n\ndef test_it():\n    sums.unseen(1)\n    assert False\n"
    ),
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n",
    ".gitignore": ".venv\n.cache\n__pycache__\ntried\n",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    root = tmp_path_factory.mktemp("tree")
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    python = root / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    author = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "Begin"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    return Tree(root)


@pytest.fixture(scope="module")
def warm(tree: Tree) -> Iterator[Warm]:
    with Warm(tree, users=()) as process:
        yield process


@pytest.fixture(scope="module")
def among(tree: Tree, warm: Warm) -> Mapping[str, Mapping[str, list[str]]]:
    tests = sorted(str(path.relative_to(tree.root)) for path in tree.root.rglob("test_*.py"))
    with Covering(tree) as covering:
        return covered([covering.cover(warm, test) for test in tests])


Try = Callable[[str, str], Mapping[str, object]]


@pytest.fixture
def tried(tree: Tree, warm: Warm, among: Mapping[str, Mapping[str, list[str]]]) -> Try:
    """Tries the mutant of a kind that a function has, and sees that the tree is as before."""

    def run(function: str, kind: str) -> Mapping[str, object]:
        [mutant, *_] = [one for one in of_sums() if (one.function, one.kind) == (function, kind)]
        path = tree.root / FILE
        before = path.read_bytes(), path.stat().st_mtime_ns
        said = try_mutant(tree, warm, mutant, among, Among())
        assert (path.read_bytes(), path.stat().st_mtime_ns) == before
        return said

    return run


def of_sums() -> list[Mutant]:
    return [mutant for mutant, _ in changes(FILE, Source(SUMS.encode()))]


def test_covering_sees_functions_in_the_process_and_in_others(
    among: Mapping[str, Mapping[str, list[str]]],
) -> None:
    assert among[FILE]["total"] == ["tests/test_in_process.py"]
    assert among[FILE]["largest"] == ["tests/test_of_a_process.py"]


def test_tests_that_fail_as_it_is_say_nothing(
    among: Mapping[str, Mapping[str, list[str]]],
) -> None:
    assert "unseen" not in among[FILE]


def test_covering_leaves_the_tree_as_it_was(
    tree: Tree, among: Mapping[str, Mapping[str, list[str]]]
) -> None:
    assert among
    for name, text in FILES.items():
        assert (tree.root / name).read_text() == text


def test_a_test_that_fails_kills(tried: Try) -> None:
    said = tried("total", "arithmetic")
    assert said["status"] == "killed"
    assert said["by"] == "tests/test_in_process.py::test_total"


def test_a_test_of_a_process_of_its_own_kills(tried: Try) -> None:
    assert tried("largest", "if")["status"] == "killed"


def test_what_no_test_minds_survives(tried: Try) -> None:
    assert tried("largest", "constant")["status"] == "survived"


def test_what_no_test_that_passes_runs_is_uncovered(tried: Try) -> None:
    assert tried("unseen", "not") == {"status": "uncovered"}


def test_a_test_that_fails_once_and_not_alone_does_not_kill(tried: Try) -> None:
    said = tried("met_by_chance", "arithmetic")
    assert said["status"] == "survived"
    assert said["by_chance"] == ["tests/test_by_chance.py::test_once"]


def test_a_run_that_does_not_end_is_ended_with_the_processes_that_it_started(
    tree: Tree, warm: Warm, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    test = tree.root / "tests/test_stuck.py"
    test.write_text(
        "import subprocess, sys, time\nfrom pathlib import Path\n\n"
        "def test_it():\n"
        "    program = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "    process = subprocess.Popen(program, start_new_session=True)\n"
        f"    Path({str(started)!r}).write_text(str(process.pid))\n"
        "    time.sleep(600)\n"
    )
    said = warm.run(["tests/test_stuck.py"], 5.0)
    test.unlink()
    assert said["outcome"] == "timeout"
    assert said["test"] == "tests/test_stuck.py::test_it"
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_what_a_killed_run_left_is_put_back(tree: Tree) -> None:
    (tree.root / FILE).write_text("left\n")
    assert Tree(tree.root).commit == tree.commit
    assert (tree.root / FILE).read_text() == SUMS


def test_a_tree_that_somebody_works_in_is_refused(tree: Tree) -> None:
    changed = tree.root / "pyproject.toml"
    before = changed.read_text()
    changed.write_text(before + "\n")
    with pytest.raises(ValueError, match="is worked in"):
        Tree(tree.root)
    changed.write_text(before)


def test_two_changes_of_a_file_differ_in_the_second_that_compiled_files_know_it_by(
    tree: Tree,
) -> None:
    path, moments = tree.root / FILE, []
    for _ in range(2):
        with tree.changed(FILE, b"x = 1\n"):
            moments.append(int(path.stat().st_mtime))
    assert len(set(moments)) == 2


def test_what_stands_in_no_function_is_tried_with_tests_that_run_one_of_its_file() -> None:
    every = Among(("a", "b", "c", "d"))
    ran = {MODULE: ["a", "b", "c", "d"], "f": ["d"], "g": ["b"]}
    assert covering_tests(ran, MODULE, every) == ["b", "d"]
    assert covering_tests({MODULE: ["a"]}, MODULE, every) == ["a"]
    assert covering_tests(ran, "f", every) == ["d"]
    assert covering_tests(ran, MODULE, Among(("d", "a"))) == ["d"]


def test_a_column_of_what_make_test_runs_has_what_the_makefile_says() -> None:
    quick = Among.named("quick", ROOT)
    assert quick.options == ("-m", "not slow")
    assert quick.have("tests/integration/test_events.py")
    assert quick.have("tests/e2e/test_crash.py")
    assert not quick.have("tests/e2e/test_dist.py")
    assert not quick.have("tests/integration/postgres/test_leases.py")


def test_the_page_counts_by_package_and_lists_what_no_test_kills() -> None:
    total, *_, last = of_sums()
    chosen = {"m1": total, "m2": total, "m3": last}
    results = [
        {"column": "before", "id": "m1", "status": "killed"},
        {"column": "before", "id": "m2", "status": "survived"},
        {"column": "before", "id": "m3", "status": "survived"},
        {"column": "after", "id": "m1", "status": "timeout"},
        {"column": "after", "id": "m2", "status": "gone"},
    ]
    page = report_of(chosen, results, {"m3": "it cannot be seen"})
    assert "| sums | 1 of 2, 50% | 1 of 1, 100% |" in page
    before, after = page.split("## after")
    assert "`m2`" in before
    assert f"`{last.function}`, {last.kind}: it cannot be seen" in after
