"""An embedder that answers when a test lets it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Stuck:
    """Implements `Embedder`: waits until `answers` is set."""

    model_id = "stuck"
    dimensions = 4

    def __init__(self) -> None:
        self.answers = threading.Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the same vector for each text, in the end."""
        assert self.answers.wait(60)
        return np.eye(4, dtype=np.float32)[[0] * len(texts)]

    def close(self) -> None:
        """Answer whoever still waits."""
        self.answers.set()
