"""`mneme alerts`: rules that watch what is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mneme._generated.choices import AlertConditionChoice, AlertStateChoice, AlertTrendChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.fields import Fields, argument, choice, number, option, text, texts
from mneme.cli.options import Agent, Etag, Project, Tags
from mneme.cli.output import Column
from mneme.cli.resources import Resource
from mneme.cli.times import From, To
from mneme.cli.values import number_or_empty, without_empty

if TYPE_CHECKING:
    from mneme.types import AlertHistoryEntry, AlertRule

app = App(help="Alerts: rules that watch what is recorded, and whom they notify.")


def _state(rule: AlertRule) -> str:
    state = cells.name(rule.state) if rule.enabled else "disabled"
    return f"{state}, held back" if rule.notify_held_reason else state


def _threshold(rule: AlertRule) -> str:
    """What the value must exceed; silence has no such thing."""
    return "" if rule.condition == "no_events_for" else f"{rule.threshold:g}"


def _where(rule: AlertRule) -> str:
    scope = rule.scope
    return ", ".join(one for one in (scope.agent_id, scope.project, *scope.tags) if one)


def _told(entry: AlertHistoryEntry) -> str:
    done = sum(one.state == "delivered" for one in entry.deliveries)
    return f"{done} of {len(entry.deliveries)}" if entry.deliveries else ""


_TRIED_COLUMNS = (
    Column("Would trigger", "triggered_at"),
    Column("Would resolve", "resolved_at"),
    Column("Value", "current_value:.4g", right=True),
    Column("Highest", "highest_value:.4g", right=True),
)
_SENT_COLUMNS = (
    Column("Channel", "channel", style="cyan"),
    Column("Became", "state"),
    Column("Why", "error"),
)
_NOTIFY = "Whom to notify: https://… or mailto:…; repeatable."
_TREND = "What gets worse, for trend_exceeds."
_PATTERN = text("What errors' messages say, for error_pattern_exceeds.")
_SCOPE = Fields(agent_id=Agent, project=Project, tags=Tags)
_THRESHOLD = number("It triggers when the value is higher; default: 0.", min=0)
_WINDOW = Fields(
    min_events=number("With fewer events it does not trigger.", kind=int, min=0),
    window_minutes=number("How far back it looks.", "--window", kind=int, min=1, metavar="MINUTES"),
)
_WHEN = Fields(
    threshold=_THRESHOLD,
    resolve_threshold=number("It resolves at this value; default: the threshold.", min=0),
    **_WINDOW,
)
RuleId = Annotated[str, typer.Argument(metavar="RULE", help="The rule's id.")]

_rules = Resource(
    app,
    "rule",
    key=Fields(rule_id=RuleId),
    columns=(
        Column("State", _state),
        Column("Name", lambda it: cells.preview(it.name, 60), style="cyan"),
        Column("Condition", "condition"),
        Column("Threshold", _threshold, right=True),
        Column("Minutes", "window_minutes", right=True),
        Column("Scope", lambda it: cells.preview(_where(it), 60), optional=2),
        Column("Last triggered", "last_triggered_at", optional=1),
        Column("Rule", "id", style="dim"),
        Column("Key", "notify_key_id", optional=3),
    ),
    facts={
        "Name": "name",
        "State": _state,
        "Condition": "condition",
        "Pattern": "pattern",
        "Trend": "trend",
        "Threshold": _threshold,
        "Resolves at": "resolve_threshold:g",
        "Least events": "min_events",
        "Minutes": "window_minutes",
        "Scope": _where,
        "Tells": lambda it: cells.clean(", ".join(it.notify_channels)),
        "Held back": lambda it: cells.clean(it.notify_held_reason.removeprefix("held back: ")),
        "Set by key": "notify_key_id",
        "Last triggered": "last_triggered_at",
        "Created": "created_at",
        "Changed": "updated_at",
        "Etag": "etag",
    },
)
_rules.create(
    "create_alert_rule",
    "Create a rule.",
    Fields(
        name=argument("NAME", "What it is called."),
        condition=argument(None, kind=AlertConditionChoice, case_sensitive=False),
        **_WHEN,
        scope=_SCOPE,
        notify_channels=texts(_NOTIFY, "--notify", metavar="URL"),
        pattern=_PATTERN,
        trend=choice(AlertTrendChoice, _TREND),
        rule_id=text("Its id.", "--id"),
    ),
    said="created {0.id}: {0.name}",
)
_rules.list(
    "iter_alert_rules",
    "List rules, latest first.",
    Fields(state=choice(AlertStateChoice, "Only those in this state.")),
)
_rules.get("get_alert_rule", "Show one rule.")


@app.command()
def update(
    cli: Cli,
    rule_id: RuleId,
    *,
    changed: Annotated[
        Any,
        Fields(
            name=text("What it is called."),
            enabled=option(bool | None, "Whether it is watched.", "--enable/--disable"),
            condition=choice(AlertConditionChoice, "What it watches from now on."),
            threshold=_THRESHOLD,
            resolve_threshold=option(
                Any,
                'It resolves at this; "": threshold.',
                parser=number_or_empty,
                metavar="NUMBER",
            ),
            **_WINDOW,
            scope=Fields(
                agent_id=Agent,
                project=Project,
                tags=texts(
                    "The labels from now on; repeatable.",
                    "--tag",
                    metavar="TAG",
                    sent=without_empty,
                ),
            ),
            notify_channels=texts(_NOTIFY, "--notify", metavar="URL", sent=without_empty),
            pattern=_PATTERN,
            trend=choice(Literal[AlertTrendChoice, ""], _TREND),
        ),
    ],
) -> None:
    """Change a rule; what is not given stays as it is, and "" lifts a restriction."""
    from mneme.plain import to_dict

    if not changed:
        raise typer.BadParameter("say what to change; --help lists what can be")
    with cli.connect() as client:
        if "scope" in changed:  # The API changes a scope as a whole.
            known = client.get_alert_rule(rule_id).rule.scope
            changed["scope"] = {**to_dict(known), **changed["scope"]}
        new = {field: value for field, value in changed.items() if value != ""}
        cleared: Any = [field for field in changed if field not in new]
        rule = client.update_alert_rule(rule_id, **new, clear=cleared).rule
    cli.out.done(f"changed {rule.id}: {', '.join(changed)}", rule)


_rules.change(
    "delete",
    "delete_alert_rule",
    "Delete a rule; its history stays.",
    Fields(etag=Etag),
    said="deleted {rule_id}: {0.name}",
    confirm="Delete the alert rule {rule_id}?",
)

_history = Resource(
    app,
    columns=(
        Column("Triggered", "triggered_at"),
        Column("Resolved", "resolved_at"),
        Column("Name", lambda it: cells.preview(it.rule_name, 60), style="cyan"),
        Column("What happened", lambda it: cells.preview(it.message, 200)),
        Column("Told", _told, optional=1),
        Column("Rule", "rule_id", style="dim", optional=2),
    ),
)
_history.list(
    "iter_alert_history",
    "List what was triggered, latest first.",
    Fields(
        rule_id=text("Only by this rule.", "--rule", metavar="RULE"),
        state=option(
            bool,
            "Only what is not resolved.",
            "--open",
            sent=lambda still: "triggered" if still else None,
        ),
        start_time=From,
        end_time=To,
    ),
    name="history",
)


@app.command()
def test(cli: Cli, rule_id: RuleId) -> None:
    """Send a test to each of a rule's channels."""
    with cli.connect() as client:
        answer = client.test_alert_rule(rule_id)
    if cli.out.as_json:
        cli.out.message(answer)
        return
    cli.out.things(_SENT_COLUMNS, answer.deliveries)


