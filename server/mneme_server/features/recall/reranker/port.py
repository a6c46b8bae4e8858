"""The port through which recall sees a reranking model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Relevance: TypeAlias = NDArray[np.float32]

PAIRS_PER_RUN = 8
"""Pairs that a local model reads in one run; between runs it is seen whether the time is up."""
MAX_CHARACTERS = 8_192
"""Of a query and of a text: more than a local model's window holds, so tokenizing it is in vain."""


class RerankingError(Exception):
    """Texts could not be compared with a query; the message is for whoever runs the server."""


class Reranker(Protocol):
    """Tells how well texts answer a query. Implementations are safe to share between threads."""

    @property
    def model_id(self) -> str:
        """What logs call the model."""
        ...

    def relevance(self, query: str, texts: Sequence[str], *, until_s: float) -> Relevance:
        """Return a number (n,) for each text, larger for one that answers the query better.

        Numbers of different queries or models cannot be compared. A text longer than the model's
        window is read from its beginning.

        Args:
            query: what is asked.
            texts: n candidates.
            until_s: when to give up, as `time.monotonic()` counts.

        Raises:
            RerankingError: the model failed, or was not done in time.
        """
        ...

    def close(self) -> None:
        """Release threads, connections and memory; what is under way fails. Closing twice is
        allowed.
        """
        ...


def checked(values: object, texts: int, source: str) -> Relevance:
    """Return what a model answered as (texts,) finite float32 numbers.

    Raises:
        RerankingError: it is something else.
    """
    try:
        array = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise RerankingError(f"{source} answered with something that is no number") from error
    if array.shape != (texts,) or not np.isfinite(array).all():
        raise RerankingError(f"{source} did not answer with one finite number for each text")
    return array
