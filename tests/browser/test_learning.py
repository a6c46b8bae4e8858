"""What was learned: its curves as tables, and why an action is chosen."""

from __future__ import annotations

from browser.conftest import Open
from browser.showing import arrive
from playwright.sync_api import expect
from support.server import LocalServer


def test_a_learning_session_is_opened_and_its_curves_are_read_as_tables(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/learning")
    arrive(page)
    page.get_by_role("link", name="choose-a-fix").click()
    arrive(page)
    rewards = page.get_by_role("figure", name="Rewards of episodes")
    expect(rewards.locator("canvas")).to_be_visible()
    rewards.get_by_text("Show as a table").click()
    rows = rewards.get_by_role("row")
    # Points of 240 episodes, below a head: the first of them was rewarded with 1.
    expect(rows).to_have_count(201)
    expect(rows.nth(1).get_by_role("cell")).to_have_text(["1", "1", "1"])
    losses = page.get_by_role("figure", name="Loss of episodes")
    losses.get_by_text("Show as a table").click()
    expect(losses.get_by_role("row")).to_have_count(201)


def test_a_learning_session_says_why_it_chooses_and_what_that_is_worth(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/learning/choose-a-fix")
    arrive(page)
    # Of small fixes those that patched were rewarded with 1.
    policy = page.get_by_role("region", name="The policy")
    policy.get_by_role("link", name="small").click()
    expect(page.get_by_role("heading", name="Why patch")).to_be_visible()
    page.get_by_role("link", name="Why not rewrite").click()
    expect(page.get_by_role("heading", name="Why not rewrite")).to_be_visible()
    page.get_by_label("Ask about a state").fill("large")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("heading", name="In large")).to_be_visible()
    expect(page.get_by_role("heading", name="Why rewrite")).to_be_visible()
    page.get_by_role("button", name="Estimate").click()
    # Half of what was done was best; the policy does nothing else.
    expect(page.get_by_text("better", exact=True)).to_be_visible()
    worth = page.get_by_role("figure", name="Reward of an episode")
    expect(worth.get_by_text("The policy, doubly robust").first).to_be_visible()
