"""A pattern's life in the browser: stored, searched with, judged, and deleted."""

from __future__ import annotations

from browser.conftest import Open
from browser.showing import arrive, check_untouched
from playwright.sync_api import expect
from support.server import LocalServer


def test_a_pattern_is_stored_searched_with_judged_and_deleted(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/patterns")
    arrive(page)
    page.get_by_role("button", name="New pattern").click()
    form = page.get_by_role("dialog", name="New pattern")
    form.get_by_label("Name", exact=True).fill("Times of day")
    form.get_by_label("Expression", exact=True).fill("[0-9]+ o'clock")
    form.get_by_role("button", name="Save").click()

    pattern = page.get_by_role("region", name="The pattern")
    pattern.get_by_role("button", name="Search memories").click()
    expect(pattern.locator("mark")).to_have_text("4 o'clock")
    pattern.get_by_role("button", name="Right").click()
    row = page.get_by_role("link", name="Times of day")
    expect(row).to_contain_text("100% right of 1")
    expect(row).to_contain_text("not used yet")  # Looking is no use: agents make it.
    page.set_viewport_size({"width": 390, "height": 844})
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.set_viewport_size({"width": 1280, "height": 900})
    pattern.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(pattern).to_have_count(0)
    expect(row).to_have_count(0)
    expect(page.get_by_role("link", name="Amount of money")).to_be_visible()
    check_untouched(page)
