"""How a learning session does, on a terminal: once, or drawn again as it learns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING

import typer

from mneme.cli import cells, exits
from mneme.cli import learning_views as views
from mneme.cli.app import Cli
from mneme.cli.output import terminal

if TYPE_CHECKING:
    from mneme.types import GetLearningMetricsResponse, TrainResponse

CHART_WIDTH = 70


def watch(cli: Cli, ask: Callable[[], GetLearningMetricsResponse], every: float) -> None:
    """On a terminal the same lines are drawn again; elsewhere each change is a line."""
    from rich.live import Live
    from rich.text import Text

    console = terminal()
    drawn = console.is_terminal and not cli.out.as_json
    last = None
    try:
        with Live(console=console, auto_refresh=False) if drawn else nullcontext() as live:
            while True:
                answer = ask()
                if live is not None:
                    live.update(Text("\n".join(lines_of(answer))), refresh=True)
                elif answer.raw != last:
                    last = answer.raw
                    if cli.out.as_json:
                        cli.out.message(answer)
                    else:
                        cli.out.line(views.standing(answer.metrics))
                    cli.out.flush()
                time.sleep(every)
    except KeyboardInterrupt:
        raise typer.Exit(exits.INTERRUPTED) from None


def lines_of(answer: GetLearningMetricsResponse) -> list[str]:
    """How a session does, line by line: figures, the chart, and what was judged."""
    facts = [pair for pair in views.metrics_facts(answer.metrics) if pair[1]]
    width = max(len(name) for name, _ in facts)
    shown = [f"{name:<{width}}  {text}".rstrip() for name, text in facts]
    shown += views.reward_chart(answer.metrics.history, CHART_WIDTH)
    judged = cells.preview(answer.evaluation.summary)
    return [*shown, "", judged] if judged else shown


def follow(cli: Cli, messages: Iterable[TrainResponse]) -> None:
    """Show how far training is: on a terminal as it goes, then, or elsewhere, at its end."""
    console = terminal(stderr=True)
    shown = console.is_terminal and not cli.out.as_json
    last = None
    try:
        with console.status("training") if shown else nullcontext() as status:
            for message in messages:
                last = message
                if status is not None:
                    status.update(views.trained(message))
                elif cli.out.as_json:
                    cli.out.message(message)
                    cli.out.flush()
    except KeyboardInterrupt:
        done = last.steps_completed if last is not None else 0
        cli.out.remark(f"stopped after {cells.plural(done, 'step')}; what was learned is kept")
        raise typer.Exit(exits.INTERRUPTED) from None
    if last is not None and not cli.out.as_json:
        cli.out.line(views.trained(last))
