"""`agentlens_learn`: a notebook of lessons."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, cast

from mneme import to_dict
from mneme.types import LessonFilterFields
from pydantic import Field

from mneme_mcp.arguments import DEFAULT_TOKEN_BUDGET, CamelArguments, Labels, TokenBudget, Word
from mneme_mcp.failures import Refused
from mneme_mcp.outputs import CamelOutput
from mneme_mcp.text import counted
from mneme_mcp.tool import Call, Reply, ToolSpec
from mneme_mcp.tools.lessons import LessonOutput, found_lesson, list_lessons

_NEEDED = {
    "save": ("title", "content"),
    "list": (),
    "get": ("lesson_id",),
    "update": ("lesson_id",),
    "delete": ("lesson_id",),
    "restore": ("lesson_id",),
    "search": ("query",),
}


class LearnArguments(CamelArguments):
    """What to do in the notebook."""

    whose = "said"

    action: Annotated[
        Literal["save", "list", "get", "update", "delete", "restore", "search"],
        Word,
        Field(
            description="save: title and content. search: query. list: filters only. get, update, "
            "delete, restore: id; update also what to change. delete archives: get still finds it, "
            "restore brings it back."
        ),
    ]
    lesson_id: Annotated[
        str, Field(alias="id", description="The lesson's id, from save, list or search.")
    ] = ""
    title: Annotated[str, Field(description='A short title, e.g. "Always run tests".')] = ""
    content: Annotated[
        str,
        Field(
            description='The insight, e.g. "Before deploying to prod, always run the test suite".'
        ),
    ] = ""
    category: Annotated[
        str | None,
        Field(description='A group, e.g. "deployment" or "error-handling"; default "general".'),
    ] = None
    importance: Annotated[
        Literal["", "low", "normal", "high", "critical"],
        Word,
        Field(description="How much it matters; default normal."),
    ] = ""
    tags: Annotated[Labels | None, Field(description='Labels, e.g. ["ci", "billing"].')] = None
    query: Annotated[
        str, Field(description='For search, in plain words, e.g. "deployment best practices".')
    ] = ""
    agent_id: Annotated[
        str | None, Field(description="The agent it is for; empty: for all. Also a filter.")
    ] = None
    project: Annotated[
        str | None, Field(description="The project it is about; empty: any. Also a filter.")
    ] = None
    context: Annotated[
        dict[str, Any] | None,
        Field(description='Free JSON, e.g. {"trigger": "before a release"}.'),
    ] = None
    source_session_id: Annotated[str | None, Field(description="The session that taught it.")] = (
        None
    )
    source_event_id: Annotated[str | None, Field(description="The event that taught it.")] = None
    etag: Annotated[
        str,
        Field(
            description="update, delete, restore: the lesson's etag as you read it; refused if the "
            "lesson has changed since."
        ),
    ] = ""
    include_archived: Annotated[bool, Field(description="list, search: include archived.")] = False
    limit: Annotated[int, Field(ge=1, le=100, description="list, search: maximum lessons.")] = 10
    token_budget: TokenBudget = DEFAULT_TOKEN_BUDGET

    def changes(self) -> dict[str, Any]:
        """The fields of a lesson that were given; an empty text lifts what may be empty."""
        filled = ("title", "content", "importance")
        names = ("category", "agent_id", "project", "tags")
        sources = ("context", "source_session_id", "source_event_id")
        given = {name: getattr(self, name) or None for name in filled}
        given |= {name: getattr(self, name) for name in (*names, *sources)}
        return {name: value for name, value in given.items() if value is not None}

    def filter(self) -> LessonFilterFields:
        """The filters for lists and searches."""
        chosen: dict[str, Any] = {
            "agent_id": self.agent_id,
            "category": self.category or "",
            "importance": self.importance or None,
            "project": self.project,
            "tags": self.tags or [],
            "include_archived": self.include_archived,
        }
        return cast("LessonFilterFields", chosen)


class LearnOutput(CamelOutput):
    """One lesson, or several."""

    action: str
    lesson: LessonOutput | None = None
    lessons: list[LessonOutput] = []
    total: int | None = None
    omitted: int = 0
    message: str = ""


async def learn(call: Call, given: LearnArguments) -> Reply:
    """Answer `agentlens_learn`."""
    missing = [given.shown_name(n) for n in _NEEDED[given.action] if not getattr(given, n)]
    if missing:
        needs = " and ".join(missing)
        raise Refused(
            f'the action "{given.action}" needs {needs}.',
            "MISSING_REQUIRED_FIELD",
            [(name, "is required") for name in missing],
        )
    return await _ACTIONS[given.action](call, given)


async def _save(call: Call, given: LearnArguments) -> Reply:
    changes = given.changes()
    title, content = changes.pop("title"), changes.pop("content")
    answer = await call.client.create_lesson(title, content, **changes)
    return _one(given, answer.lesson, "Saved lesson {0.id}: {0.title}")


async def _get(call: Call, given: LearnArguments) -> Reply:
    answer = await call.client.get_lesson(given.lesson_id)
    return _one(given, answer.lesson, "{0.title} [{0.category}, {0.importance}]\n{0.content}")


async def _update(call: Call, given: LearnArguments) -> Reply:
    changes = given.changes()
    if not changes:
        raise Refused(
            'the action "update" needs what to change: title, content, category, importance, tags, '
            "agentId, project, context, sourceSessionId or sourceEventId.",
            "MISSING_REQUIRED_FIELD",
        )
    answer = await call.client.update_lesson(given.lesson_id, **changes, etag=given.etag)
    return _one(given, answer.lesson, "Updated lesson {0.id}: {0.title}")


async def _delete(call: Call, given: LearnArguments) -> Reply:
    answer = await call.client.archive_lesson(given.lesson_id, etag=given.etag)
    return _one(given, answer.lesson, "Archived lesson {0.id}: {0.title}")


async def _restore(call: Call, given: LearnArguments) -> Reply:
    answer = await call.client.unarchive_lesson(given.lesson_id, etag=given.etag)
    return _one(given, answer.lesson, "Restored lesson {0.id}: {0.title}")


async def _list(call: Call, given: LearnArguments) -> Reply:
    answer = to_dict(await call.client.list_lessons(filter=given.filter(), page_size=given.limit))
    lessons = [LessonOutput.model_validate(one) for one in answer["lessons"]]
    total = int(answer["total_size"])
    return _several(given, lessons, total, f"{counted(total, 'lesson')}, latest first:")


async def _search(call: Call, given: LearnArguments) -> Reply:
    answer = to_dict(
        await call.client.search_lessons(given.query, filter=given.filter(), limit=given.limit)
    )
    lessons = [found_lesson(found) for found in answer["results"]]
    head = "Relevant lessons, best first:"
    return _several(given, lessons, int(answer["searched_count"]), head)


def _one(given: LearnArguments, message: Any, words: str) -> Reply:
    lesson = LessonOutput.model_validate(to_dict(message))
    return Reply(words.format(lesson), LearnOutput(action=given.action, lesson=lesson))


def _several(given: LearnArguments, lessons: list[LessonOutput], total: int, head: str) -> Reply:
    output = LearnOutput(action=given.action, lessons=lessons, total=total)
    if not lessons:
        output.message = "No lessons found" + (
            ": none pass the filters." if any(given.filter().values()) else ": none are saved yet."
        )
        return Reply(output.message, output)
    shown = list_lessons(head, lessons, given.token_budget)
    output.lessons, output.omitted = lessons[: len(shown.bodies)], shown.omitted
    return Reply(shown.text, output)


_ACTIONS: dict[str, Callable[[Call, LearnArguments], Awaitable[Reply]]] = {
    "save": _save,
    "list": _list,
    "get": _get,
    "update": _update,
    "delete": _delete,
    "restore": _restore,
    "search": _search,
}

TOOLS = (
    ToolSpec(
        name="agentlens_learn",
        title="Keep lessons",
        description=(
            "Your notebook of lessons: short insights that should change what you do next time. "
            "One action per call: save, list, get, update, delete (archives), restore, search.\n"
            "Use it to save a lesson when a problem took more than one attempt, when a user "
            "corrects you, or when you find a rule that holds beyond this task; and to search "
            "before work of a kind you have done before. Write it to make sense without this "
            "conversation.\n"
            "Returns the lesson with its id, or lessons within tokenBudget, best first.\n"
            'Examples: {"action": "save", "title": "Always run tests", "content": "Before '
            'deploying to prod, always run the test suite", "category": "deployment"}, '
            '{"action": "search", "query": "deployment best practices"}.'
        ),
        arguments=LearnArguments,
        output=LearnOutput,
        handler=learn,
        destructive=True,
        if_missing='Find ids with {"action": "search", "query": "…"} or {"action": "list"}.',
    ),
)
