"""`mneme reflect`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme._generated.choices import AnalysisChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.exits import InputError
from mneme.cli.fields import Fields
from mneme.cli.options import Agent, Project, Tags, User
from mneme.cli.times import From, To

if TYPE_CHECKING:
    from mneme.cli.output import Output
    from mneme.types import ReflectResponse

_PATIENCE_S = 120.0


def parameter(text: str) -> tuple[str, str]:
    """A parameter, KEY=VALUE.

    Raises:
        typer.BadParameter: there is no KEY=.
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE")
    return key, value


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("reflect")(reflect)


def reflect(
    cli: Cli,
    *,
    analysis: Annotated[
        AnalysisChoice, typer.Argument(metavar="ANALYSIS", help="The analysis; see above.")
    ],
    chosen: Annotated[
        Any,
        Fields(
            agent_id=Agent, start_time=From, end_time=To, project=Project, user_id=User, tags=Tags
        ),
    ],
    limit: Annotated[
        int,
        typer.Option(
            "--limit", "-n", min=1, max=100, help="Maximum number of patterns, sequences, …"
        ),
    ] = 10,
    param: Annotated[
        list[Any] | None,
        typer.Option(
            parser=parameter,
            metavar="KEY=VALUE",
            help="A parameter of the analysis, e.g. model=NAME, window=2, bucket=day; repeatable. "
            "docs/reflect.md lists them.",
        ),
    ] = None,
    tables: Annotated[
        bool, typer.Option("--tables", help="Show the tables, too, with all figures.")
    ] = False,
) -> None:
    """Show patterns in what agents did.

    error_patterns: which errors recur, what comes before them, how their sessions end, and what
    followed when a session succeeded anyway.
    tool_sequences: which sequences of tools are common, and which come before errors, failure and
    success.
    cost_analysis: what was spent, on what, and whether it rises.
    performance_trends: whether success rate, latency and throughput change.
    session_comparison: how recent sessions differ from earlier ones; success by task, tag, project,
    agent and user.

    "2.3× (1.4–3.8)" is how much likelier something is, with its 95 % interval; q is the share of
    false findings to expect among those as sure as this one.
    """
    given: dict[str, Any] = {analysis: _params(analysis, param)} if param else {}
    with cli.connect() as client:
        answer = client.reflect(
            analysis,
            **chosen,
            limit=limit,
            timeout=cli.settings.timeout or _PATIENCE_S,
            **given,
        )
    if cli.out.as_json:
        cli.out.message(answer)
        return
    cli.out.line(_looked_at(answer))
    if answer.insights or (answer.metadata.sessions_analyzed and not tables):
        _show_findings(cli.out, answer)
    if tables:
        from mneme.cli.reflect_tables import show_result

        show_result(cli.out, answer)
    if answer.caveat:
        cli.out.remark(cells.preview(answer.caveat))
    for note in answer.metadata.notes:
        cli.out.remark(f"Note: {cells.preview(note)}")


def _show_findings(out: Output, answer: ReflectResponse) -> None:
    """Write what was found, what bears on most first."""
    if not answer.insights:
        out.line("Nothing to tell: see --tables for the figures.")
    for number, insight in enumerate(answer.insights, start=1):
        out.line(f"{number}. {cells.clean(insight.summary)}")


def _params(analysis: AnalysisChoice, given: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The parameters, those that are numbers as numbers."""
    from mneme.messages import ReflectRequest

    holder = ReflectRequest.DESCRIPTOR.fields_by_name[analysis].message_type
    assert holder is not None  # Every analysis has its parameters under its own name.
    known = holder.fields_by_name
    params: dict[str, Any] = {}
    for key, text in given:
        if key not in known:
            raise InputError(f"--param {key}: {analysis} has {', '.join(known)}")
        kind = known[key].type
        if kind == known[key].TYPE_INT32:
            params[key] = _number(key, text, int, "whole number")
        elif kind == known[key].TYPE_DOUBLE:
            params[key] = _number(key, text, float, "number")
        else:
            params[key] = text
    return params


def _number(key: str, text: str, kind: Callable[[str], float], name: str) -> float:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"--param {key}: {text!r} is not a {name}") from None


def _looked_at(answer: ReflectResponse) -> str:
    scope = answer.metadata
    if not scope.sessions_analyzed:
        return "Nothing recorded passes the filters."
    found = (
        f"{cells.plural(scope.sessions_analyzed, 'session')}, "
        f"{cells.plural(scope.events_analyzed, 'event')}"
    )
    if scope.start_time:
        found += f", {cells.when(scope.start_time)} to {cells.when(scope.end_time)}"
    return found
