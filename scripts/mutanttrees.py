"""Checkouts in which tests run against changed code, and which tests run which function there."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from mutating import MODULE, Edit, Source, functions, insertion

SERVER = "server/mneme_server"
_FIRST_LOADED = f"{SERVER}/__init__.py"
_COVER_LIMIT_S = 900.0
_USERS = (
    "mneme_server.app",
    "support.server",
    "support.rest",
    "hypothesis.strategies",
    "scipy.stats",
)
_NOTES = """
def _note_functions():
    import builtins, os

    noted = set()

    def note(number):
        if number not in noted:
            noted.add(number)
            try:
                file = os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            except OSError:
                return
            os.write(file, b"%d\\n" % number)
            os.close(file)

    builtins._note_function = note


_note_functions()
"""


class Tree:
    """A checkout, set up, whose server is changed while tests run in it.

    Raises:
        ValueError: other files of it are changed than those that a run left so.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._git("checkout", "-q", "--", "server")
        if changed := self._git("status", "--porcelain", "--untracked-files=no"):
            raise ValueError(f"{root} is worked in:\n{changed}")
        self.commit = self._git("rev-parse", "--short=12", "HEAD")
        self._moment = int(time.time())

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    @contextmanager
    def changed(self, file: str, text: bytes) -> Iterator[None]:
        """Have another text in a file for the block."""
        path = self.root / file
        before, stat = path.read_bytes(), path.stat()
        self._moment += 1
        try:
            path.write_bytes(text)
            # Compiled files know a source by its length and second: no two changes share one.
            os.utime(path, (self._moment, self._moment))
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def written_files(root: Path) -> list[str]:
    """Return the files that say what the server does: those of schemas' history aside."""
    below = [path.relative_to(root) for path in sorted((root / SERVER).rglob("*.py"))]
    return [str(path) for path in below if not any("migrations" in p for p in path.parts[:-1])]


class Warm:
    """A process of `warmtests.py` in a tree; to be entered. `users` load what it is to have."""

    def __init__(self, tree: Tree, users: Sequence[str] = _USERS) -> None:
        program = Path(__file__).with_name("warmtests.py")
        self._process = subprocess.Popen(
            [tree.root / ".venv/bin/python", program, *users],
            cwd=tree.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # What is compiled once serves all runs.
            env={name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            # What is told to this process alone is not for the runs of tests.
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        self._answer()
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()

    def run(self, tests: Sequence[str], limit_s: float, *options: str) -> dict[str, Any]:
        """Run tests in a fresh fork; `warmtests` says what is returned."""
        asked = {"tests": tests, "options": options, "limit_s": limit_s}
        assert self._process.stdin is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


class Covering:
    """A tree whose functions note that they run, in whatever process; to be entered."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._noted = tree.root / ".cache" / "noted-functions"
        self._names: list[tuple[str, str]] = []
        self._changes = ExitStack()

    def __enter__(self) -> Self:
        self._noted.parent.mkdir(exist_ok=True)
        with ExitStack() as changes:
            for file in written_files(self._tree.root):
                text = self._with_notes(file, (self._tree.root / file).read_bytes())
                changes.enter_context(self._tree.changed(file, text))
            self._changes = changes.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._changes.close()

    def _with_notes(self, file: str, text: bytes) -> bytes:
        source = Source(text)
        edits: list[Edit] = []
        for name, function in functions(source):
            if edit := insertion(source, function, f"_note_function({len(self._names)})"):
                edits.append(edit)
                self._names.append((file, name))
        for edit in sorted(edits, key=lambda one: -one.start):
            text = edit.apply(text)
        if file == _FIRST_LOADED:
            text += _NOTES.format(path=str(self._noted)).encode()
        self._names.append((file, MODULE))
        return text + f"\n_note_function({len(self._names) - 1})\n".encode()

    def cover(self, warm: Warm, test: str) -> dict[str, Any]:
        """Run a file of tests; return how it went and what of each file it ran."""
        self._noted.write_bytes(b"")
        answer = warm.run([test], _COVER_LIMIT_S)
        ran: dict[str, list[str]] = {}
        for number in sorted(set(self._noted.read_text().split()), key=int):
            file, name = self._names[int(number)]
            ran.setdefault(file, []).append(name)
        return {
            "test": test,
            "outcome": answer["outcome"],
            "seconds": answer["seconds"],
            "functions": ran,
        }


def covered(lines: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[str]]]:
    """Return for each file and function the files of tests that pass and run it, quickest first."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in sorted(lines, key=lambda one: (one["seconds"], one["test"])):
        if line["outcome"] == "passed":
            for file, names in line["functions"].items():
                for name in names:
                    found.setdefault(file, {}).setdefault(name, []).append(line["test"])
    return found
