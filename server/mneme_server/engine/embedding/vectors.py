"""Checks of vectors that come from outside this process's own code."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.embedding.port import EmbeddingError


def as_unit_rows(
    vectors: Sequence[Any] | NDArray[Any], *, rows: int, dimensions: int | None, source: str
) -> NDArray[np.float32]:
    """Return `vectors` as a (rows, d) float32 array of unit rows.

    Raises EmbeddingError when there are not `rows` of them, they differ from each other or from
    `dimensions` in length, or one is not finite or has no direction.
    """
    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(
            f"{source} returned vectors that are not all numbers of one length"
        ) from error
    if array.ndim != 2 or array.shape[0] != rows or array.shape[1] == 0:
        raise EmbeddingError(f"{source} returned an array of shape {array.shape} for {rows} texts")
    if dimensions is not None and array.shape[1] != dimensions:
        raise EmbeddingError(
            f"{source} returned vectors of {array.shape[1]} dimensions; "
            f"they had {dimensions} before"
        )
    norms = np.linalg.norm(array, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or (norms == 0).any():
        raise EmbeddingError(f"{source} returned a vector that is zero or not finite")
    unit: NDArray[np.float32] = array / norms
    return unit
