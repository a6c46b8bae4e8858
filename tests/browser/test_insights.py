"""What the page of insights promises.

- One of the five analyses is chosen; a time range and an agent narrow what it reads.
- Errors that recur are a table with how often, and when first and last; with examples, which lead
  to their place.
- What follows what is a flow; costs are shown by model and over time; trends are lines, with the
  interval of each slope; recent sessions are compared with earlier ones.
- Each claim links to its evidence, each chart has its table.
"""

from __future__ import annotations

import re

from browser.conftest import Open
from browser.showing import arrive, signed_in
from mneme import MnemeClient
from playwright.sync_api import Browser, Locator, Page, expect
from support.server import ADMIN_KEY, LocalServer


def choose(page: Page, analysis: str) -> None:
    """Choose an analysis, and wait for what it says."""
    page.get_by_role("navigation", name="Analyses").get_by_role("link", name=analysis).click()
    arrive(page)


def as_table(page: Page, chart: str) -> Locator:
    """Return the rows of a chart's table."""
    figure = page.get_by_role("figure", name=chart)
    figure.get_by_text("Show as a table").click()
    return figure.get_by_role("row")


def test_errors_are_a_table_with_how_often_and_when_first_and_last(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/insights")
    arrive(page)
    table = page.get_by_role("table", name="Recurring errors")
    for column in ("Error", "Count", "First seen", "Last seen"):
        expect(table.get_by_role("columnheader", name=column, exact=True)).to_be_visible()
    first = table.get_by_role("row").nth(1)
    expect(first.locator("time")).to_have_count(2)
    expect(first.get_by_role("cell").nth(2)).to_have_text(re.compile("^[1-9][0-9]*$"))


def test_an_error_has_examples_which_lead_to_their_place(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/insights")
    arrive(page)
    kind = page.locator("details.pattern").first
    kind.locator("summary").click()
    kind.get_by_role("listitem").get_by_role("link", name=re.compile("^inv-")).first.click()
    expect(page.get_by_role("article", name="Details")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/sessions/inv-.*\?event="))


def test_what_follows_what_is_a_flow_with_its_table(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/insights")
    arrive(page)
    choose(page, "Tool sequences")
    flow = page.get_by_role("figure", name="What follows what")
    expect(flow.locator("svg path").first).to_be_attached()
    expect(as_table(page, "What follows what").nth(1).get_by_role("cell")).to_have_count(3)
    expect(page.get_by_role("table", name="Frequent sequences")).to_be_visible()


def test_costs_are_shown_by_model_and_over_time(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/insights")
    arrive(page)
    choose(page, "Costs")
    models = as_table(page, "Cost by model")
    expect(models.filter(has_text="coder-large")).to_contain_text("$")
    expect(
        page.get_by_role("figure", name="Cost over time").locator("svg rect").first
    ).to_be_attached()
    expect(as_table(page, "Cost over time").nth(1)).to_contain_text("$")


def test_trends_are_lines_and_each_slope_has_its_interval(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/insights")
    arrive(page)
    choose(page, "Trends")
    expect(
        page.get_by_role("figure", name="Share of sessions that succeed").locator("canvas")
    ).to_be_visible()
    slopes = page.locator("section").filter(has_text="The slope that fits best")
    expect(slopes.get_by_role("listitem").first).to_contain_text(", interval ")
    expect(as_table(page, "Latency of calls").nth(1).get_by_role("cell")).to_have_count(3)


def test_recent_sessions_are_compared_with_earlier_ones(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/insights")
    arrive(page)
    choose(page, "Comparison")
    expect(page.get_by_role("table", name="What differs").get_by_role("row").nth(1)).to_be_visible()


def test_an_agent_and_a_time_range_narrow_the_analysis(
    filled: LocalServer, open_page: Open
) -> None:
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        client.start_session(session_id="printing", agent_id="printer")
        client.record_events(
            [{"session_id": "printing", "event_type": "error", "error": "the paper is jammed"}]
        )
        client.end_session("printing", status="error")
    page = open_page(filled, "/insights")
    arrive(page)
    expect(page.get_by_role("table").get_by_text("the paper is jammed")).to_be_visible()
    page.get_by_label("Agent").fill("printer")
    expect(page.get_by_text(re.compile("^From 1 session and "))).to_be_visible()
    expect(page.get_by_role("table", name="Recurring errors").get_by_role("row")).to_have_count(2)
    page.get_by_label("Agent").fill("builder")
    expect(page.get_by_text(re.compile("^From 12 sessions and "))).to_be_visible()
    expect(page.get_by_role("table").get_by_text("the paper is jammed")).to_have_count(0)
    # The builder's sessions ended yesterday.
    page.get_by_label("Time").select_option("Last hour")
    expect(page.get_by_text("No session is in this span.")).to_be_visible()


def test_a_claim_links_to_the_sessions_that_show_it(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/insights")
    arrive(page)
    choose(page, "Tool sequences")
    claims = page.locator("section").filter(has_text="What stands out")
    claims.get_by_role("link").first.click()
    arrive(page)
    expect(page).to_have_url(re.compile("/sessions/"))


def test_a_day_has_the_same_name_wherever_it_is_looked_at(
    filled: LocalServer, browser: Browser
) -> None:
    named = []
    for zone in ("UTC", "America/New_York", "Asia/Tokyo"):
        context = browser.new_context(timezone_id=zone, locale="en-US")
        page = context.new_page()
        page.goto(signed_in(filled, "/insights?type=performance_trends", ADMIN_KEY))
        arrive(page)
        row = as_table(page, "Share of sessions that succeed").nth(1)
        named.append(row.get_by_role("cell").first.inner_text())
        page.goto(f"{filled.http_address}/insights?type=cost_analysis")
        arrive(page)
        named.append(as_table(page, "Cost over time").nth(1).get_by_role("cell").first.inner_text())
        context.close()
    assert named == named[:2] * 3
