"""`mneme lessons`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme._generated.choices import ImportanceChoice, ImportConflictChoice
from mneme.cli import cells, files
from mneme.cli.app import App, Cli
from mneme.cli.fields import Fields, argument, choice, flag, option, text, texts
from mneme.cli.files import OutputFile
from mneme.cli.options import BestOf, Etag, Query, free_json
from mneme.cli.output import Column
from mneme.cli.resources import Resource, found
from mneme.cli.values import text_of, without_empty

if TYPE_CHECKING:
    from mneme.types import Lesson

app = App(help="What agents should remember next time.")

_CONTENT = "The insight; - reads it from standard input."
_ABOUT = Fields(
    category=text("A group, e.g. deployment."),
    importance=choice(ImportanceChoice),
    agent_id=text("The agent it is for.", "--agent", metavar="ID"),
    project=text("The project it is about.", metavar="NAME"),
)
_TAGS = texts("A label; repeatable.", "--tag")
_SOURCE = Fields(
    context=free_json("Free JSON."),
    source_session_id=text("What it was learned from.", "--source-session", metavar="ID"),
    source_event_id=text("What it was learned from.", "--source-event", metavar="ID"),
)
_FILTER = Fields(
    **_ABOUT, tags=_TAGS, include_archived=flag("Include archived lessons.", "--archived")
)


def _title(lesson: Lesson) -> str:
    return cells.preview(lesson.title) + (" (archived)" if lesson.archived_at else "")


_FOUND_COLUMNS = (
    Column("Score", lambda found: cells.score(found.score), style="cyan"),
    Column("Lesson", "lesson.id"),
    Column("Category", "lesson.category", optional=3),
    Column("Importance", "lesson.importance", optional=2),
    Column("Title", lambda found: _title(found.lesson), flexible=True, least=16, lines=3),
    Column("Content", "lesson.content", flexible=True, least=24, lines=3, optional=1),
)

_lessons = Resource(
    app,
    "lesson",
    key=Fields(lesson_id=argument("LESSON", "The lesson's id.")),
    columns=(
        Column("Lesson", "id", style="cyan"),
        Column("Category", "category"),
        Column("Importance", "importance"),
        Column("Title", _title, flexible=True, least=24),
        Column("Updated", "updated_at", optional=2, style="dim"),
        Column("Agent", "agent_id", optional=3),
        Column("Used", "access_count", right=True, optional=1),
    ),
    facts={
        "Lesson": "id",
        "Title": "title",
        "Content": "content",
        "Category": "category",
        "Importance": "importance",
        "Agent": "agent_id",
        "Project": "project",
        "Tags": "tags",
        "Context": "context",
        "From": lambda it: cells.preview(f"{it.source_session_id} {it.source_event_id}"),
        "Used": lambda it: cells.plural(it.access_count, "time"),
        "Created": "created_at",
        "Updated": "updated_at",
        "Archived": "archived_at",
        "Etag": "etag",
    },
)
_lessons.list(
    "iter_lessons",
    "List lessons, most recently updated first.",
    Fields(
        filter=_FILTER,
        words=text("With each of these words, or parts of words, in title or content."),
    ),
)
_lessons.create(
    "create_lesson",
    "Save a lesson, and print its id.",
    Fields(
        title=option(str, "A short title."),
        content=option(str, _CONTENT, sent=text_of),
        **_ABOUT,
        tags=_TAGS,
        **_SOURCE,
        lesson_id=text("Its id; made if left out.", "--id"),
    ),
)
_lessons.get("get_lesson", "Show one lesson.")
_lessons.change(
    "update",
    "update_lesson",
    'Change the given fields of a lesson; "" empties a field.',
    Fields(
        title=text(),
        content=text(_CONTENT, sent=text_of),
        **_ABOUT,
        tags=texts("Its labels from now on; repeatable.", "--tag", sent=without_empty),
        **_SOURCE,
        etag=Etag,
    ),
    said="updated {lesson_id}",
)
_lessons.change(
    "archive",
    "archive_lesson",
    "Archive a lesson: lists and searches leave it out; `get` still shows it.",
    Fields(etag=Etag),
    said="archived {lesson_id}",
)
_lessons.change(
    "unarchive",
    "unarchive_lesson",
    "Bring an archived lesson back into lists and searches.",
    Fields(etag=Etag),
    said="restored {lesson_id}",
)
_lessons.change(
    "delete",
    "delete_lesson",
    "Delete a lesson, archived or not, with the count of its uses.",
    Fields(etag=Etag),
    said="deleted {lesson_id}",
    confirm="Delete the lesson {lesson_id} for good?",
)


@app.command()
def search(
    cli: Cli,
    *,
    query: Query,
    chosen: Annotated[Any, _FILTER],
    limit: BestOf = 10,
    min_score: Annotated[float | None, typer.Option(min=0, max=1)] = None,
) -> None:
    """Search lessons by meaning, best first."""
    with cli.connect() as client:
        answer = client.search_lessons(query, filter=chosen, limit=limit, min_score=min_score)
    found(cli.out, answer, _FOUND_COLUMNS, "lesson")


@app.command("export")
def export(cli: Cli, *, file: OutputFile = None, chosen: Annotated[Any, _FILTER]) -> None:
    """Write lessons as JSON Lines, which `mneme lessons import` reads."""
    from mneme.plain import to_json

    with cli.connect() as client, client.export_lessons(filter=chosen) as stream:
        files.export(cli, file, (to_json(one.lesson) for one in stream), "lesson")


@app.command("import")
def import_(
    cli: Cli,
    *,
    file: Annotated[Path, typer.Argument(help="JSON Lines or a JSON list of lessons.")],
    on_conflict: Annotated[
        ImportConflictChoice | None,
        typer.Option(
            case_sensitive=False, help="What to do if an id is taken by different content."
        ),
    ] = None,
) -> None:
    """Import lessons as `mneme lessons export` writes them."""
    from mneme.importing.lessons import import_lessons

    with files.importing(cli, file) as client:
        totals = import_lessons(client, file, on_conflict=on_conflict)
    files.imported(cli, totals, "lesson")
