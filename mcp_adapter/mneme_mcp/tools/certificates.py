"""`recall_with_certificate`: what is known, with a proof of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mneme import to_dict

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.offers import TOKENS, offers
from mneme_mcp.outputs import SnakeOutput
from mneme_mcp.text import Item, counted, listing
from mneme_mcp.tool import Call, Reply, ToolSpec


class CertifiedOutput(SnakeOutput):
    """A result that the certificate proves."""

    api_names = {"source_id": "id", "source_type": "type"}

    id: str
    type: str
    text: str
    score: float
    similarity: float | None = None
    uplift: float = 0.0
    latency: float = 0.0
    reason: str
    path: list[str] = []
    necessity: float = 0.0
    minimal: bool = False


@offers(
    "recall_with_certificate",
    query="The question, in words.",
    limit=...,
    alpha=...,
    beta="Weight of the causal uplift.",
    gamma="Weight of the latency.",
    project=...,
    user_id=...,
    tags=...,
    token_budget=TOKENS,
)
class CertificateArguments(SnakeArguments):
    """What is asked, and how results are weighed."""

    synonyms = {"k": "limit"}


class CertificateOutput(SnakeOutput):
    """The results, best first, and their certificate."""

    results: list[CertifiedOutput]
    certificate_id: str
    minimal_why: list[str]
    redundancy_ratio: float
    completeness_score: float
    uplift_known: bool
    latency_ms: float


async def recall(call: Call, given: CertificateArguments) -> Reply:
    """Answer `recall_with_certificate`."""
    answer = to_dict(await call.client.recall_with_certificate(**given.request()))
    found = [_result(one) for one in answer["results"]]
    output = CertificateOutput(
        results=found,
        certificate_id=answer["certificate"]["id"],
        minimal_why=[one.id for one in found if one.minimal],
        redundancy_ratio=answer["redundancy"],
        completeness_score=answer["completeness"],
        uplift_known=answer["uplift_known"],
        latency_ms=answer["search_ms"] + answer["proof_ms"],
    )
    head = f"{counted(len(found), 'result')}, proved by the certificate {output.certificate_id}" + (
        ":" if found else "."
    )
    items = [
        Item(f"{place}. {one.type} {one.id} [{_why(one)}]:", one.text)
        for place, one in enumerate(found, 1)
    ]
    return Reply(
        listing(head, items, given.token_budget, more="raise token_budget").text,
        output,
        given.token_budget,
    )


def _result(result: Mapping[str, Any]) -> CertifiedOutput:
    return CertifiedOutput.model_validate(result)


def _why(one: CertifiedOutput) -> str:
    said = f"score {one.score:.2f}; {one.reason.replace('_', ' ')}"
    return f"{said}: {', '.join(one.path)}" if one.path else said


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="recall_with_certificate",
        kept_whole=True,
        title="Recall with a proof",
        description=(
            "Recalls memories, attempts and skills by similarity, causal uplift and latency, with a"
            " signed certificate of what was stored and returned.\n"
            "Use it when you may have to show what a decision rested on.\n"
            "Returns the results, why each was chosen, and the id by which people fetch and check "
            "the certificate.\n"
            'Example: {"query": "implement secure authentication", "k": 5, "alpha": 0.7}.'
        ),
        arguments=CertificateArguments,
        output=CertificateOutput,
        handler=recall,
    ),
)
