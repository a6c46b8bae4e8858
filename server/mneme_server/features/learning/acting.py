"""Asking and telling in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mneme_server.features.learning.gating import Wanted
from mneme_server.features.learning.live import Asked
from mneme_server.features.learning.model import Told
from mneme_server.features.learning.predicting import Predict, Predicted
from mneme_server.features.learning.recording import Record, Recorded
from mneme_server.features.learning.trust.gate import Verdict


@dataclass(frozen=True, slots=True)
class Message:
    """What came of actions, and what to choose actions for; not checked yet."""

    session_id: str
    feedback: Sequence[Told]
    states: Sequence[Asked]
    explore: bool
    with_ids: bool
    baseline: Wanted | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a message: the feedback's record, None without any, and the predictions."""

    recorded: Recorded | None
    predictions: Sequence[Predicted]

    @property
    def verdict(self) -> Verdict | None:
        """What the gate said of all of them, if there was one."""
        return self.predictions[0].verdict if self.predictions else None


class Act:
    """The use case: tell what came of actions, then ask for others.

    Args:
        predict: asks.
        record: tells.
    """

    def __init__(self, predict: Predict, record: Record) -> None:
        self._predict = predict
        self._record = record

    def __call__(self, tenant_id: str, message: Message) -> Answer:
        """Return what became of a message. Its states are checked before anything is recorded.

        Raises:
            See `Predict` and `Record`.
        """
        session_id = message.session_id
        checked = (
            self._predict.check(tenant_id, session_id, message.states, "states[{item}].")
            if message.states
            else []
        )
        recorded = None
        if message.feedback:
            recorded = self._record(
                tenant_id, session_id, message.feedback, field="feedback[{item}]."
            )
        predictions: Sequence[Predicted] = ()
        if checked:
            predictions = self._predict.choose(
                tenant_id,
                session_id,
                checked,
                explore=message.explore,
                with_ids=message.with_ids,
                baseline=message.baseline,
            )
        return Answer(recorded, predictions)
