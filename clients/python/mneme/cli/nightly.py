"""`mneme causal nightly`: whether the server discovers by itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from mneme.cli import cells
from mneme.cli.app import Cli
from mneme.cli.options import Project, Tags

if TYPE_CHECKING:
    from mneme.types import DiscoveryQuestionFields, DiscoverySchedule


_OF_A_DAY = re.compile("([01][0-9]|2[0-3]):[0-5][0-9]")


def _clock(text: str) -> str:
    if not _OF_A_DAY.fullmatch(text):
        raise typer.BadParameter("must be a time of the day such as 03:00")
    return text


def nightly(
    cli: Cli,
    *,
    at: Annotated[
        Any,
        typer.Option(
            parser=_clock, metavar="HH:MM", help="Discover every night at this time of UTC."
        ),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Stop doing so.")] = False,
    project: Project = None,
    tag: Tags = None,
    adjust_for: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What else was known before; repeatable."),
    ] = None,
    fdr: Annotated[
        float | None, typer.Option(max=0.5, help="The share of what is found that may be chance.")
    ] = None,
) -> None:
    """Show whether the server discovers every night; --at turns that on, --off turns it off."""
    if at is not None and off:
        raise typer.BadParameter("--at and --off say the opposite of each other")
    given: dict[str, Any] = {
        "filter": None if project is None and tag is None else {"project": project, "tags": tag},
        "adjust_for": adjust_for,
        "fdr": fdr,
    }
    if at is None and any(given.values()):
        raise typer.BadParameter("say with --at when to discover that")
    with cli.connect() as client:
        if at is not None:
            question = {name: value for name, value in given.items() if value}
            schedule = client.update_discovery_schedule(
                enabled=True, time=at, question=cast("DiscoveryQuestionFields", question)
            ).schedule
        elif off:
            schedule = client.update_discovery_schedule(enabled=False).schedule
        else:
            schedule = client.get_discovery_schedule().schedule
    if cli.out.as_json:
        cli.out.message(schedule)
        return
    cli.out.facts(_facts(schedule))


def _facts(schedule: DiscoverySchedule) -> list[tuple[str, str]]:
    asked = schedule.question
    facts = [
        ("Every night", f"at {schedule.time} UTC" if schedule.enabled else "no"),
        ("Next", cells.when(schedule.next_run_at)),
        ("Last", cells.when(schedule.last_run_at)),
        ("Operation", schedule.last_operation_id),
        ("Project", asked.filter.project if asked.filter else ""),
        ("Tags", ", ".join(asked.filter.tags) if asked.filter else ""),
        ("Adjusted for", ", ".join(asked.adjust_for)),
    ]
    return [(name, value) for name, value in facts if value]
