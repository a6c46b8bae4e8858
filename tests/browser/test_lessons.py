"""What the page of lessons promises.

- `/lessons` lists them by category, and filters by category, importance and what is typed.
- "New lesson" asks for a title, a content, a category and an importance.
- One that is chosen is shown in full, and is edited in place, archived and restored.
- They are exported as JSON, and imported after a look at what that will change.
"""

from __future__ import annotations

import json
from pathlib import Path

from browser.conftest import Open
from browser.showing import arrive
from mneme import MnemeClient
from playwright.sync_api import Locator, Page, expect
from support.server import ADMIN_KEY, LocalServer

BEFORE = {"id": "known-lesson", "title": "Ask before deleting", "content": "Deleted is gone."}


def category(page: Page, name: str) -> Locator:
    """Return the group of a category."""
    return page.get_by_role("region", name=f"Category {name}")


def test_lessons_are_listed_by_category(filled: LocalServer, open_page: Open) -> None:
    page = open_page(filled, "/lessons")
    arrive(page)
    expect(
        category(page, "database").get_by_role("link", name="Large tables change in steps")
    ).to_be_visible()
    expect(category(page, "testing").get_by_role("link")).to_have_count(1)


def test_lessons_are_filtered_by_category_and_importance(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/lessons")
    arrive(page)
    page.get_by_label("Importance").select_option("Critical")
    expect(category(page, "testing")).to_have_count(0)
    expect(page.get_by_role("link", name="Large tables change in steps")).to_be_visible()
    page.get_by_role("button", name="Clear filter").click()
    page.get_by_role("searchbox", name="Category").fill("testing")
    expect(category(page, "database")).to_have_count(0)
    expect(category(page, "testing")).to_have_count(1)
    assert page.url.endswith("/lessons?category=testing")


def test_typing_keeps_those_whose_title_or_content_has_the_words_and_adds_what_means_the_same(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/lessons")
    arrive(page)
    page.get_by_label("Search", exact=True).fill("lock_timeout")
    expect(category(page, "testing")).to_have_count(0)
    expect(category(page, "database").get_by_role("link")).to_have_count(1)
    page.get_by_label("Search", exact=True).fill("a request is sent twice")
    alike = page.get_by_role("region", name="Similar in meaning")
    expect(alike.get_by_role("link").first).to_contain_text("A repeated call must be recognised")


def test_a_new_lesson_is_asked_for_and_shown_in_its_category(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/lessons")
    arrive(page)
    page.get_by_role("button", name="New lesson").click()
    form = page.get_by_role("dialog", name="New lesson")
    form.get_by_label("Title").fill("Pin the base image")
    form.get_by_label("Content").fill("A moving tag changes what is built.")
    form.get_by_label("Category").fill("builds")
    form.get_by_label("Importance").select_option("high")
    form.get_by_role("button", name="Save").click()
    expect(form).to_have_count(0)
    row = category(page, "builds").get_by_role("link")
    expect(row).to_contain_text("Pin the base image")
    expect(row).to_contain_text("high")
    # It is open beside the list.
    shown = page.get_by_role("region", name="The lesson")
    expect(shown.get_by_text("A moving tag changes what is built.")).to_be_visible()


def test_what_is_missing_in_a_new_lesson_is_said_and_nothing_is_stored(
    filled: LocalServer, open_page: Open
) -> None:
    page = open_page(filled, "/lessons")
    arrive(page)
    page.get_by_role("button", name="New lesson").click()
    form = page.get_by_role("dialog", name="New lesson")
    form.get_by_label("Title").fill("A title alone")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_label("Content")).to_be_focused()
    form.get_by_role("button", name="Cancel").click()
    expect(form).to_have_count(0)
    expect(page.get_by_role("link", name="A title alone")).to_have_count(0)


def test_a_lesson_is_edited_in_place_archived_and_restored(
    filled: LocalServer, open_page: Open
) -> None:
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        lesson = client.create_lesson(
            "Rotate keys on Mondays", "Somebody is there then.", category="keys"
        ).lesson
    page = open_page(filled, "/lessons")
    arrive(page)
    category(page, "keys").get_by_role("link").click()
    shown = page.get_by_role("region", name="The lesson")
    expect(shown.get_by_role("heading", name="Rotate keys on Mondays")).to_be_visible()
    expect(shown.get_by_text("Somebody is there then.")).to_be_visible()

    shown.get_by_role("button", name="Edit").click()
    shown.get_by_label("Content").fill("Somebody is there then, and not on Fridays.")
    shown.get_by_role("button", name="Save").click()
    expect(shown.get_by_text("and not on Fridays")).to_be_visible()
    expect(category(page, "keys").get_by_role("link")).to_contain_text("and not on Fridays")

    shown.get_by_role("button", name="Archive").click()
    expect(shown.get_by_role("button", name="Restore")).to_be_visible()
    expect(category(page, "keys")).to_have_count(0)
    page.get_by_label("Archived, too").check()
    expect(category(page, "keys").get_by_role("link")).to_contain_text("archived")
    shown.get_by_role("button", name="Restore").click()
    expect(shown.get_by_role("button", name="Archive")).to_be_visible()
    page.get_by_label("Archived, too").uncheck()
    expect(category(page, "keys").get_by_role("link")).to_be_visible()
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        kept = client.get_lesson(lesson.id).lesson
    assert (kept.title, kept.content) == (
        "Rotate keys on Mondays",
        "Somebody is there then, and not on Fridays.",
    )


def test_lessons_are_exported_as_json_and_importing_them_changes_nothing(
    filled: LocalServer, open_page: Open, tmp_path: Path
) -> None:
    page = open_page(filled, "/lessons?category=database")
    arrive(page)
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Export").click()
    file = tmp_path / "lessons.json"
    downloading.value.save_as(file)
    exported = json.loads(file.read_text())
    assert [one["title"] for one in exported] == ["Large tables change in steps"]

    page.get_by_role("button", name="Import").click()
    form = page.get_by_role("dialog", name="Import lessons")
    form.get_by_label("A file of lessons").set_input_files(file)
    expect(form.get_by_text("1 lesson in the file: 0 new, 1 there already")).to_be_visible()
    expect(form.get_by_role("button", name="Import 0 lessons")).to_be_disabled()


def test_an_import_shows_what_will_change_before_anything_does(
    filled: LocalServer, open_page: Open, tmp_path: Path
) -> None:
    with MnemeClient(filled.address, api_key=ADMIN_KEY) as client:
        client.create_lesson(BEFORE["title"], BEFORE["content"], lesson_id=BEFORE["id"])
        lessons = [
            BEFORE | {"content": "Deleted is gone for good."},
            {"title": "Name the owner", "content": "Of each table.", "category": "imported"},
            {"title": "Without a content"},
        ]
        file = tmp_path / "lessons.json"
        file.write_text(json.dumps(lessons))
        page = open_page(filled, "/lessons")
        arrive(page)
        page.get_by_role("button", name="Import").click()
        form = page.get_by_role("dialog", name="Import lessons")
        form.get_by_label("A file of lessons").set_input_files(file)
        plan = form.get_by_role("table", name="What will change")
        expect(plan.get_by_role("row").filter(has_text="Name the owner")).to_contain_text("new")
        expect(plan.get_by_role("row").filter(has_text=BEFORE["title"])).to_contain_text("content")
        bad = plan.get_by_role("row").filter(has_text="Without a content")
        expect(bad).to_contain_text("cannot be read")
        # Nothing has changed by looking.
        assert client.get_lesson(BEFORE["id"]).lesson.content == BEFORE["content"]
        expect(category(page, "imported")).to_have_count(0)

        form.get_by_label("become as in the file").check()
        form.get_by_role("button", name="Import 2 lessons").click()
        expect(form).to_have_count(0)
        expect(category(page, "imported").get_by_role("link")).to_contain_text("Name the owner")
        assert client.get_lesson(BEFORE["id"]).lesson.content == "Deleted is gone for good."


def test_a_file_that_is_no_json_is_refused_with_the_line(
    filled: LocalServer, open_page: Open, tmp_path: Path
) -> None:
    file = tmp_path / "lessons.jsonl"
    file.write_text('{"title": "One", "content": "It can be read."}\nand this cannot\n')
    page = open_page(filled, "/lessons")
    arrive(page)
    page.get_by_role("button", name="Import").click()
    form = page.get_by_role("dialog", name="Import lessons")
    form.get_by_label("A file of lessons").set_input_files(file)
    expect(form.get_by_role("alert")).to_contain_text("line 2 cannot be read")
