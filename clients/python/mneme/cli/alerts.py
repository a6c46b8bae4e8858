"""`mneme alerts`: rules that watch what is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from mneme._generated.choices import AlertConditionChoice, AlertTrendChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.options import Agent, Limit, Project, Tags, Yes, listed, page_size
from mneme.cli.output import Column
from mneme.cli.times import From, To
from mneme.cli.values import number_or_empty

if TYPE_CHECKING:
    from mneme.types import (
        AlertDelivery,
        AlertHistoryEntry,
        AlertRule,
        AlertRuleFields,
        AlertScopeFields,
        TriedAlert,
    )

app = App(help="Alerts: rules that watch what is recorded, and whom they notify.")

_COLUMNS = (
    Column("State"),
    Column("Name", style="cyan"),
    Column("Condition"),
    Column("Threshold", right=True),
    Column("Minutes", right=True),
    Column("Scope", optional=2),
    Column("Last triggered", optional=1),
    Column("Rule", style="dim"),
    Column("Key", optional=3),
)
_HISTORY_COLUMNS = (
    Column("Triggered"),
    Column("Resolved"),
    Column("Name", style="cyan"),
    Column("What happened"),
    Column("Told", optional=1),
    Column("Rule", style="dim", optional=2),
)
_TRIED_COLUMNS = (
    Column("Would trigger"),
    Column("Would resolve"),
    Column("Value", right=True),
    Column("Highest", right=True),
)
_SENT_COLUMNS = (Column("Channel", style="cyan"), Column("Became"), Column("Why"))

RuleId = Annotated[str, typer.Argument(metavar="RULE", help="The rule's id.")]
Condition = Annotated[AlertConditionChoice, typer.Argument(case_sensitive=False)]
Threshold = Annotated[
    float | None, typer.Option(min=0, help="It triggers when the value is higher; default: 0.")
]
ResolveAt = Annotated[
    float | None, typer.Option(min=0, help="It resolves at this value; default: the threshold.")
]
Least = Annotated[int | None, typer.Option(min=0, help="With fewer events it does not trigger.")]
Window = Annotated[
    int | None, typer.Option("--window", min=1, metavar="MINUTES", help="How far back it looks.")
]
Notify = Annotated[
    list[str] | None,
    typer.Option(metavar="URL", help="Whom to notify: https://… or mailto:…; repeatable."),
]
Pattern = Annotated[
    str | None, typer.Option(help="What errors' messages say, for error_pattern_exceeds.")
]
Trend = Annotated[
    AlertTrendChoice | None,
    typer.Option(case_sensitive=False, help="What gets worse, for trend_exceeds."),
]


@app.command()
def create(
    cli: Cli,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.")],
    condition: Condition,
    threshold: Threshold = None,
    resolve_threshold: ResolveAt = None,
    min_events: Least = None,
    window: Window = None,
    agent: Agent = None,
    project: Project = None,
    tag: Tags = None,
    notify: Notify = None,
    pattern: Pattern = None,
    trend: Trend = None,
    rule_id: Annotated[str | None, typer.Option("--id", help="Its id.")] = None,
) -> None:
    """Create a rule."""
    with cli.connect() as client:
        rule = client.create_alert_rule(
            name,
            condition,
            threshold=threshold,
            resolve_threshold=resolve_threshold,
            min_events=min_events,
            window_minutes=window,
            scope=_scope(agent, project, tag),
            notify_channels=notify,
            pattern=pattern,
            trend=trend,
            rule_id=rule_id,
        ).rule
    cli.out.done(f"created {rule.id}: {rule.name}", rule)


@app.command("list")
def list_(cli: Cli, *, limit: Limit = 50) -> None:
    """List rules, latest first."""
    with cli.connect() as client:
        walk = client.iter_alert_rules(page_size=page_size(limit))
        listed(cli.out, walk, limit, _COLUMNS, _row)


@app.command()
def get(cli: Cli, rule_id: RuleId) -> None:
    """Show one rule."""
    with cli.connect() as client:
        rule = client.get_alert_rule(rule_id).rule
    if cli.out.as_json:
        cli.out.message(rule)
    else:
        cli.out.facts(_facts(rule))


@app.command()
def update(
    cli: Cli,
    rule_id: RuleId,
    *,
    name: Annotated[str | None, typer.Option(help="What it is called.")] = None,
    enabled: Annotated[
        bool | None, typer.Option("--enable/--disable", help="Whether it is watched.")
    ] = None,
    condition: Annotated[
        AlertConditionChoice | None,
        typer.Option(case_sensitive=False, help="What it watches from now on."),
    ] = None,
    threshold: Threshold = None,
    resolve_threshold: Annotated[
        Any,
        typer.Option(
            parser=number_or_empty, metavar="NUMBER", help='It resolves at this; "": threshold.'
        ),
    ] = None,
    min_events: Least = None,
    window: Window = None,
    agent: Agent = None,
    project: Project = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="The labels from now on; repeatable."),
    ] = None,
    notify: Notify = None,
    pattern: Pattern = None,
    trend: Annotated[
        Literal[AlertTrendChoice, ""] | None,
        typer.Option(case_sensitive=False, help="What gets worse, for trend_exceeds."),
    ] = None,
) -> None:
    """Change a rule; what is not given stays as it is, and "" lifts a restriction."""
    from mneme.plain import to_dict

    given: dict[str, Any] = {
        "name": name,
        "enabled": enabled,
        "condition": condition,
        "threshold": threshold,
        "resolve_threshold": resolve_threshold,
        "min_events": min_events,
        "window_minutes": window,
        "scope": _given(agent_id=agent, project=project, tags=_filled(tag)) or None,
        "notify_channels": _filled(notify),
        "pattern": pattern,
        "trend": trend,
    }
    changed = _given(**given)
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


@app.command()
def delete(cli: Cli, *, rule_id: RuleId, yes: Yes = False) -> None:
    """Delete a rule; its history stays."""
    if not yes:
        typer.confirm(f"Delete the alert rule {rule_id}?", abort=True, err=True)
    with cli.connect() as client:
        gone = client.delete_alert_rule(rule_id).rule
    cli.out.done(f"deleted {rule_id}: {gone.name}", gone)


@app.command()
def history(
    cli: Cli,
    *,
    rule: Annotated[str | None, typer.Option(metavar="RULE", help="Only by this rule.")] = None,
    still: Annotated[bool, typer.Option("--open", help="Only what is not resolved.")] = False,
    start: From = None,
    end: To = None,
    limit: Limit = 50,
) -> None:
    """List what was triggered, latest first."""
    with cli.connect() as client:
        walk = client.iter_alert_history(
            rule_id=rule,
            state="triggered" if still else None,
            start_time=start,
            end_time=end,
            page_size=page_size(limit),
        )
        listed(cli.out, walk, limit, _HISTORY_COLUMNS, _entry_row)


@app.command()
def test(cli: Cli, rule_id: RuleId) -> None:
    """Send a test to each of a rule's channels."""
    with cli.connect() as client:
        answer = client.test_alert_rule(rule_id)
    if cli.out.as_json:
        cli.out.message(answer)
        return
    rows = [[one.channel, cells.name(one.state), one.error] for one in answer.deliveries]
    cli.out.table(_SENT_COLUMNS, rows)


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
    threshold: Threshold = None,
    resolve_threshold: ResolveAt = None,
    min_events: Least = None,
    window: Window = None,
    agent: Agent = None,
    project: Project = None,
    tag: Tags = None,
    pattern: Pattern = None,
    start: From = None,
    end: To = None,
) -> None:
    """Try a rule against the past: when it would have triggered in the last week."""
    if (rule_id is None) == (condition is None):
        raise typer.BadParameter("name a rule, or say with --condition what to watch")
    given: dict[str, Any] = {
        "condition": condition,
        "threshold": threshold,
        "resolve_threshold": resolve_threshold,
        "min_events": min_events,
        "window_minutes": window,
        "scope": _scope(agent, project, tag),
        "pattern": pattern,
    }
    asked = _given(**given)
    if rule_id is not None and asked:
        raise typer.BadParameter("a rule that is there is tried as it is")
    with cli.connect() as client:
        answer = client.try_alert_rule(
            rule=cast("AlertRuleFields", asked) if asked else None,
            rule_id=rule_id,
            start_time=start,
            end_time=end,
        )
    if cli.out.as_json:
        cli.out.message(answer)
        return
    cli.out.table(_TRIED_COLUMNS, [_tried_row(one) for one in answer.alerts])
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


