"""`mneme recall`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from mneme._generated.choices import MemoryKindChoice, RecallModeChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.fields import Fields, choice, number, text
from mneme.cli.options import Agent, BestOf, MinSeverity, Project, Session, Tags, Types, User
from mneme.cli.output import Column
from mneme.cli.times import From, To
from mneme.cli.values import scope as parse_scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mneme.types import RecallResponse, RecallResult, RecallTurn

_COLUMNS = (
    Column("Score", style="cyan"),
    Column("Source"),
    Column("When", optional=1, style="dim"),
    Column("Id", style="dim"),
    Column("Text", below=True, lines=3),
)
WHERE = Fields(
    start_time=From,
    end_time=To,
    agent_id=Agent,
    session_id=Session,
    user_id=User,
    project=Project,
    tags=Tags,
)
_IN_CONTEXT = Column("Text", below=True, lines=12)
_DOUBTFUL = 0.2
_SHOWN_OF_A_TURN, _SHOWN_OF_A_NAME = 140, 40
_TERMS = Column("Terms of the score", below=True, lines=6, style="dim")


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("recall")(recall)


def recall(
    cli: Cli,
    *,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The question, in words.")],
    scope: Annotated[
        list[Any] | None,
        typer.Option(
            parser=parse_scope,
            metavar="KIND",
            help=f"Where to look: {', '.join(get_args(MemoryKindChoice))}; repeatable.",
        ),
    ] = None,
    limit: BestOf = 10,
    chosen: Annotated[
        Any,
        Fields(
            **WHERE,
            event_types=Types,
            min_severity=MinSeverity,
            name=text("Events of this tool, or with this name.", metavar="NAME"),
            author=text("Said by: user, assistant, an agent, or a name.", metavar="WHO"),
            mode=choice(RecallModeChoice, "Search by meaning and words, or by just one."),
            min_score=number("Leave out results that score less.", min=0, max=1),
            min_confidence=number("Show nothing that the server is less sure of.", min=0, max=1),
        ),
    ],
    context: Annotated[
        int,
        typer.Option(min=0, max=3, metavar="N", help="Show N events before and after each, too."),
    ] = 0,
    every_copy: Annotated[
        bool, typer.Option("--every-copy", help="Show copies apart, not as one result.")
    ] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Archived lessons, too.")] = False,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Memories that others superseded, too.")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show each term of a score.")] = False,
) -> None:
    """Recall what bears on a question, best first."""
    with cli.connect() as client:
        answer = client.recall(
            query,
            scopes=scope,
            limit=limit,
            **chosen,
            context_turns=context,
            every_copy=every_copy,
            include_archived=archived,
            include_superseded=superseded,
            explain=explain,
        )
    if cli.out.as_json:
        cli.out.message(answer)
        return
    text = _IN_CONTEXT if context else _COLUMNS[-1]
    columns = (*_COLUMNS[:-1], *([_TERMS] if explain else []), text)
    cli.out.table(columns, [_row(result, explain=explain) for result in answer.results])
    _remark(cli, answer)


def _row(result: RecallResult, *, explain: bool) -> list[str]:
    row = [
        cells.score(result.score),
        _source(result),
        cells.when(result.timestamp),
        cells.preview(result.source_id),
        _text(result),
    ]
    if explain:
        terms = (
            f"{term.name} {term.contribution:+.3f} ({term.value:.3f})" for term in result.terms
        )
        row.insert(-1, ", ".join([*terms, *_steps(result)]))
    return row


def _steps(result: RecallResult) -> Iterator[str]:
    """How the terms become the score: "= 2.310 of 5.120 × evidence 0.680, √ 0.554"."""
    if result.steps is not None:
        steps = result.steps
        yield (
            f"= {steps.sum:.3f} of {steps.highest:.3f} × evidence {steps.evidence:.3f},"
            f" √ {result.score:.3f}"
        )


def _text(result: RecallResult) -> str:
    """What it says, what it stands for, and what happened around it, a line each."""
    # Of a long text what bears on the question, which its beginning need not.
    bearing = f"… {result.passage.text}" if result.passage.text else result.text
    lines = [cells.preview(bearing)]
    if result.metadata.get("archived"):
        lines.append("(archived)")
    if result.copies > 1:
        first, last = cells.when(result.first_time), cells.when(result.last_time)
        span = "" if first == last else f", {first} to {last}"
        lines.append(f"({cells.count(result.copies)} like this{span})")
    if result.older.source_id:
        when = cells.when(result.older.timestamp)
        lines.append(f"(newer than {cells.preview(result.older.source_id)} of {when})")
    if result.newer.source_id:
        when = cells.when(result.newer.timestamp)
        lines.append(f"(older than {cells.preview(result.newer.source_id)} of {when})")
    elif replaced_by := result.metadata.get("superseded_by"):
        lines.append(f"(replaced by {cells.preview(str(replaced_by))})")
    lines += [f"before: {_turn(turn)}" for turn in result.before]
    lines += [f"after: {_turn(turn)}" for turn in result.after]
    return "\n".join(lines)


def _turn(turn: RecallTurn) -> str:
    who = cells.preview(turn.author or turn.event_type, _SHOWN_OF_A_NAME)
    return f"{who}: {cells.preview(turn.text, _SHOWN_OF_A_TURN)}"


def _source(result: RecallResult) -> str:
    """The kind of memory, and of event: "event tool_error"."""
    kind = cells.name(result.source_type)
    detail = str(result.metadata.get("event_type", ""))
    return cells.preview(f"{kind} {detail}", 40)


def _remark(cli: Cli, answer: RecallResponse) -> None:
    """Say why there is nothing, or what is still missing."""
    why = {
        "nothing_stored": "Nothing is stored there yet.",
        "nothing_matches_filters": ("There are memories, but none passes the filters."),
        "nothing_above_min_score": (
            f"Of {cells.plural(answer.searched_count, 'memory', 'memories')}, none fits the "
            "question well enough."
        ),
        "nothing_confident": "Nothing here is likely to answer this.",
    }
    if not answer.results:
        cli.out.remark(why.get(answer.outcome or "", "Nothing found."))
    if answer.confidence is not None and answer.results:
        doubt = "; probably nothing here answers this" if answer.confidence < _DOUBTFUL else ""
        cli.out.remark(f"Confidence {answer.confidence:.2f}{doubt}.")
    if answer.words_only:
        cli.out.remark("Found by words alone: the server's embedding backend is not answering.")
    if answer.reranking in ("late", "failed"):
        cli.out.remark("Not reranked: the server's reranker is not answering.")
    if answer.pending_count:
        cli.out.remark(
            f"{cells.count(answer.pending_count)} of the memories are found by words only, until "
            "their embeddings are made."
        )
