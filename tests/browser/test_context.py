"""What the page of wake-up and context promises: exactly the text an agent would get, for a project
or a topic, with the evidence it rests on."""

from __future__ import annotations

import re

from browser.conftest import Open
from browser.showing import arrive
from mneme import MnemeClient
from playwright.sync_api import Page, expect
from support.server import ADMIN_KEY, LocalServer

AGO = re.compile(r"just now|\b[0-9]+ (minute|hour|day|week)s? ago")


def timeless(text: str) -> str:
    """Return a text without how long ago things were: that passes between two calls."""
    return AGO.sub("some time ago", text).strip()


def shown(page: Page) -> str:
    """Return the text that the page shows as the agent's."""
    return timeless(page.locator("pre.prompt").inner_text())


def test_the_wake_up_text_is_the_agents_word_for_word(filled: LocalServer, open_page: Open) -> None:
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        client.sleep(
            "inv-14-logged-out",
            project="invoices",
            progress=["Sessions stay valid while they are used"],
            open_todos=[{"content": "Warn before a session ends"}],
        )
        page = open_page(filled, "/context?project=invoices")
        arrive(page)
        told = shown(page)
        assert told == timeless(client.wake_up(project="invoices").text)
    assert "Sessions stay valid while they are used" in told
    handover = page.locator("section").filter(has_text="The last handover")
    expect(handover.get_by_text("Warn before a session ends")).to_be_visible()
    handover.get_by_role("link", name="Its session").click()
    expect(page.get_by_role("region", name="What happened")).to_be_visible()


def test_the_context_of_a_topic_is_the_agents_word_for_word(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/context")
    arrive(page)
    page.get_by_role("link", name="Context on a topic").click()
    page.get_by_label("Topic").fill("change a large table")
    expect(page.locator("pre.prompt")).to_be_visible()
    arrive(page)
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        prompt = client.get_context("change a large table").text
    assert shown(page) == timeless(prompt)


def test_what_it_rests_on_leads_to_its_place(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/context?view=topic&topic=change+a+large+table")
    arrive(page)
    sessions = page.locator("section").filter(
        has=page.get_by_role("heading", name="Sessions", exact=True)
    )
    expect(sessions.locator(".score").first).to_be_visible()
    sessions.locator("ul.moments a").first.click()
    expect(page.get_by_role("article", name="Details")).to_be_visible()


def test_of_a_project_that_never_began_it_says_what_the_agent_is_told(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/context?project=never-begun")
    arrive(page)
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        told = client.wake_up(project="never-begun").text
    assert shown(page) == timeless(told)
    expect(page.get_by_text("No earlier session resembles it.")).to_be_visible()