def _scope(
    agent: str | None, project: str | None, tags: list[str] | None
) -> AlertScopeFields | None:
    given = {"agent_id": agent, "project": project, "tags": tags}
    found = {field: value for field, value in given.items() if value}
    return cast("AlertScopeFields", found) if found else None


def _given(**values: Any) -> dict[str, Any]:
    return {field: value for field, value in values.items() if value is not None}


def _filled(texts: list[str] | None) -> list[str] | None:
    """The texts but empty ones: a single empty one leaves none of a list."""
    return None if texts is None else [text for text in texts if text]


def _where(rule: AlertRule) -> str:
    scope = rule.scope
    return ", ".join(one for one in (scope.agent_id, scope.project, *scope.tags) if one)


def _state(rule: AlertRule) -> str:
    state = cells.name(rule.state) if rule.enabled else "disabled"
    return f"{state}, held back" if rule.notify_held_reason else state


def _threshold(rule: AlertRule) -> str:
    """What the value must exceed; silence has no such thing."""
    return "" if rule.condition == "no_events_for" else f"{rule.threshold:g}"


def _row(rule: AlertRule) -> list[str]:
    return [
        _state(rule),
        cells.preview(rule.name, 60),
        cells.name(rule.condition),
        _threshold(rule),
        cells.count(rule.window_minutes),
        cells.preview(_where(rule), 60),
        cells.when(rule.last_triggered_at),
        rule.id,
        rule.notify_key_id,
    ]


