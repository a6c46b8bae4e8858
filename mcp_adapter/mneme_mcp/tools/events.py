"""`agentlens_session_*`, `agentlens_log_event`, `agentlens_query_events`: the record itself.

For agents whose host records nothing: what is logged here is what recall and reflect work on.
"""

from __future__ import annotations

from typing import cast

from mneme import to_dict
from mneme.types import NewEventFields

from mneme_mcp.arguments import CamelArguments
from mneme_mcp.offers import TOKENS, Offer, offers
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


@offers(
    "start_session",
    session_id='Your own id for it, e.g. "fix-login-2026-05-01"; one is made if left out.',
    agent_id='Who you are, e.g. "coder-1".',
    agent_name="Your display name.",
    user_id='The user it serves, e.g. "user123".',
    project='What it works on, e.g. "shop-api".',
    tags='Labels, e.g. ["bugfix"].',
    metadata=...,
)
class StartArguments(CamelArguments):
    """A session to start."""


async def start(call: Call, given: StartArguments) -> Reply:
    """Answer `agentlens_session_start`."""
    answer = await call.client.start_session(**given.request())
    session = SessionOutput.model_validate(to_dict(answer.session))
    return Reply(f"Session {session.session_id} started. Pass its id in later calls.", session)


@offers("end_session", session_id=..., status=...)
class EndArguments(CamelArguments):
    """A session to end."""


async def end(call: Call, given: EndArguments) -> Reply:
    """Answer `agentlens_session_end`."""
    answer = await call.client.end_session(**given.request())
    session = SessionOutput.model_validate(to_dict(answer.session))
    text = (
        f"Session {session.session_id} ended ({session.status}): "
        f"{counted(session.event_count, 'event')}, {counted(session.error_count, 'error')}."
    )
    return Reply(text, session)


@offers(
    "NewEvent",
    session_id="The session; created if unknown.",
    event_type="What happened: tool_call, tool_response, tool_error, llm_call, llm_response, "
    "message, error, custom, or a name of your own.",
    text='What to remember it by, e.g. "Booking failed: the card was declined". '
    "Made from the other fields if left out.",
    name='The tool, or what happened, e.g. "pytest".',
    error="The error's message, for tool_error and error.",
    severity="Default info; error for errors.",
    payload='Free JSON, e.g. {"arguments": {"path": "a.py"}}.',
    metadata="More free JSON.",
    agent_id=...,
    call_id="Links a tool's call with its answer.",
    model="The model, for llm_*.",
    input_tokens=...,
    output_tokens=...,
    cost_usd=...,
    event_id=Offer("Your own id for it, so that retries do no harm.", at="id"),
    timestamp="When; default now.",
)
class LogArguments(CamelArguments):
    """An event to record."""

    synonyms = {"type": "event_type", "tool": "name", "tool_name": "name", "id": "event_id"}


class LogOutput(CamelOutput):
    """The recorded event."""

    event_id: str
    session_id: str
    duplicate: bool = False


async def log(call: Call, given: LogArguments) -> Reply:
    """Answer `agentlens_log_event`."""
    event = cast("NewEventFields", given.request())
    answer = to_dict(await call.client.record_events([event]))
    receipt = answer["receipts"][0]
    logged = LogOutput(
        event_id=receipt["id"],
        session_id=given.session_id,
        duplicate=receipt["duplicate"],
    )
    return Reply(f"Recorded {given.event_type} {logged.event_id}.", logged)


@offers(
    "list_events",
    session_id=...,
    agent_id=...,
    event_types='Only of these types, e.g. ["tool_error", "error"].',
    name="Only of this tool or name.",
    project=...,
    min_severity="Only events this severe or worse.",
    from_=...,
    to=...,
    oldest_first=Offer("Oldest first.", at="descending", negated=True),
    limit=Offer("Maximum events.", default=20),
    page_token="nextPageToken of the previous page.",
    token_budget=TOKENS,
)
class QueryArguments(CamelArguments):
    """Which events."""

    synonyms = {"tool": "name", "tool_name": "name", "event_type": "event_types"}


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
    answer = to_dict(await call.client.list_events(**given.request()))
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
