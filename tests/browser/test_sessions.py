"""What the pages of sessions and events promise.

- Sessions are listed with filters; a project's are a timeline, too.
- One session is a timeline with a pane of details: a call with its arguments and its result side by
  side, errors, cost and tokens; noise is folded away; the chain's verification is shown.
- It is walked by keys. Events are filtered, and followed as they come.
"""

from __future__ import annotations

import re

from browser.conftest import Open
from browser.showing import arrive
from mneme import MnemeClient
from playwright.sync_api import expect
from support.server import ADMIN_KEY, LocalServer

LOCKED = "/sessions/inv-07-migration-lock"


def test_sessions_are_filtered_by_status_label_and_project(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/sessions")
    arrive(page)
    table = page.get_by_role("table", name="Sessions")
    rows = table.get_by_role("row")
    expect(rows).to_have_count(13)
    page.get_by_label("Status").select_option("Failed")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("inv-07-migration-lock")
    expect(rows.nth(1)).to_contain_text("failed")
    page.get_by_role("button", name="Clear filter").click()
    page.get_by_label("Label").fill("incident")
    expect(rows).to_have_count(3)
    page.get_by_role("button", name="Clear filter").click()
    page.get_by_label("Project").fill("no-such")
    expect(page.get_by_text("No session passes these filters.")).to_be_visible()


def test_a_projects_sessions_are_a_timeline(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/sessions?project=invoices")
    arrive(page)
    page.get_by_role("link", name="Timeline").click()
    entries = page.locator("ol.timeline > li")
    expect(entries).to_have_count(12)
    expect(entries.filter(has_text="Resembles").first).to_be_visible()
    entries.first.get_by_role("heading").get_by_role("link").click()
    expect(page.get_by_role("region", name="What happened")).to_be_visible()


def test_a_session_shows_what_it_took_and_that_its_record_is_whole(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, LOCKED)
    arrive(page)
    expect(page.get_by_text("Record verified")).to_be_visible()
    expect(page.get_by_text("24 events hashed anew")).to_be_visible()
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        session = client.get_session("inv-07-migration-lock").session
    tokens = session.total_input_tokens + session.total_output_tokens
    for name, value in (
        ("Tool calls", str(session.tool_call_count)),
        ("Errors", str(session.error_count)),
        ("Tokens", f"{tokens:,}"),
        ("Cost", f"${session.total_cost_usd:.2g}"),
    ):
        one = page.locator(".figure").filter(has=page.get_by_text(name, exact=True))
        expect(one.locator(".figure-value")).to_have_text(value)


def test_a_call_is_shown_with_its_arguments_and_its_result(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, LOCKED)
    arrive(page)
    steps = page.get_by_role("list", name="Steps")
    steps.get_by_role("link").filter(has_text="make migrate ENV=staging").click()
    details = page.get_by_role("article", name="Details")
    expect(details.get_by_role("heading", name="bash: arguments")).to_be_visible()
    expect(details.get_by_role("heading", name="Result")).to_be_visible()
    arguments = details.locator(".sides .part").first.bounding_box()
    result = details.locator(".sides .part").last.bounding_box()
    assert arguments is not None
    assert result is not None
    assert result["x"] > arguments["x"]
    details.get_by_text("The answer").click()
    expect(details.get_by_text("Place in the chain").last).to_be_visible()


def test_noise_is_folded_until_everything_is_asked_for(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, LOCKED)
    arrive(page)
    steps = page.get_by_role("list", name="Steps")
    before = steps.get_by_role("link").count()
    expect(steps.get_by_role("button").first).to_be_visible()
    page.get_by_label("Show everything").check()
    expect(steps.get_by_role("button")).to_have_count(0)
    assert steps.get_by_role("link").count() > before


def test_a_session_is_walked_by_keys(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, LOCKED)
    arrive(page)
    while "event=" not in page.url:  # It listens a moment after it was drawn.
        page.keyboard.press("j")
        page.wait_for_timeout(50)
    first = page.url
    page.keyboard.press("j")
    expect(page).not_to_have_url(first)
    page.keyboard.press("k")
    expect(page).to_have_url(first)
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile(f"{LOCKED}$"))


def test_events_are_filtered_by_type_severity_and_tool(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/events?agent=builder")
    arrive(page)
    badges = page.get_by_role("table", name="Events").locator("tbody .badge")
    page.get_by_label("Type").fill("llm_response")
    expect(badges.first).to_contain_text("llm_response")
    assert {text.split(",")[0] for text in badges.all_inner_texts()} == {"llm_response"}
    page.get_by_label("Type").fill("")
    page.get_by_label("Severity").select_option("Errors")
    expect(page).to_have_url(re.compile("severity=error"))
    arrive(page)
    expect(badges.filter(has_text="message")).to_have_count(0)
    page.get_by_label("Tool or name").fill("bash")
    arrive(page)
    rows = page.get_by_role("table", name="Events").get_by_role("row")
    expect(rows.nth(1)).to_be_visible()


def test_events_are_followed_as_they_come(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/events?live=1")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        client.start_session(session_id="seen-live", agent_id="walker")
        client.record_events(
            [{"session_id": "seen-live", "event_type": "message", "text": "a step of the walk"}]
        )
        client.end_session("seen-live")
    expect(
        page.get_by_role("table", name="Events").get_by_text("a step of the walk")
    ).to_be_visible()
