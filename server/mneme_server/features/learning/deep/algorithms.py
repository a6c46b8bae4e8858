"""The algorithms that learn with neural networks, and their settings.

The defaults are those that many tasks agree on, as far as one can know without the task: what
cleanrl and the zoo of Stable-Baselines3 use most, in networks small enough for one processor.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from mneme._extras import from_wheels

from mneme_server.common.errors import FailedPrecondition, InvalidArgument, Reason
from mneme_server.features.learning.algorithms.algorithm import Algorithm, ConfigKey, LearningTask
from mneme_server.features.learning.deep.encoder import (
    StateEncoder,
    bounds_of,
    encoder_of,
    is_bounded,
)
from mneme_server.features.learning.deep.exploration import Exploration
from mneme_server.features.learning.deep.learner import DeepLearner
from mneme_server.features.learning.deep.policies import (
    Categorical,
    Deterministic,
    Gaussian,
    NetworkPolicy,
    Values,
)
from mneme_server.features.learning.deep.setup import RECORDED_AT_ONCE, Setup
from mneme_server.features.learning.deep.transformer import TransformerPolicy
from mneme_server.features.learning.spaces import Box, OpenLabels, count_of


def _learning_rate(default: float) -> ConfigKey:
    return ConfigKey("learning_rate", default, "How far each step of the optimiser goes.", 1e-6, 1)


def _batch_size(default: int) -> ConfigKey:
    return ConfigKey("batch_size", default, "How many transitions a step learns from.", 1, 4_096)


_DISCOUNT = ConfigKey("discount_factor", 0.99, "What a reward is worth one step later.", 0, 1)
_FEATURES = ConfigKey(
    "features",
    64,
    "How many facts of a state that is not declared have a number of their own; later ones share "
    "the numbers of others.",
    8,
    1_024,
)


def _network(size: int, layers: int = 2) -> tuple[ConfigKey, ...]:
    return (
        ConfigKey("hidden_size", size, "How many units a hidden layer has.", 4, 1_024),
        ConfigKey("hidden_layers", layers, "How many hidden layers a network has.", 1, 4),
        _FEATURES,
    )


def _replay(starts: int, every: int, target_rate: float) -> tuple[ConfigKey, ...]:
    return (
        ConfigKey(
            "buffer_size",
            100_000,
            "How many of the latest transitions are kept to learn from again; fewer where they are "
            "large, so that they take at most 32 MiB.",
            1_000,
            1_000_000,
        ),
        ConfigKey("learning_starts", starts, "After how many transitions it begins.", 1, 1_000_000),
        ConfigKey(
            "train_every", every, "For every how many transitions it takes a step.", 1, 10_000
        ),
        ConfigKey(
            "target_rate",
            target_rate,
            "How far the networks that targets come from follow at each step.",
            1e-5,
            1,
        ),
    )


DQN = (
    _learning_rate(1e-3),
    _DISCOUNT,
    ConfigKey("epsilon", 0.05, "With which probability any action is tried in the end.", 0, 1),
    ConfigKey("epsilon_start", 1.0, "With which probability any action is tried at first.", 0, 1),
    ConfigKey(
        "epsilon_steps", 50_000, "After how many transitions epsilon is reached.", 1, 10_000_000
    ),
    ConfigKey(
        "epsilon_episodes",
        2_500,
        "After how many episodes epsilon is reached, if that is sooner.",
        1,
        10_000_000,
    ),
    ConfigKey(
        "repeats",
        0.9,
        "With which probability what is tried is the actor's last action in its episode again, so "
        "that trying gets away from where it began.",
        0,
        0.99,
    ),
    _batch_size(128),
    *_replay(500, 10, 0.02),
    *_network(128),
)
_GAE = ConfigKey(
    "gae_lambda",
    0.95,
    "How much later steps count when it is judged how good an action was: 0 trusts the critic, 1 "
    "what came of it.",
    0,
    1,
)
_EPSILON = ConfigKey(
    "epsilon", 0.0, "With which probability any action is tried beside the policy's.", 0, 1
)
_VALUE_WEIGHT = ConfigKey("value_weight", 0.5, "How much the critic's error counts.", 0, 100)


def _entropy_weight(default: float) -> ConfigKey:
    return ConfigKey(
        "entropy_weight", default, "How much it counts that the policy stays undecided.", 0, 10
    )


def reuse(target_kl: float) -> tuple[ConfigKey, ...]:
    """Return the settings of how often the same transitions are learned from."""
    return (
        _batch_size(64),
        ConfigKey("epochs", 10, "How often it learns from each transition.", 1, 100),
        ConfigKey(
            "target_kl",
            target_kl,
            "How far the policy may go from its behaviour.",
            0.0001,
            100,
        ),
    )


def a2c(rollout_steps: int, reused: tuple[ConfigKey, ...]) -> tuple[ConfigKey, ...]:
    """Return the settings of an actor-critic that learns after so many steps."""
    return (
        _learning_rate(5e-4),
        _DISCOUNT,
        _EPSILON,
        ConfigKey(
            "rollout_steps",
            rollout_steps,
            "After how many transitions it learns from them; in a3c those of an actor.",
            1,
            100_000,
        ),
        *reused,
        _GAE,
        _entropy_weight(0.005),
        _VALUE_WEIGHT,
        *_network(64),
    )


PPO = (
    _learning_rate(5e-4),
    _DISCOUNT,
    _EPSILON,
    ConfigKey("rollout_steps", 512, "After how many transitions it learns from them.", 8, 100_000),
    *reuse(0.05),
    ConfigKey("clip_range", 0.2, "By how much the ratio of probabilities may change.", 0.01, 1),
    _GAE,
    _entropy_weight(0.005),
    _VALUE_WEIGHT,
    *_network(64),
)
_POLICY = ConfigKey(
    "policy",
    "best",
    "What chooses where nothing is explored: the policy with the best mean return of five episodes "
    "so far wherever the latest five are surely worse (best), or always the newest (newest).",
    choices=("best", "newest"),
)
_NOISE = (
    ConfigKey(
        "exploration_noise",
        0.2,
        "The deviation of the noise that is added when it explores, in halves of the width of the "
        "box, in the end.",
        0,
        10,
    ),
    ConfigKey("first_noise", 1.0, "The deviation of this noise at first.", 0, 10),
    ConfigKey(
        "noise_steps",
        5_000,
        "After how many transitions exploration_noise is reached.",
        1,
        10_000_000,
    ),
)
DDPG = (
    _learning_rate(1e-3),
    _DISCOUNT,
    _POLICY,
    *_NOISE,
    _batch_size(128),
    *_replay(1_000, 1, 0.005),
    *_network(128),
)
TD3 = (
    *DDPG,
    ConfigKey("policy_every", 2, "At every how many steps the policy learns, too.", 1, 100),
    ConfigKey(
        "target_noise",
        0.2,
        "The deviation of the noise that blurs actions that follow, in halves of the width.",
        0,
        10,
    ),
    ConfigKey("target_noise_limit", 0.5, "The most that this noise may be.", 0, 10),
)
SAC = (
    _learning_rate(1e-3),
    _DISCOUNT,
    _POLICY,
    _batch_size(128),
    ConfigKey(
        "entropy_weight",
        1.0,
        "How much the policy's entropy counts at first; from then on it is learned.",
        1e-6,
        100,
    ),
    *_replay(1_000, 1, 0.005),
    *_network(128),
)
TRANSFORMER = (
    _learning_rate(1e-3),
    _batch_size(64),
    ConfigKey("context", 20, "How many transitions it looks at, the one to come included.", 1, 200),
    ConfigKey("heads", 2, "How many heads its attention has; hidden_size is a multiple.", 1, 16),
    ConfigKey(
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
    name: str, wants: Callable[[LearningTask], int], *, on_policy: bool = False
) -> Callable[[LearningTask], DeepLearner]:
    def make(task: LearningTask) -> DeepLearner:
        _require_torch()
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
            reward_scale=task.reward_scale,
            keeps_best=config.get("policy") == "best",
        )

    return make


def _policy(name: str, task: LearningTask, setup: Setup, encoder: StateEncoder) -> NetworkPolicy:
    if name == "decision_transformer":
        box = (setup.middle, setup.half) if setup.continuous else None
        length, heads = setup.whole("context"), setup.whole("heads")
        return TransformerPolicy(encoder, setup.actions, length, heads, box)
    if setup.continuous:
        if name in {"ddpg", "td3"}:
            return Deterministic(
                setup.middle,
                setup.half,
                setup.number("exploration_noise"),
                float(task.config.get("first_noise", 0.0)),
                int(task.config.get("noise_steps", 0)),
            )
        return Gaussian(setup.middle, setup.half, correlated=name == "sac")
    last = setup.number("epsilon")
    trying = Exploration(
        float(task.config.get("epsilon_start", last)),
        last,
        int(task.config.get("epsilon_steps", 1)),
        int(task.config.get("epsilon_episodes", 1)),
        count_tries=isinstance(task.actions, OpenLabels),
        repeats=float(task.config.get("repeats", 0.0)),
    )
    return Values(trying) if name == "dqn" else Categorical(trying)


def _first_step(task: LearningTask) -> int:
    return int(task.config["learning_starts"]) + int(task.config["train_every"])


def _recorded(_task: LearningTask) -> int:
    return RECORDED_AT_ONCE


def _rollout(task: LearningTask) -> int:
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
        keys=DQN,
        make=_maker("dqn", _first_step),
        needs_torch=True,
    ),
    Algorithm(
        name="actor_critic",
        summary="A policy and a critic that judges it (A2C): goes towards what turned out better "
        "than expected, in several steps for each rollout.",
        source='Mnih et al., "Asynchronous methods for deep reinforcement learning", 2016; Sutton '
        'and Barto, "Reinforcement Learning", 2nd edition, section 13.5',
        discrete=True,
        continuous=True,
        open_actions=True,
        on_policy=True,
        keys=a2c(512, reuse(0.05)),
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
        keys=PPO,
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
        keys=a2c(128, reuse(0.3)),
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
        keys=DDPG,
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
        keys=SAC,
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
        keys=TD3,
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
        keys=TRANSFORMER,
        make=_maker("decision_transformer", _recorded),
        needs_torch=True,
    ),
)
"""All of them, in the order in which they are described."""


def _require_torch() -> None:
    """See to it that workers will find torch, without importing it.

    Raises:
        FailedPrecondition: it is not installed.
    """
    if find_spec("torch") is None:
        raise FailedPrecondition(
            "this algorithm needs torch, which the server does not have (q_learning, sarsa, linucb"
            f" and thompson need none). Install it {from_wheels('server,rl')}",
            reason=Reason.ALGORITHM_NOT_SUPPORTED,
        )
