"""A fake embedder at the port, for what wraps one."""

import hashlib
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
from mneme_server.engine.embedding.port import EmbeddingError
from numpy.typing import NDArray

WAIT_S = 60


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; fail when it does not come true."""
    until = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < until, "the condition never came true"
        time.sleep(0.001)


def vector_of(text: str) -> NDArray[np.float32]:
    """A unit vector that only this text has."""
    numbers = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8).astype(np.float32)
    unit: NDArray[np.float32] = numbers / np.linalg.norm(numbers)
    return unit


class FakeEmbedder:
    """Records its batches; can be held at a gate, and fails for the texts given in `failures`."""

    def __init__(self, on_batch: Callable[[list[str]], None] = lambda texts: None) -> None:
        self.batches: list[list[str]] = []
        self.failures: dict[str, BaseException] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Semaphore(0)  # released as each batch begins
        self.closed = False
        self._on_batch = on_batch
        self._lock = threading.Lock()

    @property
    def model_id(self) -> str:
        return "fake"

    @property
    def dimensions(self) -> int:
        return 32

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.closed:
            raise EmbeddingError("the embedder is closed")
        with self._lock:
            self.batches.append(list(texts))
        self.started.release()
        self._on_batch(list(texts))
        assert self.gate.wait(30)
        for text in texts:
            if text in self.failures:
                raise self.failures[text]
        if not texts:
            return np.empty((0, 32), np.float32)
        return np.stack([vector_of(text) for text in texts])

    def close(self) -> None:
        self.closed = True


class TellsQuestions(FakeEmbedder):
    """Has other vectors for questions; its batches of them are in `asked`."""

    @property
    def questions(self) -> "_Asked":
        return _Asked(self)

    def __init__(self, on_batch: Callable[[list[str]], None] = lambda texts: None) -> None:
        super().__init__(on_batch)
        self.asked: list[list[str]] = []


class _Asked:
    def __init__(self, embedder: TellsQuestions) -> None:
        self._embedder = embedder
        self.model_id, self.dimensions = embedder.model_id, embedder.dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self._embedder.asked.append(list(texts))
        return np.stack([vector_of(f"question: {text}") for text in texts])

    def close(self) -> None:
        raise AssertionError("whoever built the embedder closes it")
