"""`mneme lessons`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from mneme._generated.choices import ImportanceChoice, ImportConflictChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.exits import InputError
from mneme.cli.files import written
from mneme.cli.options import Limit, listed, page_size
from mneme.cli.output import Column
from mneme.cli.values import json_object

if TYPE_CHECKING:
    from mneme.types import Lesson, LessonFilterFields

app = App(help="What agents should remember next time.")

LessonId = Annotated[str, typer.Argument(metavar="LESSON", help="The lesson's id.")]
Category = Annotated[str | None, typer.Option(help="A group, e.g. deployment.")]
Importance = Annotated[ImportanceChoice | None, typer.Option(case_sensitive=False)]
Agent = Annotated[str | None, typer.Option(metavar="ID", help="The agent it is for.")]
Project = Annotated[str | None, typer.Option(metavar="NAME", help="The project it is about.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A label; repeatable.")]
Archived = Annotated[bool, typer.Option("--archived", help="Include archived lessons.")]
Context = Annotated[Any, typer.Option(parser=json_object, metavar="JSON", help="Free JSON.")]
SourceSession = Annotated[str | None, typer.Option(metavar="ID", help="What it was learned from.")]
Etag = Annotated[
    str | None,
    typer.Option(
        metavar="ETAG", help="Its etag as `get` shows it: refuse if it has changed since."
    ),
]
SourceEvent = Annotated[str | None, typer.Option(metavar="ID", help="What it was learned from.")]

_COLUMNS = (
    Column("Lesson", style="cyan"),
    Column("Category"),
    Column("Importance"),
    Column("Title", flexible=True, least=24),
    Column("Updated", optional=2, style="dim"),
    Column("Agent", optional=3),
    Column("Used", right=True, optional=1),
)
_FOUND_COLUMNS = (
    Column("Score", style="cyan"),
    Column("Lesson"),
    Column("Category", optional=3),
    Column("Importance", optional=2),
    Column("Title", flexible=True, least=16, lines=3),
    Column("Content", flexible=True, least=24, lines=3, optional=1),
)


@app.command("list")
def list_(
    cli: Cli,
    *,
    category: Category = None,
    importance: Importance = None,
    agent: Agent = None,
    project: Project = None,
    tag: Tags = None,
    archived: Archived = False,
    limit: Limit = 50,
) -> None:
    """List lessons, most recently updated first."""
    with cli.connect() as client:
        walk = client.iter_lessons(
            filter=_filter(
                category=category,
                importance=importance,
                agent=agent,
                project=project,
                tags=tag,
                archived=archived,
            ),
            page_size=page_size(limit),
        )
        listed(cli.out, walk, limit, _COLUMNS, _row)


@app.command()
def create(
    cli: Cli,
    *,
    title: Annotated[str, typer.Option(help="A short title.")],
    content: Annotated[str, typer.Option(help="The insight; - reads it from standard input.")],
    category: Category = None,
    importance: Importance = None,
    agent: Agent = None,
    project: Project = None,
    tag: Tags = None,
    context: Context = None,
    source_session: SourceSession = None,
    source_event: SourceEvent = None,
    lesson_id: Annotated[str | None, typer.Option("--id", help="Its id; made if left out.")] = None,
) -> None:
    """Save a lesson, and print its id."""
    with cli.connect() as client:
        answer = client.create_lesson(
            title,
            _text(content),
            category=category,
            importance=importance,
            agent_id=agent,
            project=project,
            tags=tag,
            context=context,
            source_session_id=source_session,
            source_event_id=source_event,
            lesson_id=lesson_id,
        )
    cli.out.done(answer.lesson.id, answer.lesson)


@app.command()
def get(cli: Cli, lesson_id: LessonId) -> None:
    """Show one lesson."""
    with cli.connect() as client:
        lesson = client.get_lesson(lesson_id).lesson
    if cli.out.as_json:
        cli.out.message(lesson)
    else:
        cli.out.facts(_facts(lesson))


@app.command()
def update(
    cli: Cli,
    *,
    lesson_id: LessonId,
    title: Annotated[str | None, typer.Option()] = None,
    content: Annotated[
        str | None, typer.Option(help="The insight; - reads it from standard input.")
    ] = None,
    category: Category = None,
    importance: Importance = None,
    agent: Agent = None,
    project: Project = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Its labels from now on; repeatable.")
    ] = None,
    context: Context = None,
    source_session: SourceSession = None,
    source_event: SourceEvent = None,
    etag: Etag = None,
) -> None:
    """Change the given fields of a lesson; "" empties a field."""
    with cli.connect() as client:
        answer = client.update_lesson(
            lesson_id,
            title=title,
            content=None if content is None else _text(content),
            category=category,
            importance=importance,
            agent_id=agent,
            project=project,
            # `--tag ""` takes all labels away.
            tags=None if tag is None else [label for label in tag if label],
            context=context,
            source_session_id=source_session,
            source_event_id=source_event,
            etag=etag,
        )
    cli.out.done(f"updated {lesson_id}", answer.lesson)


@app.command()
def delete(cli: Cli, *, lesson_id: LessonId, etag: Etag = None) -> None:
    """Archive a lesson: lists and searches leave it out; `get` still shows it."""
    with cli.connect() as client:
        answer = client.delete_lesson(lesson_id, etag=etag)
    cli.out.done(f"archived {lesson_id}", answer.lesson)


@app.command()
def restore(cli: Cli, *, lesson_id: LessonId, etag: Etag = None) -> None:
    """Bring an archived lesson back into lists and searches."""
    with cli.connect() as client:
        answer = client.undelete_lesson(lesson_id, etag=etag)
    cli.out.done(f"restored {lesson_id}", answer.lesson)


@app.command()
def search(
    cli: Cli,
    *,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for, in words.")],
    category: Category = None,
    importance: Importance = None,
    agent: Agent = None,
    project: Project = None,
    tag: Tags = None,
    archived: Archived = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 10,
    min_score: Annotated[float | None, typer.Option(min=0, max=1)] = None,
) -> None:
    """Search lessons by meaning, best first."""
    with cli.connect() as client:
        answer = client.search_lessons(
            query,
            filter=_filter(
                category=category,
                importance=importance,
                agent=agent,
                project=project,
                tags=tag,
                archived=archived,
            ),
            limit=limit,
            min_score=min_score,
        )
    if cli.out.as_json:
        cli.out.message(answer)
        return
    rows = [
        [cells.score(f.score), *_row(f.lesson)[:4], cells.preview(f.lesson.content)]
        for f in answer.results
    ]
    cli.out.table(_FOUND_COLUMNS, rows)
    if not rows:
        cli.out.remark(f"None of {cells.plural(answer.searched_count, 'lesson')} fits.")


@app.command("export")
def export(
    cli: Cli,
    *,
    file: Annotated[
        Path | None, typer.Argument(help="Output file; default standard output.")
    ] = None,
    category: Category = None,
    importance: Importance = None,
    agent: Agent = None,
    project: Project = None,
    tag: Tags = None,
    archived: Archived = False,
) -> None:
    """Write lessons as JSON Lines, which `mneme lessons import` reads."""
    from mneme.plain import to_json

    chosen = _filter(
        category=category,
        importance=importance,
        agent=agent,
        project=project,
        tags=tag,
        archived=archived,
    )
    count = 0
    with (
        cli.connect() as client,
        client.export_lessons(filter=chosen) as stream,
        written(file) as target,
    ):
        for message in stream:
            target.write(to_json(message.lesson) + "\n")
            count += 1
    if file:
        cli.out.remark(f"{cells.plural(count, 'lesson')} written to {file}")


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
    from mneme.plain import to_json

    try:
        with cli.connect(retries=4) as client:
            totals = import_lessons(client, file, on_conflict=on_conflict)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    if cli.out.as_json:
        cli.out.line(to_json(totals))
        return
    cli.out.line(
        f"{cells.plural(totals.created_count, 'lesson')} created, "
        f"{cells.count(totals.replaced_count)} replaced, "
        f"{cells.count(totals.unchanged_count)} unchanged, "
        f"{cells.count(totals.skipped_count)} skipped"
    )


def _filter(
    *,
    category: str | None,
    importance: str | None,
    agent: str | None,
    project: str | None,
    tags: list[str] | None,
    archived: bool,
) -> LessonFilterFields:
    chosen: dict[str, Any] = {
        "category": category,
        "importance": importance,
        "agent_id": agent,
        "project": project,
        "tags": tags,
        "include_archived": archived,
    }
    return cast("LessonFilterFields", chosen)


def _text(content: str) -> str:
    if content != "-":
        return content
    text = sys.stdin.read().strip()
    if not text:
        raise InputError("standard input is empty")
    return text


def _row(lesson: Lesson) -> list[str]:
    return [
        cells.preview(lesson.id),
        cells.preview(lesson.category),
        _importance(lesson),
        cells.preview(lesson.title) + (" (archived)" if lesson.archived_at else ""),
        cells.when(lesson.updated_at),
        cells.preview(lesson.agent_id),
        cells.count(lesson.access_count),
    ]


def _facts(lesson: Lesson) -> list[tuple[str, str]]:

    return [
        ("Lesson", cells.preview(lesson.id)),
        ("Title", cells.clean(lesson.title)),
        ("Content", cells.clean(lesson.content)),
        ("Category", cells.preview(lesson.category)),
        ("Importance", _importance(lesson)),
        ("Agent", cells.preview(lesson.agent_id)),
        ("Project", cells.preview(lesson.project)),
        ("Tags", cells.preview(", ".join(lesson.tags))),
        (
            "Context",
            cells.preview(cells.json_text(lesson.context)),
        ),
        ("From", cells.preview(" ".join([lesson.source_session_id, lesson.source_event_id]))),
        ("Used", cells.plural(lesson.access_count, "time")),
        ("Created", cells.when(lesson.created_at)),
        ("Updated", cells.when(lesson.updated_at)),
        ("Archived", cells.when(lesson.archived_at)),
        ("Etag", cells.preview(lesson.etag)),
    ]


def _importance(lesson: Lesson) -> str:
    return cells.name(lesson.importance)
