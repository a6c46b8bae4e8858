"""`agentlens_session_*`, `agentlens_log_event`, `agentlens_query_events`: the record itself.

For agents whose host records nothing: what is logged here is what recall and reflect work on.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from mneme import to_dict
from mneme.types import NewEventFields
from pydantic import Field

from mneme_mcp.arguments import (
    DEFAULT_TOKEN_BUDGET,
    CamelArguments,
    EndTime,
    Labels,
    Time,
    TokenBudget,
    Word,
)
from mneme_mcp.outputs import CamelOutput, Free, Name
from mneme_mcp.text import Item, counted, listing
from mneme_mcp.tool import Call, Reply, ToolSpec


class SessionOutput(CamelOutput):
    """A session."""

    session_id: str
    status: Name
    agent_id: str = ""
    agent_name: str = ""
    user_id: str = ""
    project: str = ""
    tags: list[str] = []
    started_at: str = ""
    ended_at: str = ""
    event_count: int = 0
    tool_call_count: int = 0
    error_count: int = 0
    total_cost_usd: float = 0

    api_names = {"id": "session_id"}


class StartArguments(CamelArguments):
    """A session to start."""

    session_id: Annotated[
        str,
        Field(
            description='Your own id for it, e.g. "fix-login-2026-05-01"; one is made if left out.'
        ),
    ] = ""
    agent_id: Annotated[str, Field(description='Who you are, e.g. "coder-1".')] = ""
    agent_name: Annotated[str, Field(description="Your display name.")] = ""
    user_id: Annotated[str, Field(description='The user it serves, e.g. "user123".')] = ""
    project: Annotated[str, Field(description='What it works on, e.g. "shop-api".')] = ""
    tags: Annotated[Labels, Field(description='Labels, e.g. ["bugfix"].')] = []
    metadata: Annotated[dict[str, Any], Field(description="Free JSON.")] = {}


async def start(call: Call, given: StartArguments) -> Reply:
    """Answer `agentlens_session_start`."""
    answer = await call.client.start_session(
        session_id=given.session_id or None,
        agent_id=given.agent_id,
        agent_name=given.agent_name,
        user_id=given.user_id,
        project=given.project,
        tags=given.tags,
        metadata=given.metadata or None,
    )
    session = SessionOutput.model_validate(to_dict(answer.session))
    return Reply(f"Session {session.session_id} started. Pass its id in later calls.", session)


class EndArguments(CamelArguments):
    """A session to end."""

    session_id: Annotated[str, Field(min_length=1, description="The session.")]
    status: Annotated[Literal["completed", "error"], Word, Field(description="How it ended.")] = (
        "completed"
    )


async def end(call: Call, given: EndArguments) -> Reply:
    """Answer `agentlens_session_end`."""
    answer = await call.client.end_session(given.session_id, status=given.status)
    session = SessionOutput.model_validate(to_dict(answer.session))
    text = (
        f"Session {session.session_id} ended ({session.status}): "
        f"{counted(session.event_count, 'event')}, {counted(session.error_count, 'error')}."
    )
    return Reply(text, session)


class LogArguments(CamelArguments):
    """An event to record."""

    synonyms = {"type": "event_type", "tool": "name", "tool_name": "name", "id": "event_id"}

    session_id: Annotated[str, Field(min_length=1, description="The session; created if unknown.")]
    event_type: Annotated[
        str,
        Field(
            min_length=1,
            description="What happened: tool_call, tool_response, tool_error, llm_call, "
            "llm_response, message, error, custom, or a name of your own.",
        ),
    ]
    text: Annotated[
        str,
        Field(
            description='What to remember it by, e.g. "Booking failed: the card was declined". '
            "Made from the other fields if left out."
        ),
    ] = ""
    name: Annotated[str, Field(description='The tool, or what happened, e.g. "pytest".')] = ""
    error: Annotated[str, Field(description="The error's message, for tool_error and error.")] = ""
    severity: Annotated[
        Literal["", "debug", "info", "warn", "error", "critical"],
        Word,
        Field(description="Default info; error for errors."),
    ] = ""
    payload: Annotated[
        dict[str, Any], Field(description='Free JSON, e.g. {"arguments": {"path": "a.py"}}.')
    ] = {}
    metadata: Annotated[dict[str, Any], Field(description="More free JSON.")] = {}
    agent_id: Annotated[str, Field(description="Who acted; empty: the session's agent.")] = ""
    call_id: Annotated[str, Field(description="Links a tool's call with its answer.")] = ""
    model: Annotated[str, Field(description="The model, for llm_*.")] = ""
    input_tokens: Annotated[int, Field(ge=0, description="Tokens read.")] = 0
    output_tokens: Annotated[int, Field(ge=0, description="Tokens written.")] = 0
    cost_usd: Annotated[float, Field(ge=0, description="Cost in US dollars.")] = 0
    event_id: Annotated[
        str, Field(description="Your own id for it, so that retries do no harm.")
    ] = ""
    timestamp: Annotated[Time | None, Field(description="When; default now.")] = None

    def event(self) -> NewEventFields:
        """The event as the API takes it: only what was given."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        values["id"] = values.pop("event_id")
        given = {name: value for name, value in values.items() if value not in ("", None, {}, 0)}
        return cast("NewEventFields", given)


class LogOutput(CamelOutput):
    """The recorded event."""

    event_id: str
    session_id: str
    duplicate: bool = False


