"""What the page of administration promises.

- Tenants are made, their use is shown, and one goes only after its id was typed.
- Keys are made with the secret shown once, and revoked.
- Backups are made and put back, and what runs is shown under Operations.
- What is to be forgotten is counted first; a look forgets nothing.
"""

from __future__ import annotations

import pytest
from browser.conftest import Open
from browser.showing import arrive
from mneme import MnemeClient, MnemeError
from playwright.sync_api import Locator, Page, expect
from support.server import ADMIN_KEY, LocalServer


def row(page: Page, table: str, text: str) -> Locator:
    """Return the row of a table that has a text."""
    return page.get_by_role("table", name=table).get_by_role("row").filter(has_text=text)


def test_what_a_tenant_uses_is_shown_with_what_waits(filled: LocalServer, open_page: Open) -> None:
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        sessions = client.get_stats().tenant.session_count
    page = open_page(filled, "/admin")
    arrive(page)
    usage = page.locator("section").filter(has_text="Usage of default")
    expect(usage.get_by_text(f"{sessions} sessions")).to_be_visible()
    expect(usage.get_by_text("texts wait to be embedded")).to_be_visible()


def test_a_tenant_is_made_and_goes_only_after_its_id_was_typed(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/admin")
    arrive(page)
    page.get_by_role("button", name="New tenant").click()
    form = page.get_by_role("dialog", name="New tenant")
    form.get_by_label("Id", exact=True).fill("globex")
    form.get_by_label("Name").fill("Globex")
    form.get_by_role("button", name="Create").click()
    expect(row(page, "Tenants", "globex")).to_contain_text("Globex")

    page.get_by_role("button", name="Delete globex").click()
    asked = page.get_by_role("dialog", name="Delete the tenant globex?")
    gone = asked.get_by_role("button", name="Delete for good")
    expect(gone).to_be_disabled()
    asked.get_by_role("textbox").fill("globe")
    expect(gone).to_be_disabled()
    asked.get_by_role("textbox").fill("globex")
    gone.click()
    expect(asked).to_have_count(0)
    page.get_by_role("link", name="Operations", exact=True).click()
    expect(row(page, "Operations", "globex")).to_contain_text("succeeded")


def test_a_keys_secret_is_shown_once_and_the_key_works_until_it_is_revoked(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/admin?part=keys")
    arrive(page)
    page.get_by_role("button", name="New key").click()
    form = page.get_by_role("dialog", name="New key")
    form.get_by_label("Name").fill("Reporting")
    form.get_by_label("write").uncheck()
    form.get_by_role("button", name="Create").click()
    made = page.get_by_role("dialog", name="The new key")
    expect(made.get_by_text("This is shown only this once.")).to_be_visible()
    secret = made.locator(".secret").inner_text().strip()
    with MnemeClient(filled.address, api_key=secret) as client:
        assert client.list_sessions(page_size=1).sessions
        with pytest.raises(MnemeError, match="scope"):
            client.start_session(session_id="not-allowed")

        made.get_by_role("button", name="I have it").click()
        expect(made).to_have_count(0)
        listed = row(page, "Keys", "Reporting")
        expect(listed).to_contain_text("read")
        assert secret not in page.content()
        page.reload()
        arrive(page)
        assert secret not in page.content()

        page.get_by_role("button", name="Revoke Reporting").click()
        asked = page.get_by_role("dialog", name="Revoke the key Reporting?")
        asked.get_by_role("button", name="Revoke").click()
        expect(asked).to_have_count(0)
        expect(listed).to_have_count(0)
        with pytest.raises(MnemeError):
            client.list_sessions(page_size=1)
    page.get_by_label("Revoked, too").check()
    expect(row(page, "Keys", "Reporting")).to_contain_text("revoked")


def test_a_tenant_is_backed_up_and_put_back(filled: LocalServer, open_page: Open) -> None:
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        client.create_tenant("initech")
        secret = client.create_api_key("initech", "tests", scopes=["read", "write"]).secret
        with MnemeClient(filled.address, api_key=secret) as tenant:
            tenant.create_lesson("Kept", "It was there when the backup was made.")
            page = open_page(filled, "/admin?part=backups&tenant=initech")
            arrive(page)
            page.get_by_role("button", name="Back up now").click()
            done = row(page, "Operations", "backup")
            expect(done).to_contain_text("succeeded")
            file = done.locator("p .id").inner_text()

            tenant.create_lesson("Lost", "It came after the backup.")
            page.get_by_label("File, as it is called").fill(file)
            page.get_by_role("button", name="Restore…").click()
            asked = page.get_by_role("dialog", name="Restore initech?")
            expect(asked.get_by_role("button", name="Restore")).to_be_disabled()
            asked.get_by_role("textbox").fill("initech")
            asked.get_by_role("button", name="Restore").click()
            expect(row(page, "Operations", "restore")).to_contain_text("succeeded")
            assert [one.title for one in tenant.list_lessons().lessons] == ["Kept"]


def test_what_would_be_forgotten_is_counted_before_anything_is(
    filled: LocalServer, open_page: Open
) -> None:
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        client.start_session(session_id="of-carl", user_id="carl")
        client.record_events(
            [{"session_id": "of-carl", "event_type": "message", "text": "Carl lives in Ulm"}]
        )
        client.end_session("of-carl")
        page = open_page(filled, "/admin?part=forgetting")
        arrive(page)
        page.get_by_label("User").fill("carl")
        page.get_by_role("button", name="Show what would be forgotten").click()
        expect(page.get_by_text("This would be forgotten. Nothing has been yet.")).to_be_visible()
        assert client.get_session("of-carl").session.user_id == "carl"
        # What is typed now needs a look of its own.
        page.get_by_label("User").fill("carla")
        expect(page.get_by_role("button", name="Forget…")).to_have_count(0)
        page.get_by_label("User").fill("carl")
        page.get_by_role("button", name="Show what would be forgotten").click()

        page.get_by_role("button", name="Forget…").click()
        asked = page.get_by_role("dialog", name="Forget carl?")
        expect(asked.get_by_role("button", name="Forget for good")).to_be_disabled()
        asked.get_by_role("textbox").fill("carl")
        asked.get_by_role("button", name="Forget for good").click()
        expect(row(page, "Operations", "forget")).to_contain_text("succeeded")
        assert client.list_sessions(user_id="carl").total_size == 0


def test_of_somebody_unknown_there_is_nothing_to_forget(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/admin?part=forgetting")
    arrive(page)
    page.get_by_label("Agent").fill("nobody")
    page.get_by_role("button", name="Show what would be forgotten").click()
    expect(page.get_by_text("Nothing is kept of nobody.")).to_be_visible()
    expect(page.get_by_role("button", name="Forget…")).to_have_count(0)
