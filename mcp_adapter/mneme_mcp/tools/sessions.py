"""`sleep` and `wake_up`: from one session to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal
from uuid import uuid4

from mneme import to_dict
from mneme.visible import QUOTED, visible_line
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, model_validator

from mneme_mcp.arguments import Nested, SnakeArguments, Word
from mneme_mcp.offers import TOKENS, offers
from mneme_mcp.outputs import SnakeOutput
from mneme_mcp.text import quoted
from mneme_mcp.tool import Call, Reply, ToolSpec

_PLACES = {
    "work_done": {
        "progress": "progress",
        "completed_todos": "completed_todos",
        "decisions": "decisions",
    },
    "next_steps": {"todos": "open_todos"},
    "important_context": {"locked": "locked_contexts"},
}
_PRIORITIES = {"high": 2, "medium": 3, "low": 4}


def _content(value: Any) -> Any:
    """A text, or the text of an object such as {"content": "…"} or {"path": "…"}."""
    if isinstance(value, Mapping):
        return value.get("content") or value.get("path") or value
    return value


def _as(name: str) -> BeforeValidator:
    """Let a plain text stand for an object that has only this."""
    return BeforeValidator(lambda value: {name: value} if isinstance(value, str) else value)


Texts = list[Annotated[str, BeforeValidator(_content)]]


def _priority(value: Any) -> Any:
    return _PRIORITIES.get(value.lower(), value) if isinstance(value, str) else value


class Todo(Nested):
    """Something to do."""

    content: str
    priority: Annotated[
        int,
        Field(ge=0, le=5, description="1 (most urgent) to 5; 0: not said."),
        BeforeValidator(_priority),
    ] = 0
    status: Annotated[
        Literal["pending", "in_progress", "completed", "cancelled"] | None,
        Word,
        Field(exclude=True),
    ] = None
    # Lists have these for whoever shows them; they are taken and not kept.
    id: Annotated[Any, Field(exclude=True), WithJsonSchema({"type": "string"})] = None
    active_form: Annotated[
        Any, Field(alias="activeForm", exclude=True), WithJsonSchema({"type": "string"})
    ] = None


class Decision(Nested):
    """Something that was decided, and why."""

    decision: str
    rationale: str = ""


class LockedContext(Nested):
    """A context that was pinned."""

    label: str
    version: str = ""


class SleepArguments(SnakeArguments):
    """What to hand over."""

    synonyms = {
        "todos": "open_todos",
        "next_steps": "open_todos",
        "completed": "completed_todos",
        "locked": "locked_contexts",
        "recent_files": "files",
    }

    session_id: Annotated[
        str,
        Field(description="The session that ends; left out: the project's latest."),
    ] = ""
    project: Annotated[str, Field(description='The project, e.g. "shop-api".')] = ""
    progress: Annotated[
        Texts, Field(description='What was done, e.g. ["Fixed JWT validation", "Added tests"].')
    ] = []
    completed_todos: Annotated[
        Texts, Field(description='What was on the list and is done, e.g. ["Implement JWT decode"].')
    ] = []
    open_todos: Annotated[
        list[Annotated[Todo, _as("content")]],
        Field(
            description="What is next, or your whole todo list: what is completed goes to "
            "completed_todos, what is cancelled nowhere."
        ),
    ] = []
    decisions: Annotated[
        list[Annotated[Decision, _as("decision")]],
        Field(description="What was decided, and why."),
    ] = []
    locked_contexts: Annotated[
        list[Annotated[LockedContext, _as("label")]],
        Field(description="Pinned contexts."),
    ] = []
    files: Annotated[Texts, Field(description='Files touched, e.g. ["src/auth/jwt.py"].')] = []
    agent_id: Annotated[str, Field(description="The agent.")] = ""

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, given: Any) -> Any:
        """Take a handover that is grouped into work done, next steps and important context."""
        if not isinstance(given, Mapping):
            return given
        flat = {name: value for name, value in given.items() if name not in _PLACES}
        for group, places in _PLACES.items():
            inside = given.get(group)
            if isinstance(inside, Mapping):
                flat |= {places.get(name, name): value for name, value in inside.items()}
            elif inside is not None:
                flat[group] = inside
        return flat

    def completed(self) -> dict[str, str]:
        """What is done, and where it was given."""
        given = enumerate(self.completed_todos)
        done = {text: f"completed_todos[{place}]" for place, text in given}
        for place, todo in enumerate(self.open_todos):
            if todo.status == "completed":
                done.setdefault(todo.content, f"open_todos[{place}].content")
        return done

    def still_open(self) -> dict[str, Todo]:
        """What is still to do, by where it was given."""
        todos = enumerate(self.open_todos)
        gone = ("completed", "cancelled")
        return {f"open_todos[{place}]": todo for place, todo in todos if todo.status not in gone}

    def spelled(self, path: str) -> str:
        """A field's path; a todo is named by its place in the list that it was given in."""
        name, indexed, inside = path.partition("[")
        lists = {
            "completed_todos": [*self.completed().values()],
            "open_todos": [*self.still_open()],
        }
        places = lists.get(name)
        if not places:
            return super().spelled(path)
        if not indexed:
            return places[0].partition("[")[0]
        number, _, rest = inside.partition("]")
        return places[int(number)] + rest


