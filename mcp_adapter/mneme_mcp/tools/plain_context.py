"""`mneme_context`: what bears on a task, of every kind, as one text."""

from __future__ import annotations

from typing import Any

from mneme import to_dict

from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import SnakeOutput
from mneme_mcp.plain import PlainArguments, named, scope, short
from mneme_mcp.text import day
from mneme_mcp.tool import Call, Reply, ToolSpec

_NOTHING = {
    "nothing_stored": "Nothing is stored yet.",
    "nothing_sure": "Nothing that is known bears on this surely enough.",
    "nothing_fits": "Something bears on this, but no item of it fits: raise token_budget.",
}


@offers(
    "get_context",
    query=Offer("The task or topic.", at="topic"),
    **scope(),
    token_budget="Most tokens of the text.",
)
class ContextArguments(PlainArguments):
    """What context is needed for."""


class ContextItem(SnakeOutput):
    """An item of the context, whose whole is in the text."""

    id: str
    text: str
    date: str = ""
    worth: float


class ContextOutput(SnakeOutput):
    """What the text is made of, the strongest first."""

    items: list[ContextItem]
    token_count: int = 0
    left_out: int = 0
    message: str = ""


async def context(call: Call, given: ContextArguments) -> Reply:
    """Answer `mneme_context`."""
    answer = to_dict(await call.client.get_context(**given.request()))
    found = ContextOutput(
        items=[_item(one) for one in answer["items"]],
        token_count=answer["token_count"],
        left_out=answer["left_out_count"],
    )
    if not answer["text"]:
        found.message = _NOTHING.get(answer["outcome"], _NOTHING["nothing_sure"])
        return Reply(found.message, found)
    return Reply(answer["text"], found)


def _item(item: dict[str, Any]) -> ContextItem:
    return ContextItem(
        id=named(item["kind"], item["source_id"], item["session_id"]),
        text=short(item["text"]),
        date=day(item["timestamp"]),
        worth=round(item["worth"], 3),
    )


TOOLS = (
    ToolSpec(
        name="mneme_context",
        title="Context for a task",
        description=(
            "Gathers all that bears on a task: facts, past sessions, lessons, earlier attempts.\n"
            "Use it before you start or continue a task.\n"
            "Returns one text to work from, each line with its date and id.\n"
            'Example: {"query": "add refunds to the checkout", "project": "shop-api"}.'
        ),
        arguments=ContextArguments,
        output=ContextOutput,
        handler=context,
        read_only=True,
    ),
)
