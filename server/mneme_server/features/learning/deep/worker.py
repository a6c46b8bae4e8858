"""A worker process: holds one trainer, and does what it is asked, one thing after the other.

It has no socket and no more memory than it was given, leaves the processor to calls, and ends with
the process that started it, however that one ends. `process.py` is the other side.
"""

from __future__ import annotations

import math
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from mneme_server.engine.background.worker import described, end_with, go_first, limit_memory
from mneme_server.features.learning.deep import frames
from mneme_server.features.learning.deep.setup import Batch, Setup

if TYPE_CHECKING:
    from mneme_server.features.learning.algorithms.algorithm import UpdateSummary
    from mneme_server.features.learning.deep.training.trainer import Trainer

Answer = Mapping[str, Any]

_NICE = 10
"""Calls go first; but somebody may wait for what is learned, so it is not the very last."""


class TrainerHost:
    """Answers what is asked of a trainer.

    Args:
        ready: called when there is one.
    """

    def __init__(self, ready: Callable[[], object] = lambda: None) -> None:
        self._trainer: Trainer | None = None
        self._ready = ready

    def answer(self, asked: Mapping[str, Any]) -> Answer:
        """Do what is asked ("setup" first, "learn", "train", "dump")."""
        if asked["do"] == "setup":
            return self._setup(asked)
        trainer = self._trainer
        assert trainer is not None
        match asked["do"]:
            case "learn":
                trainer.grow(asked["actions"])
                return self._learned(trainer, trainer.learn(Batch(**asked["batch"])))
            case "train":
                learned = trainer.train(asked["steps"], asked["batch"])
                self._require_finite(trainer, learned)
                return self._learned(trainer, learned)
            case "dump":
                return {"dump": trainer.dump()}
        raise ValueError(f"nobody knows how to {asked['do']!r}")

    def _setup(self, asked: Mapping[str, Any]) -> Answer:
        import torch

        from mneme_server.features.learning.deep.training import trainer_for

        torch.set_num_threads(1)
        trainer = self._trainer = trainer_for(Setup(**asked["setup"]))
        if asked["dump"] is not None:
            trainer.load(asked["dump"])
        self._ready()
        return {"wants": trainer.wants()}

    def _learned(self, trainer: Trainer, learned: UpdateSummary) -> Answer:
        weights = trainer.weights() if learned.updates else None
        return {"learned": asdict(_finite(learned)), "weights": weights, "wants": trainer.wants()}

    def _require_finite(self, trainer: Trainer, learned: UpdateSummary) -> None:
        from mneme_server.common.errors import Reason, WorkFailed

        if learned == _finite(learned):
            return
        raise WorkFailed(
            f"the training of {trainer.setup.algorithm} diverged: what it computes is no longer a"
            " number. The session goes on choosing by what it had learned before; one with a lower"
            " learning_rate, or with smaller rewards, may learn",
            reason=Reason.CONVERGENCE_FAILED,
        )


def _finite(learned: UpdateSummary) -> UpdateSummary:
    """Return what was learned without figures that are no numbers."""
    loss, value, norm = learned.loss, learned.value, learned.gradient_norm
    return replace(
        learned,
        loss=loss if loss is not None and math.isfinite(loss) else None,
        value=value if value is not None and math.isfinite(value) else None,
        gradient_norm=norm if math.isfinite(norm) else 0.0,
    )


def main() -> int:
    """Answer frames that come in on standard input; `argv` is the parent's pid, the pipe to answer
    through, and how many bytes may be resident."""
    parent, pipe, memory_bytes = map(int, sys.argv[1:4])
    end_with(parent)
    go_first()
    asked: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(asked,), name="parent", daemon=True).start()
    desk = TrainerHost(lambda: os.nice(_NICE))  # Until then somebody may wait for torch.
    limit_memory(memory_bytes)
    with os.fdopen(pipe, "wb") as answers:
        while True:
            try:
                answer = desk.answer(asked.get())
            except Exception as error:
                answer = {"error": described(error)}
                if "bug" in answer["error"]:
                    answers.write(frames.pack(answer))
                    answers.flush()
                    raise
            try:
                answers.write(frames.pack(answer))
                answers.flush()
            except BrokenPipeError:
                return 1


def _read(asked: queue.SimpleQueue[Mapping[str, Any]]) -> None:
    """Take frames in as they come, so that nobody waits to hand one over; end when they do."""
    with os.fdopen(sys.stdin.fileno(), "rb", closefd=False) as questions:
        while (frame := frames.read(questions.read)) is not None:
            asked.put(frame)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