class HandoverTodo(SnakeOutput):
    """Something to do."""

    content: str
    priority: int = 0


class HandoverDecision(SnakeOutput):
    """Something that was decided."""

    decision: str
    rationale: str = ""


class HandoverContext(SnakeOutput):
    """A context that was pinned."""

    label: str
    version: str = ""


class Handover(SnakeOutput):
    """What one session leaves to the next."""

    session_id: str
    project: str = ""
    progress: list[str] = []
    completed_todos: list[str] = []
    open_todos: list[HandoverTodo] = []
    decisions: list[HandoverDecision] = []
    locked_contexts: list[HandoverContext] = []
    files: list[str] = []
    unresolved_errors: list[str] = []
    tools: list[str] = []
    duration_seconds: int = 0
    summary: str = ""
    created_at: str = ""
    agent_id: str = ""


class SleepOutput(SnakeOutput):
    """The handover, and whether it is stored: one without content is not."""

    handover: Handover
    stored: bool = False


def _dumped(given: Iterable[BaseModel]) -> Any:
    """The models as the client takes messages: dicts of their fields."""
    return [one.model_dump() for one in given]


async def sleep(call: Call, given: SleepArguments) -> Reply:
    """Answer `sleep`."""
    answer = to_dict(
        await call.client.sleep(
            given.session_id or (None if given.project else f"session-{uuid4().hex}"),
            project=given.project,
            progress=given.progress,
            completed_todos=list(given.completed()),
            open_todos=_dumped(given.still_open().values()),
            decisions=_dumped(given.decisions),
            locked_contexts=_dumped(given.locked_contexts),
            files=given.files,
            agent_id=given.agent_id,
        )
    )
    stored = SleepOutput.model_validate(answer)
    handover = stored.handover
    if not stored.stored:
        return Reply(
            f"Nothing to hand over from session {handover.session_id}: nothing was given, and its "
            "events tell nothing. Call sleep with progress, decisions or open_todos.",
            stored,
        )
    on = f" on {handover.project}" if handover.project else ""
    text = f"Handover of session {handover.session_id}{on} stored; wake_up will return it."
    said = f"{QUOTED}\n{visible_line(handover.summary)}" if handover.summary else ""
    return Reply(f"{text}\n{said}".rstrip(), stored)


@offers(
    "wake_up",
    project='The project, e.g. "shop-api"; default: the last one.',
    agent_id="Only of this agent; left out: of all.",
    user_id="Only of sessions for this user; left out: of all.",
    limit=...,
    without_experience=...,
    token_budget=TOKENS,
)
class WakeUpArguments(SnakeArguments):
    """Where to pick up."""


class Related(SnakeOutput):
    """A past session that resembles the last one."""

    session_id: str
    summary: str
    created_at: str = ""
    similarity: float
    score: float
    files: list[str] = []


class Evidence(SnakeOutput):
    """A pattern or a next step, and what it follows from."""

    type: str
    description: str
    session_ids: list[str] = []
    event_ids: list[str] = []
    lesson_ids: list[str] = []
    reflection_ids: list[str] = []
    episode_ids: list[str] = []
    skill_ids: list[str] = []


class WakeUpOutput(SnakeOutput):
    """What an agent needs at the start of a session."""

    last_handover: Handover | None = None
    last_session_summary: str = ""
    related: list[Related] = []
    patterns: list[Evidence] = []
    suggestions: list[Evidence] = []
    sessions_considered: int


async def wake_up(call: Call, given: WakeUpArguments) -> Reply:
    """Answer `wake_up`."""
    answer = to_dict(await call.client.wake_up(**given.request()))
    summary = answer.get("last_summary") or {}
    woken = WakeUpOutput.model_validate(
        answer | {"last_session_summary": summary.get("summary", "")}
    )
    text = quoted(answer["text"], given.token_budget, "raise token_budget")
    return Reply(text, woken, given.token_budget)


TOOLS = (
    ToolSpec(
        name="sleep",
        title="Hand over at the end of a session",
        description=(
            "Stores a handover: what was done, what was decided and why, what is next. What you "
            "leave out is collected from the recorded events. The next session's wake_up "
            "returns it, and searches find it.\n"
            "Use it at the end of every session, and before your context runs out. Called again "
            "for the same session, it replaces that session's handover.\n"
            "Returns the handover with its summary.\n"
            'Example: {"session_id": "s-42", "project": "shop-api", "progress": ["Fixed JWT '
            'validation"], "decisions": [{"decision": "Use RS256", "rationale": "Better '
            'security"}], "open_todos": [{"content": "Add refresh tokens", "priority": 2}]}.'
        ),
        arguments=SleepArguments,
        output=SleepOutput,
        handler=sleep,
        # The session's earlier handover is gone. What is not told is collected anew at each call,
        # and a call without a session makes one: a second call is no repetition of the first.
        destructive=True,
    ),
    ToolSpec(
        name="wake_up",
        title="Pick up where the last session ended",
        description=(
            "Tells where the work stands: the last handover, related past sessions, patterns in "
            "them, and next steps with the evidence for them.\n"
            "Use it first in every session, before you read files or plan.\n"
            "Returns one text to work from, and the same in structured form.\n"
            'Example: {"project": "shop-api"}.'
        ),
        arguments=WakeUpArguments,
        output=WakeUpOutput,
        handler=wake_up,
        read_only=True,
    ),
)