@app.command("try")
def try_(
    cli: Cli,
    *,
    rule_id: Annotated[
        str | None, typer.Argument(metavar="RULE", help="An existing rule, by its id.")
    ] = None,
    condition: Annotated[
        AlertConditionChoice | None,
        typer.Option(case_sensitive=False, help="Instead of a rule: what to watch."),
    ] = None,
    rule: Annotated[Any, Fields(**_WHEN, scope=_SCOPE, pattern=_PATTERN)],
    start: From = None,
    end: To = None,
) -> None:
    """Try a rule against the past: when it would have triggered in the last week."""
    if (rule_id is None) == (condition is None):
        raise typer.BadParameter("name a rule, or say with --condition what to watch")
    asked: Any = rule if condition is None else {"condition": condition, **rule}
    if rule_id is not None and asked:
        raise typer.BadParameter("a rule that is there is tried as it is")
    with cli.connect() as client:
        answer = client.try_alert_rule(
            rule=asked or None,
            rule_id=rule_id,
            start_time=start,
            end_time=end,
        )
    if cli.out.as_json:
        cli.out.message(answer)
        return
    cli.out.things(_TRIED_COLUMNS, answer.alerts)
    cli.out.remark(
        f"It {answer.summary}; the value is {answer.current_value:.4g} now and was"
        f" {answer.highest_value:.4g} at most."
    )
    if answer.truncated:
        cli.out.remark("Only the latest million events were looked at.")


@app.command()
def secret(
    cli: Cli,
    *,
    rotate: Annotated[bool, typer.Option("--rotate", help="Make a new one.")] = False,
) -> None:
    """Show the secret that webhooks are signed with."""
    with cli.connect() as client:
        answer = client.rotate_webhook_secret() if rotate else client.get_webhook_secret()
    cli.out.done(answer.secret, answer)
