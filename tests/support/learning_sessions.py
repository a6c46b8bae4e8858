"""Sessions of every algorithm on tasks of one step, small enough for tests, and what they know."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from mneme.v1 import learning_pb2
from mneme.v1 import learning_service_pb2 as pb
from mneme_server.features.learning.catalogue import ALGORITHMS

from support.api import Api
from support.deep import NAMED, config_of
from support.learning import Session, discrete, plain, step

TABLES_AND_BANDITS = [one.name for one in ALGORITHMS if not one.needs_torch]
NETWORKS = [one.name for one in ALGORITHMS if one.needs_torch]
RECORDED_ONLY = {"decision_transformer"}
"""Those that learn only when they are trained."""
STATES = learning_pb2.Space(box=learning_pb2.BoxSpace(low=[-1.0], high=[1.0]))
BOX = learning_pb2.Space(box=learning_pb2.BoxSpace(low=[-2.0], high=[2.0]))
_ASKED = (-0.9, -0.4, 0.0, 0.3, 0.8)
_ACTORS = ("ann", "bob", "eve")


def small(api: Api, algorithm: str, session_id: str = "session", seed: int = 1) -> Session:
    """A session with two actions, or a box of them, whose settings are small."""
    network = NAMED.get(algorithm)
    return Session(
        api,
        algorithm,
        session_id,
        config_of(algorithm) if network else {},
        state_space=STATES,
        action_space=BOX if network and not network.discrete else discrete(2),
        seed=seed,
    )


def told(algorithm: str, count: int, start: int = 0) -> list[learning_pb2.Experience]:
    """Steps that others took, an episode each, of three actors: where they were, what they did and
    how probable that was; the same ones for the same numbers."""
    boxed = algorithm in NAMED and not NAMED[algorithm].discrete
    return [_told(turn, boxed=boxed) for turn in range(start, start + count)]


def _told(turn: int, *, boxed: bool) -> learning_pb2.Experience:
    of = (turn * 37 % 100) / 50 - 1
    done: Any
    if boxed:
        chosen = (turn * 61 % 100) / 25 - 2
        done, gained, likely = [chosen], -abs(chosen - of), 0.25
    else:
        number = turn * 61 % 100 % 2
        done, gained, likely = number, float(number == (of > 0)), 0.5
    actor = _ACTORS[turn * 7 % 10 % 3]
    return step([of], done, gained, terminated=True, actor_id=actor, probability=likely)


def practise(session: Session, algorithm: str, turns: int, start: int = 0) -> list[Any]:
    """Ask and tell; return what was done."""
    actions = []
    for turn in range(start, start + turns):
        of = (turn * 37 % 100) / 50 - 1
        made = session.predict([of], explore=True, actor_id=_ACTORS[turn % 3])
        action = plain(made.action)
        boxed = isinstance(action, list)
        gained = -abs(action[0] - of) if boxed else float(action == (of > 0))
        session.reward(made.prediction_id, gained)
        actions.append(action)
    if algorithm in RECORDED_ONLY:
        train(session, 5)
    return actions


def train(session: Session, steps: int) -> Sequence[pb.TrainResponse]:
    """Have it learn again from what it keeps."""
    asked = pb.TrainRequest(session_id=session.id, num_steps=steps)
    return list(session.api.learning.Train(asked))


def score(session: Session) -> float:
    """The mean reward of what it thinks best, over states of all kinds."""
    gained = []
    for turn in range(20):
        of = turn / 10 - 0.95
        action = plain(session.predict([of]).action)
        boxed = isinstance(action, list)
        gained.append(-abs(action[0] - of) if boxed else float(action == (of > 0)))
    return fmean(gained)


def halfway(algorithm: str) -> float:
    """A score halfway between that of chance and the best there is."""
    boxed = algorithm in NAMED and not NAMED[algorithm].discrete
    return -(1 + 1 / 12) / 2 if boxed else 0.75  # A coordinate is 1 + state² / 4 away by chance.


def drawn(session: Session, count: int) -> list[Any]:
    """What it tries when it is asked to explore, and how probable that was."""
    made = [session.predict([0.1], explore=True, actor_id="dora") for _ in range(count)]
    return [(plain(one.action), one.probability) for one in made]


def known(session: Session) -> list[Any]:
    """What it does where, what it thinks of it to the last bit, and how much it has learned."""
    predictions = [session.predict([of]) for of in _ASKED]
    stored, metrics = session.stored(), session.metrics()
    return [
        [
            (plain(made.action), made.confidence, made.trained, _scores(made.actions))
            for made in predictions
        ],
        (stored.transitions, stored.learned, stored.episodes_completed, stored.total_reward),
        (metrics.updates, metrics.exploration_rate),
    ]


def _scores(actions: Sequence[Any]) -> list[Any]:
    return [(plain(one.action), one.value, one.probability) for one in actions]
