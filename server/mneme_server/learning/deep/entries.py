"""The algorithms that learn with neural networks, and what their settings may be.

The defaults are those that many tasks agree on, as far as one can know without the task: what
cleanrl and the zoo of Stable-Baselines3 use most, in networks small enough for one processor.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.learning.actions import count_of
from mneme_server.learning.algorithm import Algorithm, Key, Task
from mneme_server.learning.deep.encoding import Encoder, bounds_of, encoder_of, is_bounded
from mneme_server.learning.deep.exploring import Trying
from mneme_server.learning.deep.learner import DeepLearner
from mneme_server.learning.deep.policies import (
    Categorical,
    Deterministic,
    Gaussian,
    Policy,
    Values,
)
from mneme_server.learning.deep.process import require_torch
from mneme_server.learning.deep.setup import RECORDED_AT_ONCE, Setup
from mneme_server.learning.deep.transformer import Foretelling
from mneme_server.learning.spaces import Box, OpenLabels


def _learning_rate(default: float) -> Key:
    return Key("learning_rate", default, "How far each step of the optimiser goes.", 1e-6, 1)


def _batch_size(default: int) -> Key:
    return Key("batch_size", default, "How many transitions a step learns from.", 1, 4_096)


_DISCOUNT = Key("discount_factor", 0.99, "What a reward is worth one step later.", 0, 1)
_FEATURES = Key(
    "features",
    64,
    "How many facts of a state that is not declared have a number of their own; later ones share "
    "the numbers of others.",
    8,
    1_024,
)


def _network(size: int, layers: int = 2) -> tuple[Key, ...]:
    return (
        Key("hidden_size", size, "How many units a hidden layer has.", 4, 1_024),
        Key("hidden_layers", layers, "How many hidden layers a network has.", 1, 4),
        _FEATURES,
    )


def _replay(starts: int, every: int, target_rate: float) -> tuple[Key, ...]:
    return (
        Key(
            "buffer_size",
            100_000,
            "How many of the latest transitions are kept to learn from again; fewer where they are "
            "large, so that they take at most 32 MiB.",
            1_000,
            1_000_000,
        ),
        Key("learning_starts", starts, "After how many transitions it begins.", 1, 1_000_000),
        Key("train_every", every, "For every how many transitions it takes a step.", 1, 10_000),
        Key(
            "target_rate",
            target_rate,
            "How far the networks that targets come from follow at each step.",
            1e-5,
            1,
        ),
    )


_DQN = (
    _learning_rate(1e-3),
    _DISCOUNT,
    Key("epsilon", 0.05, "With which probability any action is tried in the end.", 0, 1),
    Key("epsilon_start", 1.0, "With which probability any action is tried at first.", 0, 1),
    Key("epsilon_steps", 50_000, "After how many transitions epsilon is reached.", 1, 10_000_000),
    Key(
        "epsilon_episodes",
        2_500,
        "After how many episodes epsilon is reached, if that is sooner.",
        1,
        10_000_000,
    ),
    _batch_size(128),
    *_replay(500, 10, 0.02),
    *_network(128),
)
_GAE = Key(
    "gae_lambda",
    0.95,
    "How much later steps count when it is judged how good an action was: 0 trusts the critic, 1 "
    "what came of it.",
    0,
    1,
)
_EPSILON = Key(
    "epsilon", 0.0, "With which probability any action is tried beside the policy's.", 0, 1
)
_VALUE_WEIGHT = Key("value_weight", 0.5, "How much the critic's error counts.", 0, 100)


def _entropy_weight(default: float) -> Key:
    return Key(
        "entropy_weight", default, "How much it counts that the policy stays undecided.", 0, 10
    )


def _a2c(rollout_steps: int) -> tuple[Key, ...]:
    return (
        _learning_rate(2e-3),
        _DISCOUNT,
        _EPSILON,
        Key("batch_size", 32, "How many transitions a step of Train learns from.", 1, 4_096),
        Key(
            "rollout_steps",
            rollout_steps,
            "After how many transitions it learns from them; in a3c those of an actor.",
            1,
            100_000,
        ),
        _GAE,
        _entropy_weight(0.005),
        _VALUE_WEIGHT,
        *_network(64),
    )


_PPO = (
    _learning_rate(5e-4),
    _DISCOUNT,
    _EPSILON,
    _batch_size(64),
    Key("rollout_steps", 512, "After how many transitions it learns from them.", 8, 100_000),
    Key("epochs", 10, "How often it learns from each transition.", 1, 100),
    Key("clip_range", 0.2, "By how much the ratio of probabilities may change.", 0.01, 1),
    Key("target_kl", 0.05, "How far the policy may go from its behaviour.", 0.0001, 100),
    _GAE,
    _entropy_weight(0.005),
    _VALUE_WEIGHT,
    *_network(64),
)
_NOISE = Key(
    "exploration_noise",
    0.2,
    "The deviation of the noise that is added when it explores, in halves of the width of the box.",
    0,
    10,
)
_DDPG = (
    _learning_rate(1e-3),
    _DISCOUNT,
    _NOISE,
    _batch_size(128),
    *_replay(1_000, 1, 0.005),
    *_network(128),
)
_TD3 = (
    *_DDPG,
    Key("policy_every", 2, "At every how many steps the policy learns, too.", 1, 100),
    Key(
        "target_noise",
        0.2,
        "The deviation of the noise that blurs actions that follow, in halves of the width.",
        0,
        10,
    ),
    Key("target_noise_limit", 0.5, "The most that this noise may be.", 0, 10),
)
_SAC = (
    _learning_rate(1e-3),
    _DISCOUNT,
    _batch_size(128),
    Key(
        "entropy_weight",
        1.0,
        "How much the policy's entropy counts at first; from then on it is learned.",
        1e-6,
        100,
    ),
    *_replay(1_000, 1, 0.005),
    *_network(128),
)
_TRANSFORMER = (
    _learning_rate(1e-3),
    _batch_size(64),
    Key("context", 20, "How many transitions it looks at, the one to come included.", 1, 200),
    Key("heads", 2, "How many heads its attention has; hidden_size is a multiple.", 1, 16),
    Key(
        "buffer_size",
        200_000,
        "How many transitions of the latest episodes are kept; fewer where they are large, so that "
        "they take at most 32 MiB.",
        100,
        1_000_000,
    ),
    *_network(64),
)


def _maker(
    name: str, wants: Callable[[Task], int], *, on_policy: bool = False
) -> Callable[[Task], DeepLearner]:
    def make(task: Task) -> DeepLearner:
        require_torch()
        config = task.config
        encoder = encoder_of(task.states, int(config["features"]))
        box = task.actions if isinstance(task.actions, Box) else None
        if box is not None and not is_bounded(box):
            raise InvalidArgument(
                f"action_space: {name} needs bounds for every coordinate, low below high, neither"
                " beyond a million",
                reason=Reason.INVALID_PARAMETER,
                field="action_space",
            )
        none = np.zeros(0, np.float32)
        middle, half = bounds_of(box) if box is not None else (none, none)
        if int(config["hidden_size"]) % int(config.get("heads", 1)):
            raise InvalidArgument(
                f"config.heads: hidden_size, {config['hidden_size']}, must be a multiple of it",
                reason=Reason.OUT_OF_RANGE,
                field="config.heads",
            )
        setup = Setup(
            algorithm=name,
            inputs=encoder.size,
            numeric=encoder.numeric(),
            binary=encoder.binary,
            actions=len(middle) or count_of(task.actions) or 1,
            middle=middle,
            half=half,
            config=config,
            seed=task.seed,
        )
        return DeepLearner(
            setup,
            encoder,
            _policy(name, task, setup, encoder),
            wants=wants(task),
            open_actions=isinstance(task.actions, OpenLabels),
            on_policy=on_policy,
            background=task.background,
        )

    return make


def _policy(name: str, task: Task, setup: Setup, encoder: Encoder) -> Policy:
    if name == "decision_transformer":
        box = (setup.middle, setup.half) if setup.continuous else None
        length, heads = setup.whole("context"), setup.whole("heads")
        return Foretelling(encoder, setup.actions, length, heads, box)
    if setup.continuous:
        if name in {"ddpg", "td3"}:
            return Deterministic(setup.middle, setup.half, setup.number("exploration_noise"))
        return Gaussian(setup.middle, setup.half, correlated=name == "sac")
    last = setup.number("epsilon")
    trying = Trying(
        float(task.config.get("epsilon_start", last)),
        last,
        int(task.config.get("epsilon_steps", 1)),
        int(task.config.get("epsilon_episodes", 1)),
        count_tries=isinstance(task.actions, OpenLabels),
    )
    return Values(trying) if name == "dqn" else Categorical(trying)


def _first_step(task: Task) -> int:
    return int(task.config["learning_starts"]) + int(task.config["train_every"])


def _recorded(_task: Task) -> int:
    return RECORDED_AT_ONCE


def _rollout(task: Task) -> int:
    return int(task.config["rollout_steps"])


DEEP_ALGORITHMS: tuple[Algorithm, ...] = (
    Algorithm(
        name="dqn",
        summary="A network of what each action is worth, followed by the best ones. Learns again "
        "and again from what it keeps, also from what others did.",
        source='Mnih et al., "Human-level control through deep reinforcement learning", 2015; '
        'van Hasselt et al., "Deep reinforcement learning with double Q-learning", 2015',
        discrete=True,
        continuous=False,
        open_actions=True,
        on_policy=False,
        keys=_DQN,
        make=_maker("dqn", _first_step),
        needs_torch=True,
    ),
    Algorithm(
        name="actor_critic",
        summary="A policy and a critic that judges it (A2C): goes towards what turned out better "
        "than expected, after every few transitions.",
        source='Mnih et al., "Asynchronous methods for deep reinforcement learning", 2016; Sutton '
        'and Barto, "Reinforcement Learning", 2nd edition, section 13.5',
        discrete=True,
        continuous=True,
        open_actions=True,
        on_policy=True,
        keys=_a2c(128),
        make=_maker("actor_critic", _rollout, on_policy=True),
        needs_torch=True,
    ),
    Algorithm(
        name="ppo",
        summary="A policy that goes towards what turned out better than expected, in careful "
        "steps. Robust, for many kinds of tasks.",
        source='Schulman et al., "Proximal policy optimization algorithms", 2017',
        discrete=True,
        continuous=True,
        open_actions=True,
        on_policy=True,
        keys=_PPO,
        make=_maker("ppo", _rollout, on_policy=True),
        needs_torch=True,
    ),
    Algorithm(
        name="a3c",
        summary="An actor-critic for many actors at once: each actor_id has a rollout of its own "
        "and learns when that is full. With one actor it is A2C, the same as actor_critic.",
        source='Mnih et al., "Asynchronous methods for deep reinforcement learning", 2016',
        discrete=True,
        continuous=True,
        open_actions=True,
        on_policy=True,
        keys=_a2c(32),
        make=_maker("a3c", _rollout, on_policy=True),
        needs_torch=True,
    ),
    Algorithm(
        name="ddpg",
        summary="A policy over numbers that goes where its critic rises. The simplest of the three "
        "for continuous actions; td3 and sac learn more steadily.",
        source='Lillicrap et al., "Continuous control with deep reinforcement learning", 2016',
        discrete=False,
        continuous=True,
        open_actions=False,
        on_policy=False,
        keys=_DDPG,
        make=_maker("ddpg", _first_step),
        needs_torch=True,
    ),
    Algorithm(
        name="sac",
        summary="A policy over numbers that is good and as undecided as it can afford. Learns from "
        "few transitions; a good first choice for continuous actions.",
        source='Haarnoja et al., "Soft actor-critic algorithms and applications", 2018',
        discrete=False,
        continuous=True,
        open_actions=False,
        on_policy=False,
        keys=_SAC,
        make=_maker("sac", _first_step),
        needs_torch=True,
    ),
    Algorithm(
        name="td3",
        summary="ddpg with two critics, of which the more careful one is believed, and a policy "
        "that learns more slowly than they do.",
        source='Fujimoto, van Hoof and Meger, "Addressing function approximation error in '
        'actor-critic methods", 2018',
        discrete=False,
        continuous=True,
        open_actions=False,
        on_policy=False,
        keys=_TD3,
        make=_maker("td3", _first_step),
        needs_torch=True,
    ),
    Algorithm(
        name="decision_transformer",
        summary="Learns from recorded episodes what was done where so much was still gained, and "
        "does what leads to the return that it is asked for. It learns when it is trained (Train).",
        source='Chen et al., "Decision transformer: reinforcement learning via sequence modeling", '
        "2021",
        discrete=True,
        continuous=True,
        open_actions=False,
        on_policy=False,
        keys=_TRANSFORMER,
        make=_maker("decision_transformer", _recorded),
        needs_torch=True,
    ),
)
"""All of them, in the order in which they are described."""
