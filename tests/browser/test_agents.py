"""What the page of agents and users promises: who acts and who is served, all that is kept of one
of them, and forgetting it for good after a look at what would go."""

from __future__ import annotations

from browser.conftest import Open
from browser.showing import arrive
from mneme import MnemeClient
from playwright.sync_api import expect
from support.server import ADMIN_KEY, LocalServer


def test_an_agent_is_listed_and_all_that_is_kept_of_it_is_shown(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/agents")
    arrive(page)
    page.get_by_role("table", name="Agents").get_by_role("link", name="builder").click()
    expect(page.get_by_role("heading", name="Builder", level=1)).to_be_visible()
    expect(page.get_by_role("table", name="Sessions").get_by_role("row")).to_have_count(13)
    page.get_by_role("link", name="Insights about it").click()
    expect(page.get_by_label("Agent")).to_have_value("builder")


def test_all_that_is_kept_of_a_user_is_shown(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/agents")
    arrive(page)
    page.get_by_label("A user's id").fill("maintainer")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_role("heading", name="maintainer", level=1)).to_be_visible()
    expect(page.get_by_role("table", name="Sessions").get_by_role("row")).to_have_count(13)
    expect(page.get_by_text("The nightly export runs at 4 o'clock")).to_be_visible()


def test_a_user_is_forgotten_after_a_look_and_the_receipt_is_kept(
    filled: LocalServer, open_page: Open
) -> None:
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        client.remember("Dora prefers trains", user_id="dora")
        page = open_page(filled, "/agents/user/dora")
        arrive(page)
        page.get_by_role("button", name="Show what would be forgotten").click()
        expect(page.get_by_text("This would be forgotten. Nothing has been yet.")).to_be_visible()
        assert len(client.list_memories(filter={"user_id": "dora"}).memories) == 1
        page.get_by_role("button", name="Forget…").click()
        asked = page.get_by_role("dialog", name="Forget dora?")
        expect(asked.get_by_role("button", name="Forget for good")).to_be_disabled()
        asked.get_by_role("textbox").fill("dora")
        asked.get_by_role("button", name="Forget for good").click()
        expect(page.get_by_text("Forgotten", exact=True)).to_be_visible()
        assert len(client.list_memories(filter={"user_id": "dora"}).memories) == 0
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Keep the receipt").click()
    assert downloading.value.suggested_filename.startswith("forgotten-")
    expect(page.get_by_text("Dora prefers trains")).to_have_count(0)
