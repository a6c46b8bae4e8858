"""`learning_transfer`: what one session has learned, for another one."""

from __future__ import annotations

from collections.abc import Sequence

from mneme.types import OffPolicyEvaluation

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.offers import offers
from mneme_mcp.outputs import SnakeOutput
from mneme_mcp.text import counted
from mneme_mcp.tool import Call, Reply, ToolSpec
from mneme_mcp.tools.learning import IF_MISSING

# It is measured by teaching the algorithm anew.
_PATIENCE_S = 120.0


@offers(
    "transfer",
    source_session_id=...,
    target_session_id=...,
    transfer_type="full: the target then knows only what the source knows. fine_tune: it "
    "starts from that and learns its own steps again. freeze_encoder: the same, but what "
    "encodes states no longer changes (networks only).",
    similarity_threshold=...,
    dry_run="Change nothing; tell what it would be worth.",
    undo="Take back what the target took over; it learns its own steps again.",
)
class TransferArguments(SnakeArguments):
    """From where to where."""


class TransferOutput(SnakeOutput):
    """What was taken over, and what it is worth."""

    source_session_id: str
    target_session_id: str
    transfer_type: str
    task_similarity: float
    similarity_why: str = ""
    parameters_transferred: int
    performance_baseline: float | None = None
    performance_after_transfer: float | None = None
    improvement: float | None = None
    not_measured: str = ""
    worth: str = ""


async def transfer(call: Call, given: TransferArguments) -> Reply:
    """Answer `learning_transfer`."""
    answer = await call.waiting_for(
        call.client.transfer(**given.request(), timeout=_PATIENCE_S),
        "transferring",
    )
    before, after = answer.performance_baseline, answer.performance_after_transfer
    output = TransferOutput(
        source_session_id=given.source_session_id,
        target_session_id=given.target_session_id,
        transfer_type=given.transfer_type,
        task_similarity=answer.task_similarity.overall,
        similarity_why=answer.task_similarity.why,
        parameters_transferred=answer.parameters_transferred,
        performance_baseline=_worth(before),
        performance_after_transfer=_worth(after),
        improvement=answer.improvement,
        not_measured=before.refused or after.refused,
        worth=answer.worth,
    )
    taken = counted(answer.parameters_transferred, "number")
    alike = f"the similarity of the tasks is {output.task_similarity:.2f}"
    return Reply(f"{taken} taken over; {alike}. {answer.worth}".rstrip(), output)


def _worth(found: OffPolicyEvaluation) -> float | None:
    return None if found.refused else found.doubly_robust.value


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="learning_transfer",
        title="Transfer what was learned",
        description=(
            "Transfers what one session has learned to another one of the same algorithm, if "
            "their tasks are alike enough.\n"
            "Use it when a new task resembles one that was learned.\n"
            "Returns how alike the tasks are, and what the target would earn without and with it, "
            "or why that was not measured.\n"
            'Example: {"source_session_id": "replies-2025", "target_session_id": "replies-2026"}.'
        ),
        arguments=TransferArguments,
        output=TransferOutput,
        handler=transfer,
        destructive=True,
        if_missing=IF_MISSING,
    ),
)
