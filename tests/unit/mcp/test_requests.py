"""What users ask leads to a tool by the words of its description, and of no other's."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mneme_mcp.access import Access
from mneme_mcp.server import MnemeServer
from mneme_mcp.toolsets import DEFAULT, tools_of

TABLE = Path(__file__).parents[2] / "fixtures/mcp_requests.toml"
REQUESTS: list[dict[str, str]] = tomllib.loads(TABLE.read_text())["request"]
SAID = {spec.name: f"{spec.title}. {spec.description}" for spec in tools_of(DEFAULT)}


def test_there_are_forty_requests_and_each_tool_is_what_some_of_them_need() -> None:
    assert len({one["say"] for one in REQUESTS}) == 40
    needed = Counter(one["tool"] for one in REQUESTS)
    assert needed.keys() == SAID.keys()
    assert min(needed.values()) >= 3


@pytest.mark.parametrize("one", REQUESTS, ids=lambda one: one["say"][:40])
def test_a_request_leads_to_its_tool_by_words_that_no_other_tool_has(one: Any) -> None:
    told = {name for name, text in SAID.items() if one["because"] in text}
    assert told == {one["tool"]}


def test_the_instructions_name_the_tools_that_a_model_should_think_of_by_itself() -> None:
    told = MnemeServer(Access()).instructions or ""
    assert {name for name in SAID if name in told} == {
        "mneme_context",
        "mneme_recall",
        "mneme_remember",
    }
    assert told.count(". ") == 2, "three sentences"
