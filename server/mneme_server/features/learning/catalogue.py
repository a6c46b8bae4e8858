"""The algorithms that sessions can choose, and what their settings may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec

from mneme._extras import from_wheels

from mneme_server.common.canonical import Json
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.features.learning.algorithms.algorithm import (
    REWARD_SCALE,
    Algorithm,
    ConfigKey,
    Learner,
    LearningTask,
    Setting,
)
from mneme_server.features.learning.algorithms.bandits import (
    LinearBandit,
    LinearConfig,
    LinUcb,
    Thompson,
)
from mneme_server.features.learning.algorithms.tabular import (
    QLearning,
    Sarsa,
    TabularConfig,
    ValueTable,
)
from mneme_server.features.learning.deep.algorithms import DEEP_ALGORITHMS
from mneme_server.features.learning.spaces import count_of


def _table(kind: type[ValueTable]) -> Callable[[LearningTask], Learner]:
    def make(task: LearningTask) -> Learner:
        config = TabularConfig(
            learning_rate=float(task.config["learning_rate"]),
            discount_factor=float(task.config["discount_factor"]),
            epsilon=float(task.config["epsilon"]),
            initial_value=float(task.config["initial_value"]),
            bins=int(task.config["bins"]),
            rate_decay=float(task.config["rate_decay"]),
            reward_scale=task.reward_scale,
        )
        return kind(task.states, count_of(task.actions), config)

    return make


def _bandit(kind: type[LinearBandit]) -> Callable[[LearningTask], Learner]:
    def make(task: LearningTask) -> Learner:
        config = LinearConfig(
            exploration=float(task.config["exploration"]),
            epsilon=float(task.config["epsilon"]),
            ridge=float(task.config["ridge"]),
            features=int(task.config["features"]),
            reward_scale=task.reward_scale,
            pairs=str(task.config["pairs"]),
            half_life=int(task.config["half_life"]),
            on_change=str(task.config["on_change"]),
        )
        return kind(task.states, config)

    return make


BATCH_SIZE = ConfigKey(
    "batch_size", 32, "How many recorded transitions a step of Train learns from.", 1, 1_024
)

_TABULAR = (
    ConfigKey(
        "learning_rate",
        0.1,
        "How far a value moves towards each new target in the end: 1 forgets what was before.",
        0.0001,
        1,
    ),
    ConfigKey(
        "rate_decay",
        0.4,
        "How soon the learning rate of an action in a state falls from 1 to learning_rate: at its "
        "nth target it is n to the power of minus this, and 1/n where nothing follows. 0: it is "
        "learning_rate from the first on.",
        0,
        1,
    ),
    ConfigKey("discount_factor", 0.99, "What a reward is worth one step later.", 0, 1),
    ConfigKey(
        "epsilon", 0.1, "With which probability any action is chosen when it explores.", 0, 1
    ),
    BATCH_SIZE,
    ConfigKey(
        "initial_value",
        0.0,
        "What an action is thought to be worth before it was tried; high values make it explore.",
        -1e9,
        1e9,
    ),
    ConfigKey(
        "bins",
        10,
        "Into how many equal parts a number between finite bounds is divided.",
        1,
        1_000,
    ),
)


def _exploration(default: float) -> ConfigKey:
    return ConfigKey(
        "exploration",
        default,
        "How much uncertainty counts: how many standard deviations are added to what an action is "
        "expected to bring (linucb), or by what they are multiplied before it is drawn (thompson).",
        0,
        100,
    )


_LINEAR = (
    ConfigKey(
        "epsilon", 0.02, "With which probability any action is chosen when it explores.", 0, 1
    ),
    ConfigKey(
        "ridge",
        2.0,
        "How many rewards the prior that a fact does not matter counts for.",
        0.01,
        1e6,
    ),
    ConfigKey(
        "features",
        96,
        "How many facts of a state, and pairs of them, have a weight of their own; later facts "
        "share the weights of others, and later pairs have none.",
        8,
        512,
    ),
    ConfigKey(
        "pairs",
        "few",
        "Whether pairs of facts have weights, too: where all pairs of a state are at most half of "
        "features (few), always, or never.",
        choices=("few", "always", "never"),
    ),
    ConfigKey(
        "half_life",
        0,
        "After how many rewards an earlier one counts half as much, for worlds that keep changing; "
        "0: it always counts the same.",
        0,
        1e9,
    ),
    ConfigKey(
        "on_change",
        "forget",
        "What to do when rewards keep falling short of what was expected, as they do after the "
        "world has changed: forget nearly all that was learned (forget), or go on (keep).",
        choices=("forget", "keep"),
    ),
    BATCH_SIZE,
)

_KINDS: tuple[Algorithm, ...] = (
    Algorithm(
        name="linucb",
        summary="A contextual bandit: chooses by what an action may bring at best. Learns from "
        "tens of rewards; looks at one step only.",
        source='Li, Chu, Langford and Schapire, "A contextual-bandit approach to personalized '
        'news article recommendation", 2010',
        discrete=True,
        continuous=False,
        open_actions=True,
        on_policy=False,
        keys=(_exploration(2.0), *_LINEAR),
        make=_bandit(LinUcb),
    ),
    Algorithm(
        name="thompson",
        summary="A contextual bandit: chooses each action with the probability that it is the "
        "best. Learns from tens of rewards; looks at one step only.",
        source='Agrawal and Goyal, "Thompson sampling for contextual bandits with linear payoffs", '
        "2013",
        discrete=True,
        continuous=False,
        open_actions=True,
        on_policy=False,
        keys=(_exploration(1.0), *_LINEAR),
        make=_bandit(Thompson),
    ),
    Algorithm(
        name="q_learning",
        summary="A table of what each action is worth in each state, followed by the best ones. "
        "For tasks of several steps with few states.",
        source='Watkins, "Learning from delayed rewards", 1989',
        discrete=True,
        continuous=False,
        open_actions=True,
        on_policy=False,
        keys=_TABULAR,
        make=_table(QLearning),
    ),
    Algorithm(
        name="sarsa",
        summary="A table of what each action is worth in each state, followed by the ones that it "
        "takes, exploration included: it keeps away from where a slip is costly.",
        source='Rummery and Niranjan, "On-line Q-learning using connectionist systems", 1994',
        discrete=True,
        continuous=False,
        open_actions=True,
        on_policy=True,
        keys=_TABULAR,
        make=_table(Sarsa),
    ),
    *DEEP_ALGORITHMS,
)
ALGORITHMS = tuple(replace(one, keys=(*one.keys, REWARD_SCALE)) for one in _KINDS)
"""All of them, in the order in which they are described."""

_BY_NAME = {algorithm.name: algorithm for algorithm in ALGORITHMS}


def algorithm_named(name: str) -> Algorithm:
    """Return an algorithm.

    Raises:
        InvalidArgument: there is none of this name.
    """
    found = _BY_NAME.get(name)
    if found is None:
        raise InvalidArgument(
            f"there is no algorithm {name!r}; there are {_listed(_BY_NAME)}",
            reason=Reason.ALGORITHM_NOT_SUPPORTED,
            field="algorithm",
        )
    return found


def algorithms(name: str = "") -> Sequence[Algorithm]:
    """Return all algorithms, or the one of this name.

    Raises:
        InvalidArgument: there is none of this name.
    """
    return [algorithm_named(name)] if name else ALGORITHMS


def find_algorithm(name: str) -> Algorithm | None:
    """Return an algorithm, or None."""
    return _BY_NAME.get(name)


def missing(algorithm: Algorithm) -> str:
    """Return what this server lacks to run an algorithm, completing a sentence about it; empty if
    nothing."""
    if algorithm.needs_torch and find_spec("torch") is None:
        return (
            "needs torch, which is not installed: install the server with its extra rl,"
            f" {from_wheels('server,rl')}"
        )
    return ""


def configured(algorithm: Algorithm, given: Mapping[str, Json]) -> dict[str, Setting]:
    """Return a value for each of the algorithm's keys, the defaults where none is given.

    Raises:
        InvalidArgument: a key that it does not have, or a value that is not valid.
    """
    keys = {key.name: key for key in algorithm.keys}
    for name in given:
        if name not in keys:
            valid = ", ".join(f"{key.name} ({described(key)})" for key in algorithm.keys)
            raise _bad(f"config.{name}", f"{algorithm.name} has no such key; it has {valid}")
    return {name: _checked(key, given.get(name, key.default)) for name, key in keys.items()}


def completed(name: str, kept: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return the config of a session that was stored, with the defaults of the keys that its
    algorithm has got since."""
    algorithm = _BY_NAME.get(name)
    defaults = {key.name: key.default for key in algorithm.keys} if algorithm else {}
    return {**defaults, **kept}


def described(key: ConfigKey) -> str:
    """Return what a key may be, like "from 0 to 1, by default 0.1"."""
    if key.choices:
        return f"{_listed(key.choices)}, by default {key.default}"
    kind = "a whole number " if isinstance(key.default, int) else ""
    if math.isinf(key.high):
        return f"{kind}from {key.low:g} on, by default {key.default}"
    return f"{kind}from {key.low:g} to {key.high:g}, by default {key.default}"


def _checked(key: ConfigKey, value: Json) -> Setting:
    field = f"config.{key.name}"
    if isinstance(key.default, str):
        if not isinstance(value, str) or (key.choices and value not in key.choices):
            raise _bad(field, f"must be one of {described(key)}")
        return value
    whole = isinstance(key.default, int)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not key.low <= value <= key.high
        or (whole and not float(value).is_integer())
    ):
        raise _bad(field, f"must be {described(key)}")
    return int(value) if whole else float(value)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _bad(field: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"{field}: {problem}", reason=Reason.OUT_OF_RANGE, field=field)