def _facts(rule: AlertRule) -> list[tuple[str, str]]:
    lower = rule.resolve_threshold
    facts = [
        ("Name", rule.name),
        ("State", _state(rule)),
        ("Condition", cells.name(rule.condition)),
        ("Pattern", rule.pattern),
        ("Trend", cells.name(rule.trend)),
        ("Threshold", _threshold(rule)),
        ("Resolves at", "" if lower is None else f"{lower:g}"),
        ("Least events", cells.count(rule.min_events)),
        ("Minutes", cells.count(rule.window_minutes)),
        ("Scope", _where(rule)),
        ("Tells", ", ".join(rule.notify_channels)),
        ("Held back", rule.notify_held_reason.removeprefix("held back: ")),
        ("Set by key", rule.notify_key_id),
        ("Last triggered", cells.when(rule.last_triggered_at)),
        ("Created", cells.when(rule.created_at)),
        ("Changed", cells.when(rule.updated_at)),
    ]
    return [(name, value) for name, value in facts if value]


def _entry_row(entry: AlertHistoryEntry) -> list[str]:
    return [
        cells.when(entry.triggered_at),
        cells.when(entry.resolved_at),
        cells.preview(entry.rule_name, 60),
        cells.preview(entry.message, 200),
        _told(entry.deliveries),
        entry.rule_id,
    ]


def _told(deliveries: list[AlertDelivery]) -> str:
    done = sum(one.state == "delivered" for one in deliveries)
    return f"{done} of {len(deliveries)}" if deliveries else ""


def _tried_row(one: TriedAlert) -> list[str]:
    return [
        cells.when(one.triggered_at),
        cells.when(one.resolved_at),
        f"{one.current_value:.4g}",
        f"{one.highest_value:.4g}",
    ]
