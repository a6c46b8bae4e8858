"""The guide to a capability of one's own: what it shows is built, as it stands, and used."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.server import ADMIN_KEY, environment

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/guides/extending.md"
LIST = "server/mneme_server/capabilities.py"
STORE = "mneme_server.features.learn.store.tables"
BIN = Path(sysconfig.get_path("scripts"))

_FILE = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"^In `([\w./]+)`.*?^```diff\n (.*?)\n\+(.*?)\n```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^mneme (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the server and its client are made of, with the guide's files and its line."""
    tree = tmp_path_factory.mktemp("extended")
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", "dist")
    for part in ("proto", "third_party", "scripts", "clients/python", "server"):
        shutil.copytree(ROOT / part, tree / part, ignore=ignored)
    for file in ("pyproject.toml", "buf.yaml"):
        shutil.copy(ROOT / file, tree / file)
    guide = GUIDE.read_text()
    for path, content in _FILE.findall(guide):
        target = tree / path
        assert not target.exists(), f"{path} is the project's own"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
    ((path, after, line),) = _LINE.findall(guide)
    listed = (tree / path).read_text()
    assert (path, listed.count(f"{after}\n")) == (LIST, 1)
    (tree / path).write_text(listed.replace(f"{after}\n", f"{after}\n{line}\n"))
    run(tree, sys.executable, "scripts/generate.py")
    return tree


def run(tree: Path, *command: str | Path, code: int = 0, **more: str) -> str:
    done = subprocess.run(
        command, cwd=tree, env=environment_of(tree) | more, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def environment_of(tree: Path) -> dict[str, str]:
    path = [str(tree / part) for part in ("server", "clients/python")]
    return environment(tree / "data", auth="disabled") | {"PYTHONPATH": os.pathsep.join(path)}


@contextmanager
def serving(tree: Path) -> Iterator[str]:
    server = subprocess.Popen(
        [sys.executable, "-m", "mneme_server", "serve"],
        cwd=tree, env=environment_of(tree), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        assert said.startswith("serving on "), said
        yield said.removeprefix("serving on ").strip()
    finally:
        server.terminate()
        assert server.wait(60) == 0
        assert server.stdout is not None
        server.stdout.close()


def test_the_guides_capability_is_called_found_and_there_again_after_a_restart(tree: Path) -> None:
    write, ask = _COMMAND.findall(GUIDE.read_text())
    with serving(tree) as address:
        written = json.loads(_mneme(tree, address, write))
        assert written["note"]["text"] == "The staging database is reset every night"
    with serving(tree) as address:
        (found,) = json.loads(_mneme(tree, address, f"{ask} --json"))["results"]
    assert (found["source_type"], found["source_id"]) == ("note", written["note"]["id"])
    assert found["metadata"] == {"author": "ann"}


def _mneme(tree: Path, address: str, arguments: str) -> str:
    command = f"{sys.executable} -m mneme {arguments}"
    return run(tree, "sh", "-c", command, MNEME_ADDRESS=address, MNEME_API_KEY=ADMIN_KEY)


def test_the_linters_hold_the_new_folder_to_the_rules_without_a_new_line(tree: Path) -> None:
    lint = (BIN / "lint-imports", "--no-cache")
    run(tree, *lint)
    run(tree, BIN / "mypy", "-p", "mneme_server.features.notes", MYPYPATH="server:clients/python")
    folder = tree / "server/mneme_server/features/notes"
    with (folder / "service.py").open("a") as service:
        service.write(f"import grpc\nimport sqlalchemy\nimport {STORE}\n")
    with (folder / "notes.py").open("a") as domain:
        domain.write("import mneme_server.edge.grpc.call\n")
    broken = re.findall(r"^(.*) BROKEN", run(tree, *lint, code=1), re.MULTILINE)
    assert [name.split(";")[0].strip() for name in broken] == [
        "Services, messages and models know no store",
        "A domain knows neither the edge nor storage",
        "Only services, their messages and the edge know gRPC and the wire",
        "Only stores know SQLAlchemy",
    ]
