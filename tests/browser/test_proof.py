"""What the page of proof promises.

- It shows the log's head, and the keys that signed it.
- A certificate that is dropped on it is verified in the browser: one that holds is told, with what
  it proves; one that is broken, or signed by nobody who is trusted, is refused with the reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from browser.conftest import Open
from browser.showing import arrive
from mneme import MnemeClient
from playwright.sync_api import Page, expect
from support.server import ADMIN_KEY, LocalServer

OTHERS_KEY = "mneme.example/0+5e4f2a1b+AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"

_DROP = """(zone, [name, text]) => {
  const given = new DataTransfer();
  given.items.add(new File([text], name, { type: "application/json" }));
  const said = { bubbles: true, cancelable: true, dataTransfer: given };
  for (const type of ["dragover", "drop"]) {
    zone.dispatchEvent(new DragEvent(type, said));
  }
}"""


@pytest.fixture(scope="module")
def certificate(filled: LocalServer) -> str:
    """A certificate of what is recalled about lost cents."""
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        answer = client.recall_with_certificate("the lost cents", scopes=["lesson", "memory"])
        return str(answer.certificate.json)


def drop(page: Page, text: str, name: str = "certificate.json") -> None:
    """Drop a file on the page, as from a desktop."""
    page.locator(".drop").evaluate(_DROP, [name, text])


def test_the_head_of_the_log_and_its_keys_are_shown(filled: LocalServer, open_page: Open) -> None:
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        origin = client.get_checkpoint().origin
        key = client.list_log_keys().keys[0].verifier_key
    page = open_page(filled, "/proof")
    arrive(page)
    expect(page.get_by_text(origin, exact=True).first).to_be_visible()
    keys = page.get_by_role("table", name="Keys that signed it")
    expect(keys.get_by_text(key, exact=True)).to_be_visible()


def test_a_certificate_that_is_dropped_is_verified(
    filled: LocalServer, open_page: Open, certificate: str
) -> None:
    page = open_page(filled, "/proof")
    arrive(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.method))
    drop(page, certificate)
    expect(page.get_by_text("certificate.json is signed by a trusted key")).to_be_visible()
    proves = page.get_by_role("table", name="What it proves")
    expect(proves.get_by_text("Large tables change in steps").first).to_be_visible()
    # The browser did it by itself: only the verifier's code was fetched.
    assert set(asked) <= {"GET"}


def test_a_certificate_that_is_chosen_as_a_file_is_verified(
    filled: LocalServer, open_page: Open, certificate: str, tmp_path: Path
) -> None:
    file = tmp_path / "kept.json"
    file.write_text(certificate)
    page = open_page(filled, "/proof")
    arrive(page)
    page.get_by_label("Drop a certificate here, or choose its file").set_input_files(file)
    expect(page.get_by_text("kept.json is signed by a trusted key")).to_be_visible()


@pytest.mark.parametrize(
    ("before", "after"),
    [("in small batches", "in one large batch"), ('"score":', '"score":9')],
    ids=["another content", "another score"],
)
def test_a_certificate_that_was_changed_is_refused(
    filled: LocalServer, open_page: Open, certificate: str, before: str, after: str
) -> None:
    assert before in certificate
    page = open_page(filled, "/proof")
    arrive(page)
    drop(page, certificate.replace(before, after, 1))
    verdict = page.get_by_role("alert")
    expect(verdict).to_contain_text("certificate.json does not hold.")
    expect(verdict.get_by_role("listitem").first).to_be_visible()
    expect(page.get_by_role("table", name="What it proves")).to_have_count(0)


def test_a_certificate_of_a_key_that_is_not_trusted_is_refused(
    filled: LocalServer, open_page: Open, certificate: str
) -> None:
    page = open_page(filled, "/proof")
    arrive(page)
    drop(page, certificate)
    expect(page.get_by_text("certificate.json is signed by a trusted key")).to_be_visible()
    page.get_by_text("The keys that are trusted", exact=True).click()
    page.get_by_label("Keys that are trusted").fill(OTHERS_KEY)
    page.get_by_role("button", name="Verify again").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("table", name="What it proves")).to_have_count(0)


def test_what_is_no_certificate_is_refused(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/proof")
    arrive(page)
    drop(page, '{"certificate": "none"}', "shopping.json")
    expect(page.get_by_role("alert")).to_contain_text("shopping.json does not hold.")
