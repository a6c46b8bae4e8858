"""`mneme_remember`: what is to be remembered."""

from __future__ import annotations

from mneme import to_dict
from mneme.visible import visible_line

from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import SnakeOutput
from mneme_mcp.plain import PlainArguments, named, scope, short, superseded_ids
from mneme_mcp.text import day, quoted_lines
from mneme_mcp.tool import Call, Reply, ToolSpec


@offers(
    "create_memory",
    text="One fact, in a full sentence.",
    **scope(user_id='Whom it is about, e.g. "ann". Left out: everybody.'),
    tags="Labels.",
    replaces=Offer("Ids of memories that are no longer true.", at="supersedes"),
)
class RememberArguments(PlainArguments):
    """What to remember."""

    synonyms = {
        "supersedes": "replaces",
        "fact": "text",
        "memory": "text",
        "content": "text",
        "query": "text",
    }


class Similar(SnakeOutput):
    """An older memory that is close to the new one."""

    id: str
    text: str
    date: str = ""


class RememberOutput(SnakeOutput):
    """The memory that holds the text."""

    id: str
    text: str
    already_known: bool
    replaced: list[str] = []
    similar: list[Similar] = []


async def remember(call: Call, given: RememberArguments) -> Reply:
    """Answer `mneme_remember`."""
    request = given.request()
    if "supersedes" in request:
        request["supersedes"] = superseded_ids(request["supersedes"])
    answer = to_dict(await call.client.create_memory(**request))
    kept = RememberOutput(
        id=named("memory", answer["memory"]["id"]),
        text=short(answer["memory"]["text"]),
        already_known=answer["already_known"],
        replaced=[named("memory", old["id"]) for old in answer["superseded"]],
        similar=[
            Similar(
                id=named("memory", one["memory"]["id"]),
                text=short(one["memory"]["text"]),
                date=day(one["memory"]["since"]),
            )
            for one in answer["similar"]
        ],
    )
    return Reply("\n".join(_told(kept)), kept)


def _told(kept: RememberOutput) -> list[str]:
    what = "Known already" if kept.already_known else "Remembered"
    lines = [f"{what} as {kept.id} > {visible_line(kept.text)}"]
    if kept.replaced:
        lines.append(f"It replaces {', '.join(kept.replaced)}.")
    if kept.similar:
        head = "Close to it; if it replaces one, send it again with replaces:"
        older = [f"- {one.date}, {one.id} > {one.text}" for one in kept.similar]
        lines.append(quoted_lines(head, older))
    return lines


TOOLS = (
    ToolSpec(
        name="mneme_remember",
        title="Remember",
        description=(
            "Keeps a fact, preference, decision, correction or rule for later conversations.\n"
            "Use it when the user says to remember something, or you learn what will matter after "
            "this conversation.\n"
            "Returns its id, and older memories close to it.\n"
            'Example: {"text": "Ann wants invoices by post", "user_id": "ann"}.'
        ),
        arguments=RememberArguments,
        output=RememberOutput,
        handler=remember,
        if_missing="mneme_recall finds memories and their ids.",
    ),
)
