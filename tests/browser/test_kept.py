"""What the pages of memories, episodes, reflections, knowledge and skills promise: lists with
filters and search, each thing in full, and the graph of a skill's links."""

from __future__ import annotations

import re

from browser.conftest import Open
from browser.showing import arrive
from mneme import MnemeClient
from playwright.sync_api import expect
from support.server import ADMIN_KEY, LocalServer


def test_a_memory_that_was_replaced_is_shown_when_it_is_asked_for(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/memories")
    arrive(page)
    old = page.get_by_role("link", name="The nightly export runs at 2 o'clock")
    expect(old).to_have_count(0)
    page.get_by_label("Replaced, too").check()
    expect(old).to_contain_text("replaced")
    old.click()
    shown = page.get_by_role("region", name="The memory")
    expect(shown.get_by_text("Replaced by")).to_be_visible()
    shown.locator("dd").get_by_role("link").first.click()
    expect(shown.get_by_text("The nightly export runs at 4 o'clock")).to_be_visible()
    expect(shown.get_by_text("Replaces", exact=True)).to_be_visible()


def test_memories_are_searched_by_meaning(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/memories")
    arrive(page)
    page.get_by_label("Search", exact=True).fill("when does the job at night start")
    expect(page.locator(".rows a").first).to_contain_text("The nightly export runs")


def test_deleting_a_memory_says_first_what_would_go_along(
    filled: LocalServer, open_page: Open
) -> None:
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        client.remember("The office closes at noon on Fridays")
    page = open_page(filled, "/memories")
    arrive(page)
    page.get_by_role("link", name="The office closes at noon").click()
    page.get_by_role("region", name="The memory").get_by_role("button", name="Delete").click()
    asked = page.get_by_role("dialog", name="Delete this memory?")
    expect(asked.get_by_text("This deletes 1 memory, 0 episodes")).to_be_visible()
    asked.get_by_role("button", name="Delete").click()
    expect(asked).to_have_count(0)
    expect(page.get_by_role("link", name="The office closes at noon")).to_have_count(0)


def test_episodes_are_filtered_by_their_outcome_and_shown_in_full(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/episodes")
    arrive(page)
    rows = page.locator(".rows a")
    expect(rows).to_have_count(3)
    page.get_by_label("Outcome").select_option("Failure")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("failed")
    rows.click()
    shown = page.get_by_role("region", name="The episode")
    for heading in ("Input", "Output", "Critique"):
        expect(shown.get_by_role("heading", name=heading)).to_be_visible()


def test_reflections_say_what_comes_again_and_are_filtered(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/reflections")
    arrive(page)
    again = page.locator("section").filter(has_text="What fails again and again")
    expect(again).to_contain_text("Rounding every line by itself")
    expect(page.locator("article")).to_have_count(3)
    page.get_by_label("Outcome").select_option("In part")
    expect(page.locator("article")).to_have_count(1)
    expect(page.locator("article")).to_contain_text("attempt 2")


def test_knowledge_is_asked_for_and_says_how_often_it_held(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/knowledge")
    arrive(page)
    expect(page.get_by_text("Ask, and what is known of it comes.")).to_be_visible()
    page.get_by_label("Ask", exact=True).fill("migrate a large table")
    entry = page.locator("article").first
    expect(entry).to_contain_text("Set lock_timeout first")
    expect(entry).to_contain_text(re.compile("4 of 5 times, at least [0-9]+%"))


def test_a_skills_links_are_a_graph_that_leads_on_and_a_table(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/skills")
    arrive(page)
    page.get_by_role("link", name="Repair a flaky test").click()
    shown = page.get_by_role("region", name="The skill")
    graph = shown.get_by_role("figure", name="How it is linked")
    graph.get_by_text("Show as a table").click()
    expect(graph.get_by_role("row")).to_have_count(3)
    graph.locator("svg").get_by_role("link", name=re.compile("^Quarantine a test")).click()
    expect(shown.get_by_role("heading", name="Quarantine a test")).to_be_visible()
