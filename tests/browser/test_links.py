"""What is found leads to that very thing."""

from __future__ import annotations

import pytest
from browser.conftest import Open
from browser.showing import arrive
from playwright.sync_api import expect
from support.server import LocalServer

FOUND = [
    ("reflection", "cents on invoices", "Find where cents get lost on invoices"),
    ("knowledge", "migrations on a large table", "Set lock_timeout first"),
    ("skill", "Repair a flaky test", "Repair a flaky test"),
]


@pytest.mark.parametrize(("kind", "words", "heading"), FOUND)
def test_what_is_found_opens_alone(
    filled: LocalServer, open_page: Open, kind: str, words: str, heading: str
) -> None:
    page = open_page(filled, f"/search?scope={kind}&q={words}")
    results = page.get_by_role("list", name="Results")
    expect(results).to_be_visible()
    results.get_by_role("listitem").first.get_by_role("link").first.click()
    expect(page.get_by_role("heading", name=heading, exact=True)).to_have_count(1)
    arrive(page)
    expect(page.locator("main .title")).to_have_count(1)
