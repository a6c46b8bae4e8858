"""Every page at two widths, in two themes: axe finds nothing, and what is stored is only text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.conftest import Open
from browser.showing import arrive, check_untouched, signed_in
from browser.stories import fill, hostile, hostile_session, wait_until_indexed
from mneme import MnemeClient
from playwright.sync_api import Page, expect
from support.server import ADMIN_KEY, LocalServer, local_server

ROOT = Path(__file__).parents[2]
AXE = ROOT / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
NAMES = re.findall(
    r'^    name: "(.*)",$', (ROOT / "dashboard/src/pages.ts").read_text(), re.MULTILINE
)
ANALYSES = ("tool_sequences", "cost_analysis", "performance_trends", "session_comparison")
ADDRESSES = [f"/{name}" for name in NAMES]
LEARNING = "/learning/choose-a-fix?state=small"
MORE = [
    *(f"/insights?type={one}" for one in ANALYSES), "/knowledge?q=tables", "/lessons?q=test",
    LEARNING,
]  # fmt: skip


_CUT = """[...document.querySelectorAll(".scroll")]
  .filter((one) => one.clientWidth && one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.querySelector("caption")?.textContent)"""


def check_with_axe(page: Page) -> None:
    page.evaluate(AXE.read_text())
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    told = [
        f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
        for one in found["violations"]
    ]
    assert told == []


@pytest.mark.parametrize("address", ADDRESSES + MORE)
def test_a_page_comes_and_axe_finds_nothing(
    filled: LocalServer, open_page: Open, address: str
) -> None:
    if not AXE.exists():
        pytest.skip("axe is not installed: npm ci in dashboard/")
    page = open_page(filled, address)
    arrive(page)
    check_with_axe(page)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 844})
    check_with_axe(page)
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert not wide, "the page scrolls sideways on a phone"
    assert page.evaluate(_CUT) == [], "tables are cut off on a phone"


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalServer, str]]:
    """A server in which every text is a script, and the id of its session."""
    folder = tmp_path_factory.mktemp("scripted")
    with (
        local_server(folder / "data", http_listen="127.0.0.1:0") as running,
        MnemeClient(running.address, api_key=ADMIN_KEY) as client,
    ):
        fill(client, hostile)
        session = hostile_session(client)
        wait_until_indexed(client)
        yield running, session


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server with sessions that say what has no place to break it."""
    folder = tmp_path_factory.mktemp("unbroken")
    with (
        local_server(folder / "data", http_listen="127.0.0.1:0") as running,
        MnemeClient(running.address, api_key=ADMIN_KEY) as client,
    ):
        for number in range(3):
            session = f"{number}{'s' * 199}"
            client.start_session(session_id=session, agent_id="a" * 200, user_id="u" * 200)
            client.record_events(
                [
                    {"session_id": session, "event_type": "message", "text": "W" * 400},
                    {
                        "session_id": session,
                        "event_type": "tool_error",
                        "name": "t" * 128,
                        "error": "E" * 2000,
                    },
                ]
            )
            client.end_session(session)
        wait_until_indexed(client)
        yield running


@pytest.mark.parametrize("address", ADDRESSES + MORE)
def test_what_is_stored_is_never_more_than_text(
    scripted: tuple[LocalServer, str], open_page: Open, address: str
) -> None:
    server, _ = scripted
    page = open_page(server, address)
    arrive(page)
    check_untouched(page)
    # What opens beside a list, and what is folded.
    for row in page.locator("main .row").all()[:1]:
        row.click()
        arrive(page)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    check_untouched(page)


def test_a_session_of_scripts_is_shown_as_text(
    scripted: tuple[LocalServer, str], open_page: Open
) -> None:
    server, session = scripted
    page = open_page(server, "/sessions")
    arrive(page)
    page.get_by_role("link", name=session).first.click()
    arrive(page)
    check_untouched(page)


def test_an_address_survives_a_reload_and_the_key_leaves_it(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/lessons?category=testing")
    arrive(page)
    expect(page.get_by_text("Never add a sleep to a flaky test")).to_be_visible()
    assert page.url == f"{filled.http_address}/lessons?category=testing"
    page.reload()
    arrive(page)
    expect(page.get_by_text("Never add a sleep to a flaky test")).to_be_visible()
    expect(page.get_by_text("Large tables change in steps")).to_have_count(0)


@pytest.mark.meets_errors
def test_a_key_in_an_address_that_is_put_into_an_open_tab_is_taken_and_leaves_it(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/lessons", key="")
    expect(page.get_by_label("API key")).to_be_visible()
    page.goto(signed_in(filled, "/lessons", ADMIN_KEY))
    arrive(page)
    expect(page.get_by_text("Large tables change in steps")).to_be_visible()
    assert page.url == f"{filled.http_address}/lessons"


@pytest.mark.parametrize("size", ["phone", "desktop"])
def test_texts_without_a_blank_do_not_make_a_page_wider(
    unbroken: LocalServer, open_page: Open, size: str
) -> None:
    page = open_page(unbroken, "/", size=size)
    more = [one for one in MORE if one != LEARNING]
    for address in (*ADDRESSES, *more, "/sessions?view=timeline", f"/search?q={'W' * 400}"):
        page.goto(f"{unbroken.http_address}{address}")
        arrive(page)
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), address


@pytest.mark.meets_errors
def test_whoever_has_no_key_is_asked_for_one(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/lessons", key="")
    field = page.get_by_label("API key")
    expect(field).to_be_visible()
    field.fill("mn_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    field.fill(ADMIN_KEY)
    page.get_by_role("button", name="Sign in").click()
    arrive(page)
    expect(page.get_by_text("Large tables change in steps")).to_be_visible()
