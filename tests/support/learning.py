"""A learning session as tests use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict
from mneme.v1 import auth_pb2, learning_pb2
from mneme.v1 import learning_service_pb2 as pb

from support.api import Api
from support.server import Keys

LEARNS = (auth_pb2.KEY_SCOPE_LEARN,)
"""The scopes of who learns."""


def learner(keys: Keys) -> Api:
    """Return a tenant of its own, called with a key that may learn."""
    return keys.tenant("learning", *LEARNS)


def state(value: Any) -> learning_pb2.State:
    """Return a state: of an object, a list of numbers, a number or a label."""
    return ParseDict(_value(value), learning_pb2.State())


def action(value: Any) -> learning_pb2.Action:
    """Return an action: a label, an object, a list of numbers or a number."""
    return ParseDict(_value(value), learning_pb2.Action())


def plain(message: learning_pb2.Action) -> Any:
    """Return an action as a Python value."""
    kind = message.WhichOneof("value")
    if kind == "numbers":
        return list(message.numbers.values)
    return MessageToDict(message.json) if kind == "json" else getattr(message, str(kind))


def discrete(n: int = 0, labels: Sequence[str] = ()) -> learning_pb2.Space:
    """Return a space of a number of values."""
    return learning_pb2.Space(discrete=learning_pb2.DiscreteSpace(n=n, labels=labels))


class Session:
    """A learning session of a tenant, started or resumed.

    Args:
        api: the tenant.
        algorithm: what learns.
        session_id: its id.
        config: of the algorithm.
        fields: what else the request says.
    """

    def __init__(
        self,
        api: Api,
        algorithm: str,
        session_id: str = "session",
        config: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        self.api = api
        self.id = session_id
        request = pb.StartLearningSessionRequest(
            session_id=session_id, algorithm=algorithm, **fields
        )
        request.config.update(config or {})
        started = api.learning.StartLearningSession(request)
        self.resumed = started.resumed

    @classmethod
    def known(cls, api: Api, session_id: str = "session") -> Session:
        """Return a session that was started elsewhere."""
        session = cls.__new__(cls)
        session.api, session.id, session.resumed = api, session_id, True
        return session

    def predict(self, of: Any, allowed: Sequence[Any] = (), **fields: Any) -> Any:
        """Return a prediction."""
        request = pb.PredictRequest(
            session_id=self.id,
            state=state(of),
            allowed_actions=[action(one) for one in allowed],
            **fields,
        )
        return self.api.learning.Predict(request).prediction

    def reward(self, prediction_id: str, reward: float, **fields: Any) -> pb.FeedbackResponse:
        """Tell what came of a prediction."""
        return self.api.learning.Feedback(
            pb.FeedbackRequest(prediction_id=prediction_id, reward=reward, **_states(fields))
        )

    def tell(self, of: Any, done: Any, reward: float, **fields: Any) -> pb.FeedbackResponse:
        """Tell what came of an action."""
        request = pb.FeedbackRequest(
            session_id=self.id, state=state(of), action=action(done), reward=reward,
            **_states(fields),
        )  # fmt: skip
        return self.api.learning.Feedback(request)

    def record(
        self, *steps: learning_pb2.Experience, trajectory_id: str = ""
    ) -> pb.RecordExperienceResponse:
        """Record a trajectory."""
        request = pb.RecordExperienceRequest(
            session_id=self.id, steps=steps, trajectory_id=trajectory_id
        )
        return self.api.learning.RecordExperience(request)

    def stored(self) -> learning_pb2.LearningSession:
        """Return the session."""
        asked = pb.GetLearningSessionRequest(session_id=self.id)
        return self.api.learning.GetLearningSession(asked).session

    def metrics(self, **fields: Any) -> learning_pb2.LearningMetrics:
        """Return its metrics."""
        asked = pb.GetLearningMetricsRequest(session_id=self.id, **fields)
        return self.api.learning.GetLearningMetrics(asked).metrics

    def download(self) -> tuple[learning_pb2.ExportedModel, bytes]:
        """Return what it exported, and its bytes."""
        asked = pb.DownloadModelRequest(session_id=self.id)
        first, *parts = self.api.learning.DownloadModel(asked)
        return first.model, b"".join(part.data for part in parts)

    def end(self, **fields: Any) -> pb.EndLearningSessionResponse:
        """End it."""
        request = pb.EndLearningSessionRequest(session_id=self.id, **fields)
        return self.api.learning.EndLearningSession(request)

    def values(self, of: Any) -> dict[str, float]:
        """Return what each action is thought to be worth."""
        scores = self.predict(of).actions
        return {str(plain(score.action)): score.value for score in scores}


def step(of: Any, done: Any, reward: float, **fields: Any) -> learning_pb2.Experience:
    """Return a step of a trajectory."""
    return learning_pb2.Experience(
        state=state(of), action=action(done), reward=reward, **_states(fields)
    )


def _states(fields: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(fields)
    if "next_state" in made:
        made["next_state"] = state(made["next_state"])
    return made


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"label": value}
    if isinstance(value, int):
        return {"number": value}
    if isinstance(value, Mapping):
        return {"json": dict(value)}
    return {"numbers": {"values": list(value)}}
