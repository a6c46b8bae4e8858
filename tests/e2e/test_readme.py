"""What the documentation shows works: its blocks run against a real server, in their order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from mneme_server.settings import Settings, variable_of
from support.server import model_dir, server_process

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "samples/README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
_FIRST_PAGE_LINES = 200
GRPCURL = Path(__file__).with_name("grpcurl.py")

# A block, and the text right after it, which is what it prints.
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
_VARIABLE = re.compile(r"\bMNEME_[A-Z_]+\b")
_DOCUMENTED_ADDRESS = "127.0.0.1:50051"
_DOCUMENTED_URL = "http://127.0.0.1:8080"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page. `prints` is what the page says that it prints; "" if nothing."""

    language: str
    code: str
    line: int
    prints: str


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 1, found[3] or "")
        for found in _BLOCK.finditer(text)
    ]


def with_runnable_blocks() -> list[Path]:
    return [p for p in PAGES if any(b.language in ("sh", "python") for b in blocks_of(p))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder that looks like the repository to the commands, and takes what they write."""
    place = tmp_path / "work"
    place.mkdir()
    (place / ".venv").symlink_to(sys.prefix)
    (place / "samples").symlink_to(ROOT / "samples")
    commands = tmp_path / "bin"
    commands.mkdir()
    shim = commands / "grpcurl"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{GRPCURL}" "$@"\n')
    shim.chmod(0o755)
    return place


@pytest.mark.parametrize("page", with_runnable_blocks(), ids=name_of)
def test_every_block_of_a_page_runs(page: Path, workplace: Path) -> None:
    (workplace.parent / ".curlrc").write_text("fail-with-body\nsilent\nshow-error\n")
    data = workplace.parent / "data"
    with server_process(data, auth="disabled", http_listen="127.0.0.1:0") as server:
        environment = os.environ | {
            "CURL_HOME": str(workplace.parent),
            "MNEME_ADDRESS": server.address,
            "MNEME_MODEL_DIR": str(model_dir()),
            "MNEME_LINGER_SECONDS": "1",
            "PATH": os.pathsep.join(
                [
                    str(workplace.parent / "bin"),
                    sysconfig.get_path("scripts"),
                    os.environ["PATH"],
                ]
            ),
        }
        for block in blocks_of(page):
            if block.language not in ("sh", "python"):
                continue
            code = block.code.replace(_DOCUMENTED_ADDRESS, server.address)
            code = code.replace(_DOCUMENTED_URL, server.http_address)
            interpreter = (
                ["bash", "-euo", "pipefail", "-c"]
                if block.language == "sh"
                else [sys.executable, "-W", "error", "-c"]
            )
            done = subprocess.run(
                [*interpreter, code],
                cwd=workplace,
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            where = f"{name_of(page)}:{block.line}"
            assert done.returncode == 0, f"{where} failed\n{code}\n{done.stdout}{done.stderr}"
            assert "Traceback" not in done.stderr, f"{where} printed\n{done.stderr}"
            assert done.stdout.strip(), f"{where} shows nothing"
            assert done.stdout.endswith(block.prints), f"{where} prints\n{done.stdout}"


def test_the_first_page_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= _FIRST_PAGE_LINES


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        # As a command or in a sentence, always marked as code.
        named = re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(), re.MULTILINE)
        assert set(named) <= targets, name_of(page)


def test_every_link_between_pages_leads_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target, anchor in _LINK.findall(page.read_text()):
            if "://" in target:
                continue
            path = (page.parent / target).resolve() if target else page
            if not path.exists():
                broken.append(f"{name_of(page)} -> {target}")
            elif anchor and anchor not in _anchors(path):
                broken.append(f"{name_of(page)} -> {target}#{anchor}")
    assert broken == []


def test_every_variable_that_a_page_names_is_read_somewhere() -> None:
    read_by_server = {variable_of(name) for name in Settings.model_fields} | {"MNEME_CONFIG"}
    read_by_client = _variables_in("clients/python/mneme") | _variables_in("mcp_adapter/mneme_mcp")
    read_by_tests = {name for name in _variables_in("tests") if name.startswith("MNEME_TEST_")}
    read_by_vite = set(_VARIABLE.findall((ROOT / "dashboard/vite.config.ts").read_text()))
    read = read_by_server | read_by_client | read_by_tests | read_by_vite
    for page in PAGES:
        assert set(_VARIABLE.findall(page.read_text())) <= read, name_of(page)


def _variables_in(folder: str) -> set[str]:
    """Return the variables that the sources of that folder name."""
    sources = (ROOT / folder).rglob("*.py")
    return {name for source in sources for name in _VARIABLE.findall(source.read_text())}


@pytest.mark.parametrize("script", ["reference.py", "apireference.py"])
def test_what_is_generated_of_the_pages_is_up_to_date(script: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / script, "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_error_reason_of_the_api_is_documented() -> None:
    from mneme.v1.errors_pb2 import ErrorReason

    page = (ROOT / "docs/errors.md").read_text()
    for name in ErrorReason.DESCRIPTOR.values_by_name:
        reason = name.removeprefix("ERROR_REASON_")
        if reason != "UNSPECIFIED":
            assert f"| `{reason}` |" in page


@cache
def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in headings}
