"""What the page of search promises.

- What is typed is searched by meaning, as one types and when "Search" is clicked.
- A result shows its kind, its text, its score as a bar, and its time; why it has that score is told
  when it is asked for.
- It leads to its source: an event to its place in the session, a session and a lesson to theirs.
- Scope, time range, agent and project narrow it.
"""

from __future__ import annotations

import re

import pytest
from browser.conftest import Open
from browser.showing import arrive
from mneme import MnemeClient
from playwright.sync_api import Locator, Page, expect
from support.server import ADMIN_KEY, LocalServer


def results(page: Page) -> Locator:
    """Return the results, once they are there."""
    found = page.get_by_role("list", name="Results")
    expect(found).to_be_visible()
    arrive(page)
    return found.get_by_role("listitem")


@pytest.fixture(scope="module")
def refused(filled: LocalServer) -> LocalServer:
    """The server, on which a sign-in was refused: in words that a search does not use."""
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        client.start_session(session_id="sign-in", agent_id="doorkeeper", project="portal")
        client.record_events(
            [
                {
                    "session_id": "sign-in",
                    "event_type": "tool_error",
                    "name": "login",
                    "error": "The password was refused: the credentials do not match",
                }
            ],
            wait_indexed=True,
        )
        client.end_session("sign-in", status="error")
    return filled


def test_what_is_typed_is_found_by_its_meaning_when_search_is_clicked(
    refused: LocalServer, open_page: Open
) -> None:
    page = open_page(refused, "/search")
    arrive(page)
    page.get_by_role("searchbox", name="Search").fill("authentication error")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(results(page).filter(has_text="the credentials do not match").first).to_be_visible()


def test_results_come_as_one_types(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/search")
    arrive(page)
    page.get_by_role("searchbox", name="Search").press_sequentially("the lost cents", delay=20)
    expect(page).to_have_url(re.compile(r"/search\?q=the\+lost\+cents$"))
    expect(results(page).first).to_be_visible()


def test_a_result_shows_its_kind_text_score_and_time(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/search?q=large+tables+change+in+steps")
    lesson = results(page).filter(has=page.locator(".badge", has_text="lesson")).first
    expect(lesson).to_contain_text("Large tables change in steps")
    expect(lesson.locator(".score svg")).to_be_visible()
    expect(lesson.locator(".score")).to_have_text(re.compile(r"^Score 0\.[0-9]{2}$"))
    expect(lesson.locator("time")).to_be_visible()


def test_why_a_result_has_its_score_is_told_when_it_is_asked_for(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/search?q=large+tables+change+in+steps")
    first = results(page).first
    expect(first.get_by_role("table")).to_have_count(0)
    first.get_by_role("button", name="Why this score").click()
    terms = first.get_by_role("table", name="How the score came to be")
    expect(terms.get_by_role("row").nth(2)).to_be_visible()


@pytest.mark.parametrize(
    ("scope", "question", "leads_to", "shows"),
    [
        ("event", "a migration that locks a table", r"/sessions/inv-.*\?event=", "Details"),
        ("session", "a migration that locks a table", r"/sessions/inv-[^?]*$", "What happened"),
        ("lesson", "large tables", r"/lessons\?lesson=", "The lesson"),
    ],
)
def test_a_result_leads_to_its_source(
    filled: LocalServer, open_page: Open, scope: str, question: str, leads_to: str, shows: str
) -> None:
    page = open_page(filled, f"/search?scope={scope}&q={question}")
    results(page).first.get_by_role("link").first.click()
    expect(
        page.get_by_role("article", name=shows).or_(page.get_by_role("region", name=shows))
    ).to_be_visible()
    expect(page).to_have_url(re.compile(leads_to))


def test_a_scope_leaves_what_is_of_its_kind(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/search?q=a+flaky+test")
    results(page)
    scopes = page.get_by_role("navigation", name="Where to look")
    for scope, kind in (("Lessons", "lesson"), ("Episodes", "episode"), ("Sessions", "session")):
        scopes.get_by_role("link", name=scope).click()
        expect(scopes.locator("[aria-current=true]")).to_have_text(scope)
        badges = results(page).locator(".result-head .badge")
        expect(badges.filter(has_not_text=kind)).to_have_count(0)
        expect(badges.first).to_have_text(kind)


def test_time_agent_and_project_narrow_it(refused: LocalServer, open_page: Open) -> None:
    page = open_page(refused, "/search?scope=event&q=the+password+was+refused")
    expect(results(page).filter(has_text="inv-").first).to_be_visible()
    # The sample sessions ended yesterday.
    page.get_by_label("Time").select_option("Last hour")
    expect(results(page).filter(has_text="inv-")).to_have_count(0)
    expect(results(page).filter(has_text="sign-in").first).to_be_visible()
    page.get_by_label("Time").select_option("Any time")
    expect(results(page).filter(has_text="inv-").first).to_be_visible()
    page.get_by_label("Agent").fill("doorkeeper")
    expect(results(page).filter(has_text="inv-")).to_have_count(0)
    page.get_by_role("button", name="Clear filter").click()
    page.get_by_label("Project").fill("invoices")
    expect(results(page).filter(has_text="sign-in")).to_have_count(0)


def test_a_search_without_a_result_says_what_to_do(filled: LocalServer, open_page: Open) -> None:
    # A project would leave what is of none: that is of everybody.
    page = open_page(filled, "/search?q=cents&range=days&to=2001-01-01")
    arrive(page)
    expect(page.get_by_text("Nothing passes the filters.")).to_be_visible()
    expect(page.get_by_text("Take a filter away, or widen the time.")).to_be_visible()
