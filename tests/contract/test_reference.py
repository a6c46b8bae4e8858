"""The reference of the API: a page for each service, and everything told in one place."""

from __future__ import annotations

import pkgutil
import re
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import mneme.v1
import pages
import pytest
from pages import write_or_check
from support.api import METHODS
from support.descriptors import services
from support.server import REPOSITORY

TEXTS = {page.name: page.read_text() for page in sorted((REPOSITORY / "docs/api").glob("*.md"))}
SHARED = {"README.md", "messages.md", "enums.md"}
RPCS = sorted(f"{one.containing_service.name}.{one.name}" for one in METHODS.values())
# Hosts show a page of half a megabyte as plain text, or not at all.
LONGEST = 200_000
# A heading, or what an RPC is sent or answers with where only this RPC does.
_TOLD = re.compile(r"^(?:###? (\w+)|\*\*Re\w+:\*\* (?:a stream of )?`(\w+)`)$", re.MULTILINE)
_ROW = re.compile(r"^\| \[\w+\]\((\w+\.md)#(\w+)\) \| (\S.*\.) \| `[a-z ]+` \|", re.MULTILINE)


def test_every_service_has_a_page_that_hosts_render() -> None:
    titles = {
        re.findall(r"^# (.+)$", TEXTS[name], re.MULTILINE)[0] for name in TEXTS.keys() - SHARED
    }
    assert titles == {service.name for service in services()}
    assert max(map(len, TEXTS.values())) < LONGEST


def test_the_index_says_in_a_sentence_what_each_rpc_does_and_leads_to_it() -> None:
    told = {
        heading.replace(".", "").lower(): (name, heading)
        for name, text in TEXTS.items()
        for heading in re.findall(r"^### (\w+\.\w+)$", text, re.MULTILINE)
    }
    led_to = [told[anchor] for page, anchor, _ in _ROW.findall(TEXTS["README.md"])]
    assert sorted(heading for _, heading in led_to) == RPCS
    assert [page for page, _, _ in _ROW.findall(TEXTS["README.md"])] == [page for page, _ in led_to]


def test_every_message_and_enum_is_told_once() -> None:
    modules = [
        import_module(f"mneme.v1.{one.name}") for one in pkgutil.iter_modules(mneme.v1.__path__)
    ]
    files = [module.DESCRIPTOR for module in modules if module.__name__.endswith("_pb2")]
    names = {
        name for file in files for name in (*file.message_types_by_name, *file.enum_types_by_name)
    }
    told = Counter(
        heading or sent for text in TEXTS.values() for heading, sent in _TOLD.findall(text)
    )
    assert {name: told[name] for name in names if told[name] != 1} == {}


def test_what_services_share_is_used_by_several_of_them() -> None:
    """Or by what they share, or by nothing that is sent."""
    for shared in ("messages.md", "enums.md"):
        for name in re.findall(r"^## (\w+)$", TEXTS[shared], re.MULTILINE):
            link = re.compile(rf"\]\(({shared})?#{name.lower()}\)")
            using = [page for page, text in TEXTS.items() if link.search(text)]
            assert len(using) != 1 or using == ["messages.md"], f"only {using} uses {name}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of pages with one that nothing writes any more."""
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["script"])
    (tmp_path / "stale.md").write_text("Of a service that was removed.")
    return tmp_path


def test_a_page_that_nothing_writes_any_more_is_removed_with_what_is_not_a_page_kept(
    folder: Path,
) -> None:
    (folder / "picture.svg").touch()
    assert write_or_check({folder / "new.md": "new"}, owned=folder) == 0
    assert sorted(one.name for one in folder.iterdir()) == ["new.md", "picture.svg"]


def test_a_check_names_a_page_that_nothing_writes_any_more_and_leaves_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["script", "--check"])
    assert write_or_check({}, owned=folder) == 1
    assert "stale.md is out of date: make generate" in capsys.readouterr().err
    assert (folder / "stale.md").exists()