async def log(call: Call, given: LogArguments) -> Reply:
    """Answer `agentlens_log_event`."""
    answer = to_dict(await call.client.record_events([given.event()]))
    receipt = answer["receipts"][0]
    logged = LogOutput(
        event_id=receipt["id"],
        session_id=given.session_id,
        duplicate=receipt["duplicate"],
    )
    return Reply(f"Recorded {given.event_type} {logged.event_id}.", logged)


class QueryArguments(CamelArguments):
    """Which events."""

    synonyms = {"tool": "name", "tool_name": "name", "event_type": "event_types"}

    session_id: Annotated[str | None, Field(description="Only of this session.")] = None
    agent_id: Annotated[str | None, Field(description="Only of this agent.")] = None
    event_types: Annotated[
        Labels, Field(description='Only of these types, e.g. ["tool_error", "error"].')
    ] = []
    name: Annotated[str, Field(description="Only of this tool or name.")] = ""
    min_severity: Annotated[
        Literal["", "debug", "info", "warn", "error", "critical"],
        Word,
        Field(description="Only events this severe or worse."),
    ] = ""
    from_: Annotated[Time | None, Field(alias="from", description="At or after.")] = None
    to: Annotated[EndTime | None, Field(description="To; a day is included.")] = None
    oldest_first: Annotated[bool, Field(description="Oldest first.")] = False
    limit: Annotated[int, Field(ge=1, le=1000, description="Maximum events.")] = 20
    page_token: Annotated[str, Field(description="nextPageToken of the previous page.")] = ""
    token_budget: TokenBudget = DEFAULT_TOKEN_BUDGET


class EventOutput(CamelOutput):
    """An event."""

    id: str
    session_id: str
    event_type: Name
    severity: Name = ""
    timestamp: str
    text: str = ""
    name: str = ""
    error: str = ""
    agent_id: str = ""
    payload: Free = {}


class QueryOutput(CamelOutput):
    """Events, the newest first unless asked otherwise."""

    events: list[EventOutput]
    next_page_token: str = ""
    omitted: int = 0
    message: str = ""


async def query(call: Call, given: QueryArguments) -> Reply:
    """Answer `agentlens_query_events`."""
    answer = to_dict(
        await call.client.list_events(
            session_id=given.session_id,
            agent_id=given.agent_id,
            event_types=given.event_types,
            name=given.name,
            min_severity=given.min_severity or None,
            start_time=given.from_,
            end_time=given.to,
            descending=not given.oldest_first,
            page_size=given.limit,
            page_token=given.page_token,
        )
    )
    found = QueryOutput.model_validate(answer)
    if not found.events:
        found.message = "No events found. Try fewer filters."
        return Reply(found.message, found)
    shown = listing(
        "",
        [event_item(one) for one in found.events],
        given.token_budget,
        more="raise tokenBudget or lower limit",
    )
    if shown.omitted:
        found.next_page_token = ""  # The next page would begin after what did not fit.
    found.events, found.omitted = found.events[: len(shown.bodies)], shown.omitted
    more = f"\n(More with pageToken {found.next_page_token})" if found.next_page_token else ""
    return Reply(shown.text + more, found, given.token_budget)


def event_item(event: EventOutput, with_session: bool = True) -> Item:
    """An event in a list."""
    body = (event.text or event.error).removeprefix(f"{event.event_type}: ")
    name = "" if event.name in body else event.name
    session = f"[{event.session_id}]" if with_session else ""
    head = " ".join(filter(None, ["-", event.timestamp[:19], session, event.event_type, name]))
    return Item(f"{head}:" if body else head, body)


TOOLS = (
    ToolSpec(
        name="agentlens_session_start",
        title="Start a session",
        description=(
            "Starts a session: one stretch of work whose events belong together.\n"
            "Use it once at the beginning, unless your host records sessions already.\n"
            "Returns the session's id, which later calls need.\n"
            'Example: {"agentId": "coder-1", "project": "shop-api", "userId": "user123"}.'
        ),
        arguments=StartArguments,
        output=SessionOutput,
        handler=start,
    ),
    ToolSpec(
        name="agentlens_log_event",
        title="Record an event",
        description=(
            "Records one thing that happened: a tool's call or error, a message, a model's "
            "answer. Recall finds it; reflect counts it.\n"
            "Use it for what you will want to know later, above all errors and how they were "
            "solved, unless your host records events already.\n"
            "Returns the event's id.\n"
            'Example: {"sessionId": "s-42", "eventType": "tool_error", "name": "pytest", "error": '
            "\"fixture 'db' not found\"}."
        ),
        arguments=LogArguments,
        output=LogOutput,
        handler=log,
    ),
    ToolSpec(
        name="agentlens_session_end",
        title="End a session",
        description=(
            "Ends a session as completed or error; it is then summarised. sleep ends it too, and "
            "also leaves a handover.\n"
            'Example: {"sessionId": "s-42", "status": "completed"}.'
        ),
        arguments=EndArguments,
        output=SessionOutput,
        handler=end,
        idempotent=True,
        if_missing="Start it with agentlens_session_start, or record an event in it.",
    ),
    ToolSpec(
        name="agentlens_query_events",
        title="List events",
        description=(
            "Lists recorded events by time, filtered by session, agent, type, tool or severity.\n"
            "Use it to see exactly what happened; to find something by meaning use "
            "agentlens_recall.\n"
            "Returns events, newest first.\n"
            'Example: {"sessionId": "s-42", "eventTypes": ["tool_error"], "limit": 10}.'
        ),
        arguments=QueryArguments,
        output=QueryOutput,
        handler=query,
        read_only=True,
    ),
)
