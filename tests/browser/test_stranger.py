"""The first page to a stranger: what it loads, and how far it is from there to a lesson."""

from __future__ import annotations

from browser.conftest import Open
from browser.showing import arrive
from mneme import MnemeClient
from playwright.sync_api import Locator, Page, expect
from support.server import ADMIN_KEY, LocalServer

FIRST_LOAD_BYTES = 40 * 1024
CLICKS = 9


class Stranger:
    """Someone who reads and clicks, and types no address."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, what: Locator) -> None:
        """Click on something that can be seen, and wait for what comes of it."""
        what.click()
        self.clicks += 1
        arrive(self.page)


def test_a_stranger_finds_the_failed_session_its_error_and_a_lesson_about_it(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/")
    arrive(page)
    stranger = Stranger(page)
    stranger.click(page.get_by_role("link", name="Failed ones"))
    stranger.click(page.get_by_role("link", name="inv-07-migration-lock"))
    expect(page.locator("main").get_by_text("failed", exact=True).first).to_be_visible()
    errors = page.get_by_role("region", name="Errors")
    stranger.click(errors.get_by_role("link", name="wait for a lock"))
    details = page.get_by_role("article", name="Details")
    expect(details.get_by_text("make migrate ENV=production").first).to_be_visible()
    stranger.click(details.get_by_role("link", name="Large tables change in steps"))
    expect(page.get_by_text("set lock_timeout in every migration").first).to_be_visible()
    assert stranger.clicks <= CLICKS


def test_a_stranger_gets_there_by_the_keyboard(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/")
    arrive(page)
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()
    page.keyboard.type("a migration that locks a table")
    results = page.get_by_role("list", name="Results")
    expect(results).to_be_visible()
    place = results.get_by_role("link").first
    place.focus()
    place.press("Enter")
    expect(page.get_by_role("searchbox", name="Search")).to_have_count(0)
    arrive(page)
    expect(page.locator("main:focus, main h1:focus")).to_have_count(1)


def test_a_session_that_runs_is_followed(filled: LocalServer, open_page: Open) -> None:
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        client.start_session(session_id="running", agent_id="builder")
        page = open_page(filled, "/sessions/running")
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        client.record_events(
            [{"session_id": "running", "event_type": "error", "error": "the disk is full"}]
        )
        expect(page.get_by_role("region", name="Errors")).to_contain_text("the disk is full")
        client.end_session("running", status="error")
        expect(page.get_by_text("Live", exact=True)).to_have_count(0)


def test_the_first_load_is_small(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/")
    arrive(page)
    loaded: list[tuple[str, int]] = page.evaluate(
        "performance.getEntriesByType('resource')"
        ".filter((one) => /\\.(js|css)$/.test(one.name))"
        ".map((one) => [one.name, one.encodedBodySize])"
    )
    # Lines are drawn by a library that comes after the page, when there is something to draw.
    first = {name: size for name, size in loaded if "/lines-" not in name}
    assert any("/assets/index-" in name and name.endswith(".js") for name in first)
    assert 0 < sum(first.values()) <= FIRST_LOAD_BYTES, first
