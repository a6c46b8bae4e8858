"""The words of a handover."""

from __future__ import annotations

import re

from mneme_server.context.model import Decision, Handover
from mneme_server.context.words import cut

MAX_SUMMARY = 1_020
"""Characters of a handover's summary: what an embedding model reads."""
_ITEMS = 5
_DECISIONS = 3
_REASONED = re.compile(r"(?:because|since|so that|in order to|due to|as|to|for)\b", re.IGNORECASE)


def decided(decision: Decision, limit: int = 0) -> str:
    """Return a decision with its reason, each whole, or cut to `limit` characters."""
    what, why = decision.decision.rstrip(". "), decision.rationale.rstrip(". ")
    if limit:
        what, why = cut(what, limit), cut(why, limit)
    if not why:
        return what
    return f"{what}, {why}" if _REASONED.match(why) else f"{what}, because: {why}"


def handover_text(handover: Handover) -> str:
    """Return a handover in words: what it was about, not how it is laid out.

    The first five items of each kind and the first three decisions, at most `MAX_SUMMARY`
    characters.
    """
    parts = []
    if handover.progress:
        parts.append(f"Progress: {', '.join(handover.progress[:_ITEMS])}")
    if handover.completed_todos:
        parts.append(f"Completed: {', '.join(handover.completed_todos[:_ITEMS])}")
    parts += [f"Decision: {decided(one)}" for one in handover.decisions[:_DECISIONS]]
    if handover.locked_contexts:
        labels = (locked.label for locked in handover.locked_contexts[:_ITEMS])
        parts.append(f"Contexts: {', '.join(labels)}")
    if handover.files:
        parts.append(f"Files: {', '.join(handover.files[:_ITEMS])}")
    if handover.unresolved_errors:
        parts.append(f"Unresolved: {'; '.join(handover.unresolved_errors[:_DECISIONS])}")
    text = ". ".join(part.rstrip(". ") for part in parts)
    return text if len(text) <= MAX_SUMMARY else f"{text[: MAX_SUMMARY - 3]}..."
