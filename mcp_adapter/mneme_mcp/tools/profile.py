"""`mneme_profile`: what is known of a user, without a question."""

from __future__ import annotations

from collections.abc import Sequence

from mneme import to_dict

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import Name, SnakeOutput
from mneme_mcp.tool import Call, Reply, ToolSpec

NOTHING = "Nothing is known of this user"


@offers(
    "get_profile",
    user_id=Offer('Whose profile, e.g. "ann".'),
    token_budget="Most tokens of the answer.",
    agent_id=...,
    project=...,
)
class ProfileArguments(SnakeArguments):
    """Whose profile is wanted, and how much of it."""


class ProfileItem(SnakeOutput):
    """A memory of the user."""

    memory_id: str
    text: str
    reason: Name
    since: str
    last_said: str
    confirmed_count: int = 0
    importance: Name = ""
    agent_id: str = ""
    project: str = ""
    session_id: str = ""


class ProfileOutput(SnakeOutput):
    """The memories: pinned ones, then stable ones, then recent ones."""

    items: list[ProfileItem]
    left_out_count: int


async def profile(call: Call, given: ProfileArguments) -> Reply:
    """Answer `mneme_profile`."""
    answer = to_dict(await call.client.get_profile(**given.request()))
    found = ProfileOutput(
        items=[ProfileItem.model_validate(one) for one in answer["items"]],
        left_out_count=int(answer["left_out_count"]),
    )
    if not answer["text"]:
        fits = " that fits token_budget" if found.left_out_count else ""
        return Reply(f"{NOTHING}{fits}.", found)
    return Reply(answer["text"], found)


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="mneme_profile",
        title="Get a user's profile",
        description=(
            "Gets what is known of a user without a question: what people pinned, then what is "
            "important or was said again and again, then what was said last.\n"
            "Use it when you begin to work for a user.\n"
            "Returns a text that you can work from, each line with its date and id, within "
            "token_budget, and how many were left out.\n"
            'Example: {"user_id": "ann", "token_budget": 500}.'
        ),
        arguments=ProfileArguments,
        output=ProfileOutput,
        handler=profile,
        read_only=True,
    ),
)
