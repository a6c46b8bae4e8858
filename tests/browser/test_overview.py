"""What the first page promises: whether all is well, what it costs, and what happened last.

- Errors, success, latency, cost and activity are told at a glance, and narrowed by time, project
  and agent.
- What goes wrong leads to its place; the latest sessions lead to theirs.
- Every chart has its table. Where nothing is kept, it says what to do next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.conftest import Open
from browser.showing import arrive
from mneme import MnemeClient
from playwright.sync_api import Page, expect
from support.server import ADMIN_KEY, LocalServer, local_server


def figure(page: Page, name: str) -> str:
    """Return the value of a figure."""
    of = page.locator(".figure").filter(has=page.get_by_text(name, exact=True))
    return of.locator(".figure-value").inner_text()


def test_the_figures_are_those_of_the_record(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/?agent=builder")
    arrive(page)
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        errors = client.reflect("error_patterns", agent_id="builder").error_patterns.error_count
        spent = client.reflect("cost_analysis", agent_id="builder").cost_analysis.total_cost_usd
    assert figure(page, "Sessions") == "12"
    assert figure(page, "Errors") == str(errors)
    assert figure(page, "Cost") == f"${spent:.2f}"
    assert figure(page, "Succeeded") == "92%"
    assert figure(page, "Median latency") not in ("…", "–")


def test_time_project_and_agent_narrow_it(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/")
    arrive(page)
    page.get_by_label("Project").fill("nothing-of-the-kind")
    expect(page.get_by_text("No session passes these filters.")).to_be_visible()
    page.get_by_role("button", name="Clear filter").click()
    latest = page.get_by_role("table", name="Latest sessions")
    expect(latest.get_by_role("row")).to_have_count(7)
    page.get_by_label("Time", exact=True).select_option("Last hour")
    expect(latest).to_have_count(0)
    expect(page).to_have_url(re.compile("range=1h"))


def test_what_goes_wrong_leads_to_its_place(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/")
    arrive(page)
    wrong = page.locator("section").filter(has_text="What goes wrong")
    wrong.get_by_role("listitem").get_by_role("link").first.click()
    expect(page.get_by_role("article", name="Details")).to_be_visible()


def test_a_session_of_the_latest_opens(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/")
    arrive(page)
    latest = page.get_by_role("table", name="Latest sessions")
    latest.get_by_role("link", name=re.compile("^inv-")).first.click()
    expect(page.get_by_role("region", name="What happened")).to_be_visible()


def test_every_chart_has_its_table(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/")
    arrive(page)
    expect(page.get_by_role("figure", name="Latency over time").locator("canvas")).to_be_visible()
    for chart in page.get_by_role("figure").all():
        chart.get_by_text("Show as a table").click()
        expect(chart.get_by_role("row").nth(1)).to_be_visible()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[LocalServer]:
    """A server that holds nothing. It outlives the pages opened after it: they may still ask."""
    with local_server(tmp_path / "data", http_listen="127.0.0.1:0") as running:
        yield running


def test_where_nothing_is_kept_it_says_what_to_do(empty: LocalServer, open_page: Open) -> None:
    page = open_page(empty, "/")
    arrive(page)
    expect(page.get_by_text("No session was recorded yet.")).to_be_visible()
    expect(page.get_by_text("mneme import samples/invoices/sessions.jsonl")).to_be_visible()
