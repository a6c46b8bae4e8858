"""Asking and telling over one stream, and learning again from what was recorded."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest
from mneme.v1 import learning_pb2
from mneme.v1 import learning_service_pb2 as pb
from support.api import Api, grpc, refused
from support.learning import Session, action, discrete, learner, plain, state, step
from support.server import LocalServer


@pytest.fixture
def api(server: LocalServer) -> Api:
    return learner(server.keys)


class Stream:
    """A stream of Act: what is sent, and what is answered to it."""

    def __init__(self, session: Session) -> None:
        self._messages: queue.SimpleQueue[pb.ActRequest | None] = queue.SimpleQueue()
        self._answers = session.api.learning.Act(self._sent())
        self._session_id = session.id

    def _sent(self) -> Iterator[pb.ActRequest]:
        yield from iter(self._messages.get, None)

    def __call__(
        self,
        states: Any = (),
        feedback: Any = (),
        actors: Any = (),
        allowed: Any = (),
        **fields: Any,
    ) -> pb.ActResponse:
        """Send a message and return its answer."""
        actions = [action(one) for one in allowed]
        asked = [
            pb.ActState(
                state=state(one),
                actor_id=actors[place] if actors else "",
                allowed_actions=actions,
            )
            for place, one in enumerate(states)
        ]
        self._messages.put(
            pb.ActRequest(session_id=self._session_id, states=asked, feedback=feedback, **fields)
        )
        self._session_id = ""  # It need be said once only.
        answer: pb.ActResponse = next(self._answers)
        return answer

    def end(self) -> None:
        """End it from this side."""
        self._messages.put(None)
        assert not list(self._answers)


def followed(made: learning_pb2.Prediction, reward: float, **fields: Any) -> Any:
    """What came of a prediction."""
    return learning_pb2.Experience(prediction_id=made.prediction_id, reward=reward, **fields)


def test_what_came_of_many_states_are_episodes_of_their_own(api: Api) -> None:
    session = Session(api, "q_learning", action_space=discrete(labels=["go", "stay"]))
    stream = Stream(session)
    made = stream([{"at": n} for n in range(20)], explore=True).predictions
    told = stream(feedback=[followed(one, 1.0) for one in made])
    assert told.episodes_completed == 20
    assert session.stored().episodes_completed == 20
    stream.end()


def test_a_message_with_many_states_is_answered_in_their_order(api: Api) -> None:
    session = Session(api, "q_learning", state_space=discrete(64), action_space=discrete(2))
    session.record(*(step(n, n % 2, 1.0, terminated=True) for n in range(64)))
    stream = Stream(session)
    made = stream(range(64)).predictions
    assert [plain(one.action) for one in made] == [n % 2 for n in range(64)]
    assert not made[0].actions
    scores = stream([3], with_scores=True).predictions[0].actions
    assert [plain(one.action) for one in scores] == [1, 0]
    stream.end()


def test_the_predictions_of_a_message_know_its_feedback(api: Api) -> None:
    config = {"learning_rate": 1.0}
    session = Session(api, "q_learning", config=config, action_space=discrete(2))
    stream = Stream(session)
    (made,) = stream([{"at": 0}]).predictions
    assert not made.trained
    answer = stream([{"at": 0}], [followed(made, -1.0)])
    assert (answer.transitions, answer.episodes_completed, answer.updates) == (1, 1, 1)
    (other,) = answer.predictions
    assert other.trained
    assert plain(other.action) != plain(made.action)
    stream.end()


def test_actors_have_episodes_of_their_own(api: Api) -> None:
    session = Session(api, "sarsa", action_space=discrete(2))
    stream = Stream(session)
    actors = ["ann", "bob"]
    made = stream([{"at": 0}, {"at": 1}], actors=actors, explore=True).predictions
    told = [followed(one, 1.0, next_state=state({"at": 2})) for one in made]
    made = stream([{"at": 2}] * 2, told, actors=actors, explore=True).predictions
    answer = stream(feedback=[followed(made[0], 5.0), followed(made[1], 7.0)])
    assert (answer.transitions, answer.episodes_completed) == (4, 2)
    assert {point.episode_reward for point in session.metrics().history} == {6.0, 8.0}
    stream.end()


def test_a_wrong_message_ends_the_stream_and_nothing_of_it_is_recorded(api: Api) -> None:
    session = Session(api, "q_learning", state_space=discrete(4), action_space=discrete(2))
    stream = Stream(session)
    (made,) = stream([1]).predictions
    with refused() as failure:
        stream([1, 9], [followed(made, 1.0)])
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert list(failure.fields) == ["states[1].state"]
    assert failure.metadata["message_index"] == "1"
    assert not session.stored().transitions
    session.reward(made.prediction_id, 1.0)
    again = Stream(session)
    with refused() as failure:
        again([1], [step(1, 0, 1.0), followed(made, 1.0)])
    assert failure.code == grpc.StatusCode.ALREADY_EXISTS
    assert session.stored().transitions == 1


def test_predictions_of_which_nothing_will_be_told_have_no_id(api: Api) -> None:
    session = Session(api, "q_learning", action_space=discrete(2))
    stream = Stream(session)
    (made,) = stream([{"at": 0}], without_feedback=True).predictions
    assert not made.prediction_id
    stream.end()


def train(session: Session, steps: int) -> list[pb.TrainResponse]:
    request = pb.TrainRequest(session_id=session.id, num_steps=steps)
    return list(session.api.learning.Train(request))


def test_q_learning_learns_again_from_what_was_recorded(api: Api) -> None:
    config = {"learning_rate": 0.5, "discount_factor": 0.5}
    session = Session(api, "q_learning", config=config)
    session.record(*(step({"at": n}, "go", 8.0 if n == 3 else 0.0) for n in range(4)))
    assert session.values({"at": 0})["go"] == 0.0  # The reward is three steps away.
    last = train(session, 40)[-1]
    assert (last.steps_completed, last.num_steps, last.updates) == (40, 40, 40 * 32)
    assert last.steps_per_second > 0
    assert session.values({"at": 0})["go"] == pytest.approx(1.0, abs=0.01)
    assert session.stored().learned == 4


def test_sarsa_learns_again_in_order_and_leaves_episodes_under_way_alone(api: Api) -> None:
    config = {"learning_rate": 0.5, "discount_factor": 0.5}
    session = Session(api, "sarsa", config=config)
    for n in range(3):
        session.tell({"at": n}, "go", 0.0, next_state={"at": n + 1}, probability=1.0)
    train(session, 5)
    session.tell({"at": 3}, "go", 8.0, probability=1.0)
    train(session, 200)
    assert session.values({"at": 2})["go"] == pytest.approx(4.0, abs=0.05)
    assert session.values({"at": 0})["go"] == pytest.approx(1.0, abs=0.05)


def test_a_bandit_has_learned_all_there_is_already(api: Api) -> None:
    session = Session(api, "linucb")
    session.tell({"at": 0}, "go", 1.0)
    before = session.values({"at": 0})
    last = train(session, 10)[-1]
    assert (last.steps_completed, last.updates) == (10, 0)
    assert session.values({"at": 0}) == before


def test_without_anything_recorded_there_is_nothing_to_train_on(api: Api) -> None:
    session = Session(api, "q_learning")
    with refused() as failure:
        train(session, 10)
    assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
    assert "told nothing yet" in failure.message


def test_training_ends_when_the_caller_ends_it_and_keeps_what_was_learned(api: Api) -> None:
    session = Session(api, "q_learning")
    session.tell({"at": 0}, "go", 1.0)
    request = pb.TrainRequest(session_id=session.id, num_steps=1_000_000)
    progress = api.learning.Train(request)
    first = next(progress)
    assert 0 < first.steps_completed < 1_000_000
    progress.cancel()
    updates = session.metrics().updates
    assert updates > 32
    while (now := session.metrics().updates) != updates:  # Until it has noticed.
        updates = now
