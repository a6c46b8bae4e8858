"""`alert_*`: rules that watch what is recorded, and tell somebody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from mneme import to_dict
from mneme.types import AlertConditionChoice, AlertRuleFields, AlertScopeFields, AlertTrendChoice
from pydantic import (
    Field,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)

from mneme_mcp.arguments import EndTime, Labels, SnakeArguments, Time, Word
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import Name, SnakeOutput
from mneme_mcp.text import counted, quoted_lines
from mneme_mcp.tool import Call, Reply, ToolSpec

RuleId = Annotated[str, Field(min_length=1, max_length=200, description="The rule's id.")]
_LIFTABLE = ("resolve_threshold", "pattern", "trend")
"""What an empty text lifts."""
_Threshold = Annotated[float, Field(ge=0)]


def _unless_empty(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    return value if value == "" else check(value)


class WatchedArguments(SnakeArguments):
    """What a rule watches. What is left out is as it is, or the default."""

    whose = "said"

    synonyms = {"channels": "notify_channels", "notify": "notify_channels"}

    threshold: Annotated[
        float | None, Field(ge=0, description="Triggers above this value; 5 % is 0.05.")
    ] = None
    resolve_threshold: Annotated[
        float | None,
        Field(ge=0, description="Resolves at this value or below; default, or empty: threshold."),
        WrapValidator(_unless_empty, json_schema_input_type=_Threshold | Literal[""]),
        WithJsonSchema({"minimum": 0, "type": "number"}),
    ] = None
    min_events: Annotated[
        int | None, Field(ge=1, description="It needs this many events to trigger; default 1.")
    ] = None
    window_minutes: Annotated[
        int | None, Field(ge=1, le=43_200, description="How far back it looks; default 60.")
    ] = None
    agent_id: Annotated[str | None, Field(description="Only what this agent does; empty: any.")] = (
        None
    )
    project: Annotated[
        str | None, Field(description="Only what belongs to this project; empty: any.")
    ] = None
    tags: Annotated[
        Labels | None, Field(description="Only sessions with all of these labels; []: any.")
    ] = None
    pattern: Annotated[
        str | None,
        Field(description="For error_pattern_exceeds: a part of the messages; empty: none."),
    ] = None

    def watched(self) -> dict[str, Any]:
        """What was given and is not empty, as the API takes it."""
        plain = ("threshold", "min_events", "window_minutes", *_LIFTABLE)
        values = {name: getattr(self, name, None) for name in plain}  # No trend can be tried.
        values["scope"] = self.scope() or None
        return {name: value for name, value in values.items() if value not in (None, "")}

    def lifted(self) -> list[str]:
        """What was given empty."""
        return [name for name in _LIFTABLE if getattr(self, name) == ""]

    def scope(self) -> AlertScopeFields:
        """What of the scope was given."""
        names = ("agent_id", "project", "tags")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        return cast("AlertScopeFields", given)


class KeptArguments(WatchedArguments):
    """What a rule watches that is kept."""

    trend: Annotated[
        Literal[AlertTrendChoice, ""] | None,
        Word,
        Field(description="For trend_exceeds: what gets worse; empty: nothing."),
    ] = None


class CreateArguments(KeptArguments):
    """A rule to create."""

    name: Annotated[str, Field(min_length=1, max_length=200, description="The rule's name.")]
    condition: Annotated[AlertConditionChoice, Word, Field(description="What it watches.")]
    notify_channels: Annotated[
        Labels, Field(description="Whom it notifies: https://… or mailto:…; empty: history only.")
    ] = []
    rule_id: Annotated[
        str, Field(max_length=193, description="Your own id for it, so that retries do no harm.")
    ] = ""


class ScopeOutput(SnakeOutput):
    """What a rule looks at; all, where it is empty."""

    agent_id: str = ""
    project: str = ""
    tags: list[str] = []

    def words(self) -> str:
        """The scope, to follow what is watched."""
        parts = {"agent": self.agent_id, "project": self.project, "tags": " and ".join(self.tags)}
        return "".join(f", {name} {value}" for name, value in parts.items() if value)


class RuleOutput(SnakeOutput):
    """A rule."""

    rule_id: str
    name: str
    condition: Name
    state: Name = ""
    enabled: bool = False
    threshold: float = 0
    window_minutes: int = 0
    notify_channels: list[str] = []
    notify_held_reason: str = ""
    last_triggered_at: str = ""
    scope: ScopeOutput = ScopeOutput()

    api_names = {"id": "rule_id"}

    def line(self) -> str:
        """The rule in a line."""
        stands = self.state if self.enabled else "disabled"
        held = f"; {self.notify_held_reason}" if self.notify_held_reason else ""
        above = "" if self.condition == "no_events_for" else f" {self.threshold:g}"
        return (
            f"[id {self.rule_id}] {self.name}: {self.condition}{above} in"
            f" {counted(self.window_minutes, 'minute')}{self.scope.words()}, {stands}{held}"
        )


async def create(call: Call, given: CreateArguments) -> Reply:
    """Answer `alert_create`."""
    answer = await call.client.create_alert_rule(
        given.name,
        given.condition,
        notify_channels=given.notify_channels,
        rule_id=given.rule_id or None,
        **given.watched(),
    )
    return _rule("It watches from now on.", to_dict(answer)["rule"])


def _rule(said: str, rule: Mapping[str, Any]) -> Reply:
    made = RuleOutput.model_validate(rule)
    return Reply(f"{made.line()}. {said}", made)


class UpdateArguments(KeptArguments):
    """What of a rule is to be another."""

    holders = {"rule.id": "rule_id"}

    rule_id: RuleId
    name: Annotated[str, Field(max_length=200, description="The rule's new name.")] = ""
    condition: Annotated[
        Literal[AlertConditionChoice, ""], Word, Field(description="What it watches from now on.")
    ] = ""
    enabled: Annotated[bool | None, Field(description="Whether it watches.")] = None
    notify_channels: Annotated[
        Labels | None, Field(description="Whom it notifies from now on; []: nobody.")
    ] = None

    @model_validator(mode="after")
    def _changes_something(self) -> UpdateArguments:
        if not self.changes():
            raise ValueError("give what to change")
        return self

    def changes(self) -> dict[str, Any]:
        """What is to be another, as the API takes it."""
        changes = self.watched()
        if lifted := self.lifted():
            changes["clear"] = lifted
        for name in ("name", "condition"):
            if value := getattr(self, name):
                changes[name] = value
        for name in ("enabled", "notify_channels"):
            if (value := getattr(self, name)) is not None:
                changes[name] = value
        return changes


async def update(call: Call, given: UpdateArguments) -> Reply:
    """Answer `alert_update`."""
    changes = given.changes()
    if "scope" in changes:  # The API changes a scope as a whole.
        rule = (await call.client.get_alert_rule(given.rule_id)).rule
        changes["scope"] = {**to_dict(rule.scope), **changes["scope"]}
    answer = await call.client.update_alert_rule(given.rule_id, **changes)
    return _rule("Changed.", to_dict(answer)["rule"])


@offers("delete_alert_rule", rule_id=...)
class DeleteArguments(SnakeArguments):
    """A rule to delete."""


async def delete(call: Call, given: DeleteArguments) -> Reply:
    """Answer `alert_delete`."""
    answer = await call.client.delete_alert_rule(**given.request())
    return _rule("Deleted; its history stays.", to_dict(answer)["rule"])


@offers(
    "list_alert_rules",
    state="Only rules in this state; empty: all.",
    limit=Offer("Maximum rules.", most=200),
)
class ListArguments(SnakeArguments):
    """Which rules."""


class ListOutput(SnakeOutput):
    """Rules, the latest first."""

    rules: list[RuleOutput]
    total: int = 0


async def list_rules(call: Call, given: ListArguments) -> Reply:
    """Answer `alert_list`."""
    answer = to_dict(await call.client.list_alert_rules(**given.request()))
    rules = [RuleOutput.model_validate(one) for one in answer["rules"]]
    found = ListOutput(rules=rules, total=answer["total_size"])
    if not rules:
        return Reply("There are no such rules.", found)
    return Reply(quoted_lines("", [one.line() for one in rules]), found)


class TryArguments(WatchedArguments):
    """A rule to try against the past."""

    rule_id: Annotated[str, Field(description="An existing rule; or else give a condition.")] = ""
    condition: Annotated[
        Literal[AlertConditionChoice, ""], Word, Field(description="What it would watch.")
    ] = ""
    from_: Annotated[
        Time | None, Field(alias="from", description="Since when; default: a week ago.")
    ] = None
    to: Annotated[EndTime | None, Field(description="Until when; default: now.")] = None

    @model_validator(mode="after")
    def _is_one_rule(self) -> TryArguments:
        watched = self.watched().keys() - {"scope"} or any(self.scope().values())
        if self.rule_id and (self.condition or watched):
            raise ValueError(
                "a rule that is there is tried as it is: with a rule_id, give only from and to"
            )
        return self


class TryOutput(SnakeOutput):
    """What would have been."""

    summary: str
    alert_count: int
    current_value: float = 0
    highest_value: float = 0
    searched_count: int = 0


async def try_rule(call: Call, given: TryArguments) -> Reply:
    """Answer `alert_try`."""
    if given.rule_id:
        asked: dict[str, Any] = {"rule_id": given.rule_id}
    else:
        asked = {"rule": cast("AlertRuleFields", {"condition": given.condition or None})}
        asked["rule"] |= given.watched()
    answer = to_dict(
        await call.client.try_alert_rule(**asked, start_time=given.from_, end_time=given.to)
    )
    found = TryOutput.model_validate(answer)
    return Reply(f"It {found.summary}.", found)


_IF_MISSING = "alert_list lists the rules."

TOOLS = (
    ToolSpec(
        name="alert_create",
        title="Create an alert rule",
        description=(
            "Creates a rule that watches what is recorded: errors, cost, latency, silence, failed "
            "sessions, an error's message, a trend. It notifies its channels once when it triggers "
            "and once when it resolves.\n"
            "Use it when somebody should be told if something happens again; try the rule first "
            "with alert_try.\n"
            "Returns the rule.\n"
            'Example: {"name": "Checkout fails", "condition": "error_rate_exceeds", "threshold": '
            '0.2, "window_minutes": 15, "min_events": 20, "project": "shop"}.'
        ),
        arguments=CreateArguments,
        output=RuleOutput,
        handler=create,
    ),
    ToolSpec(
        name="alert_try",
        title="Try an alert rule",
        description=(
            "Says how often a rule would have triggered in the past. Nothing is kept or sent.\n"
            "Use it before alert_create, to find a threshold without false alarms.\n"
            "Returns a sentence, the number of alerts, the current value and the highest.\n"
            'Example: {"condition": "cost_exceeds", "threshold": 5, "window_minutes": 60}.'
        ),
        arguments=TryArguments,
        output=TryOutput,
        handler=try_rule,
        read_only=True,
        if_missing=_IF_MISSING,
    ),
    ToolSpec(
        name="alert_list",
        title="List alert rules",
        description=(
            "Lists the rules that watch what is recorded, and which of them are triggered.\n"
            "Use it to see whether something is wrong now.\n"
            "Returns rules, the latest first.\n"
            'Example: {"state": "triggered"}.'
        ),
        arguments=ListArguments,
        output=ListOutput,
        handler=list_rules,
        read_only=True,
    ),
    ToolSpec(
        name="alert_update",
        title="Change an alert rule",
        description=(
            "Changes only what you give of a rule; enabled: false stops it; an empty agent_id, "
            "project or tags lifts that restriction. With a new condition, give an empty pattern "
            "or trend if only the old one has it.\n"
            "Use it when a rule triggers too often or too late.\n"
            "Returns the changed rule.\n"
            'Example: {"rule_id": "01M8ZQ…", "threshold": 0.3}.'
        ),
        arguments=UpdateArguments,
        output=RuleOutput,
        handler=update,
        destructive=True,
        if_missing=_IF_MISSING,
    ),
    ToolSpec(
        name="alert_delete",
        title="Delete an alert rule",
        description=(
            "Deletes a rule. Its history stays.\n"
            "Use it for a rule nobody needs; alert_update with enabled: false only stops it.\n"
            "Returns the rule as it was.\n"
            'Example: {"rule_id": "01M8ZQ…"}.'
        ),
        arguments=DeleteArguments,
        output=RuleOutput,
        handler=delete,
        destructive=True,
        if_missing=_IF_MISSING,
    ),
)
