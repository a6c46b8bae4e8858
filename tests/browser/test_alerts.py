"""A rule's life in the browser: tried before it is kept, changed, disabled, and deleted."""

from __future__ import annotations

import re

from browser.conftest import Open
from browser.showing import arrive, check_untouched
from playwright.sync_api import expect
from support.server import LocalServer

TRIGGERED = re.compile(r"^It would have triggered [0-9]+ times in the last 90 days\.$")


def test_a_rule_is_tried_created_changed_disabled_and_deleted(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/alerts")
    arrive(page)
    page.get_by_role("button", name="New rule").click()
    form = page.get_by_role("dialog", name="New rule")
    form.get_by_label("Name", exact=True).fill("More than can be")
    form.get_by_label("What it watches").select_option("Cost")
    form.get_by_label("More than, in US dollars").fill("1000000")
    expect(form.get_by_text("events cost more than $1,000,000.00 in 1 hour")).to_be_visible()
    form.get_by_role("button", name="Try it").click()
    expect(form.get_by_text("It would not have triggered in the last 7 days.")).to_be_visible()
    form.get_by_label("More than, in US dollars").fill("0")
    form.get_by_label("Would it have triggered in").select_option("the last 90 days")
    form.get_by_role("button", name="Try it").click()
    expect(form.get_by_text(TRIGGERED)).to_be_visible()
    form.get_by_label("More than, in US dollars").fill("1000000")
    form.get_by_role("button", name="Save").click()

    rule = page.get_by_role("region", name="The rule")
    expect(rule.get_by_role("heading", name="More than can be")).to_be_visible()
    expect(rule.get_by_text("It never triggered.")).to_be_visible()
    expect(rule.get_by_role("button", name="Send a test")).to_be_disabled()
    rule.get_by_role("button", name="Edit").click()
    rule.get_by_label("Within, in minutes").fill("1440")
    rule.get_by_role("button", name="Save").click()
    expect(rule.get_by_text("Events cost more than $1,000,000.00 in 1 day")).to_be_visible()
    rule.get_by_role("button", name="Disable").click()
    expect(rule.get_by_role("button", name="Enable")).to_be_visible()
    rule.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(rule).to_have_count(0)
    expect(page.get_by_role("link", name="The month's budget")).to_be_visible()
    expect(page.get_by_role("link", name="More than can be")).to_have_count(0)
    check_untouched(page)
