"""A figure on a page is the API's answer to what the page is asked: under every filter, and where
sessions hold nothing, too.

- Errors are counted, never rebuilt from a mean over other sessions.
- Filters go along into what a figure leads to.
- Words are looked for in all lessons, and who looks is not counted as one who reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from browser.conftest import Open
from browser.showing import arrive
from browser.test_overview import figure
from mneme import MnemeClient
from playwright.sync_api import Page, expect
from support.server import ADMIN_KEY, LocalServer, local_server

EMPTY, LESSONS = 40, 620


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server with sessions of two projects, most of which hold nothing, and more lessons than a
    page of them."""
    folder = tmp_path_factory.mktemp("figures")
    with (
        local_server(folder / "data", http_listen="127.0.0.1:0") as running,
        MnemeClient(running.address, api_key=ADMIN_KEY) as client,
    ):
        for project, errors in (("airline", 3), ("shop", 5)):
            client.start_session(session_id=f"{project}-1", agent_id="clerk", project=project)
            client.record_events(
                [
                    {"session_id": f"{project}-1", "event_type": "tool_error", "error": "no seats"}
                    for _ in range(errors)
                ]
            )
            for number in range(EMPTY):
                client.start_session(session_id=f"{project}-empty-{number}", project=project)
        client.create_lesson(
            title="Repeat with an idempotency key", content="Twice is worse.", lesson_id="old"
        )
        many = [{"title": f"Lesson {n}", "content": "of something else"} for n in range(LESSONS)]
        for start in range(0, LESSONS, 500):
            client.import_lessons(many[start : start + 500])
        yield running


def drawn_errors(page: Page) -> int:
    """The errors in the table of the chart, together."""
    chart = page.get_by_role("figure", name="Sessions and errors over time")
    chart.get_by_text("Show as a table").click()
    rows = chart.get_by_role("row").all()[1:]
    return sum(int(row.get_by_role("cell").last.inner_text().replace(",", "")) for row in rows)


@pytest.mark.parametrize(("filters", "project"), [("/", ""), ("/?project=airline", "airline")])
def test_errors_are_as_many_in_the_figure_in_the_chart_and_in_the_api(
    kept: LocalServer, open_page: Open, filters: str, project: str
) -> None:
    with MnemeClient(kept.address, api_key=ADMIN_KEY) as client:
        answer = client.reflect("error_patterns", project=project or None)
        errors = answer.error_patterns.error_count
    page = open_page(kept, filters)
    arrive(page)
    assert figure(page, "Errors") == str(errors) == str(drawn_errors(page))


def test_a_figure_leads_to_what_it_counts(kept: LocalServer, open_page: Open) -> None:
    page = open_page(kept, "/?project=airline&range=24h")
    arrive(page)
    errors = int(figure(page, "Errors"))
    page.locator("a.figure").filter(has_text="Errors").click()
    expect(page).to_have_url(re.compile("/events.*project=airline.*range=24h.*severity=error"))
    arrive(page)
    rows = page.get_by_role("table", name="Events").get_by_role("row")
    expect(rows).to_have_count(errors + 1)
    page.go_back()
    arrive(page)
    sessions = int(figure(page, "Sessions"))
    page.get_by_role("link", name="All sessions").click()
    arrive(page)
    assert sessions == EMPTY + 1
    expect(page.get_by_text(re.compile(rf"\b{sessions} sessions"))).to_be_visible()


def test_words_find_a_lesson_behind_hundreds_of_newer_ones(
    kept: LocalServer, open_page: Open
) -> None:
    page = open_page(kept, "/lessons?q=IDEMPOTENCY")
    arrive(page)
    group = page.get_by_role("region", name="Category general")
    expect(group.get_by_role("link")).to_have_count(1)
    group.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Repeat with an idempotency key")).to_be_visible()
    arrive(page)
    page.reload()
    arrive(page)
    with MnemeClient(kept.address, api_key=ADMIN_KEY) as client:
        (lesson,) = client.list_lessons(words="idempotency").lessons
        assert lesson.access_count == 0, "who looks does not read"


def test_the_terms_of_a_score_lead_to_it(kept: LocalServer, open_page: Open) -> None:
    page = open_page(kept, "/search?q=idempotency key&scope=lesson")
    arrive(page)
    result = page.get_by_role("list", name="Results").get_by_role("listitem").first
    score = float(result.locator(".score").inner_text().split()[-1])
    result.get_by_role("button", name="Why this score").click()
    table = result.get_by_role("table", name="How the score came to be")
    told = [row.get_by_role("cell").last.inner_text() for row in table.get_by_role("row").all()[1:]]
    *terms, total, _, _, root = (float(cell.replace("−", "-")) for cell in told)
    assert abs(sum(terms) - total) < 0.01
    assert abs(root - score) < 0.006


def test_a_read_key_is_told_what_it_may_not_do(kept: LocalServer, open_page: Open) -> None:
    with MnemeClient(kept.address, api_key=ADMIN_KEY) as client:
        secret = client.create_api_key("default", "reader", scopes=["read"]).secret
    page = open_page(kept, "/lessons", key=secret)
    arrive(page)
    expect(page.get_by_label("Signed in as")).to_contain_text("reader")
    expect(page.get_by_role("button", name="New lesson")).to_be_disabled()
    expect(page.get_by_role("button", name="Export")).to_be_enabled()
    expect(page.get_by_role("link", name="Admin")).to_have_count(0)


def test_a_link_does_not_replace_the_key_of_a_tab_unasked(
    kept: LocalServer, open_page: Open
) -> None:
    page = open_page(kept, "/sessions")
    arrive(page)
    page.goto(f"{kept.http_address}/lessons#key=mn_somebody_elses")
    dialog = page.get_by_role("dialog", name="This link brings another key")
    expect(dialog).to_be_visible()
    assert "key" not in page.url
    dialog.get_by_role("button", name="Keep my key").click()
    arrive(page)
    expect(page.get_by_label("Signed in as")).to_contain_text("default")
