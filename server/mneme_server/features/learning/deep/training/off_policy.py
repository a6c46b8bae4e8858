"""What algorithms share that learn again and again from kept transitions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from mneme_server.common.errors import FailedPrecondition
from mneme_server.features.learning.deep.setup import Batch, Setup
from mneme_server.features.learning.deep.training.replay import Replay, Sample
from mneme_server.features.learning.deep.training.trainer import Certainty, Trainer, Update, summary
from mneme_server.features.learning.learner import Learned


class OffPolicy(Trainer):
    """After the first `learning_starts` transitions it takes a step for every `train_every`."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.replay = Replay(setup, setup.whole("buffer_size"))
        self.certainty = Certainty()
        self._batch_size = setup.whole("batch_size")
        self._starts, self._every = setup.whole("learning_starts"), setup.whole("train_every")
        self._seen = 0
        self.updates = 0

    @abstractmethod
    def update(self, sample: Sample) -> Update:
        """Take a step on a sample."""

    def wants(self) -> int:
        """See `Trainer`."""
        if self._seen < self._starts:
            return self._starts + self._every - self._seen
        return self._every - (self._seen - self._starts) % self._every

    def learn(self, batch: Batch) -> Learned:
        """See `Trainer`."""
        self.scaling.see(batch.states)
        self.replay.add(batch)
        before = self._due()
        self._seen += len(batch)
        return self._steps(self._due() - before)

    def train(self, steps: int, batch: int = 0) -> Learned:
        """See `Trainer`."""
        if not len(self.replay):
            raise FailedPrecondition("there are no transitions to train on yet")
        return self._steps(steps, batch)

    def _due(self) -> int:
        return max(0, self._seen - self._starts) // self._every

    def _steps(self, count: int, batch: int = 0) -> Learned:
        done, size = [], batch or self._batch_size
        for _ in range(count):
            done.append(self.update(self.replay.sample(size, self.chance)))
            self.updates += 1
        return summary(done)

    def dump(self) -> dict[str, Any]:
        """See `Trainer`."""
        kept = {"seen": self._seen, "updates": self.updates, "certainty": self.certainty.dump()}
        return {**super().dump(), "replay": self.replay.dump(), **kept}

    def load(self, state: Mapping[str, Any]) -> None:
        """See `Trainer`."""
        super().load(state)
        self.replay.load(state["replay"])
        self._seen, self.updates = state["seen"], state["updates"]
        self.certainty.load(state["certainty"])
