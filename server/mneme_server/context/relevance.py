"""When something bears on a topic at all."""

from __future__ import annotations

from mneme_server.context.words import coverage
from mneme_server.recall.search import Recalled

RELEVANT_SIMILARITY = 0.25
"""Cosine from which a text bears on a topic under the default model; unrelated texts lie below."""
RELEVANT_COVERAGE = 0.5
"""Share of the topic's telling words from which a text bears on it whatever its cosine: names and
numbers mean nothing to an embedding model."""


def bears_on(topic: str, found: Recalled) -> bool:
    """Tell whether what recall found bears on the topic.

    Recall returns the best there is, however little that has to do with the question.
    """
    if found.similarity is not None and found.similarity >= RELEVANT_SIMILARITY:
        return True
    return coverage(topic, found.document.text) >= RELEVANT_COVERAGE
