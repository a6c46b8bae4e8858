"""The algorithms that learn with neural networks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.features.learning.actions import count_of
from mneme_server.features.learning.algorithm import Algorithm, Task
from mneme_server.features.learning.deep.configs import (
    DDPG,
    DQN,
    PPO,
    SAC,
    TD3,
    TRANSFORMER,
    a2c,
    reuse,
)
from mneme_server.features.learning.deep.encoding import Encoder, bounds_of, encoder_of, is_bounded
from mneme_server.features.learning.deep.exploring import Trying
from mneme_server.features.learning.deep.learner import DeepLearner
from mneme_server.features.learning.deep.policies import (
    Categorical,
    Deterministic,
    Gaussian,
    Policy,
    Values,
)
from mneme_server.features.learning.deep.process import require_torch
from mneme_server.features.learning.deep.setup import RECORDED_AT_ONCE, Setup
from mneme_server.features.learning.deep.transformer import Foretelling
from mneme_server.features.learning.spaces import Box, OpenLabels


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
            reward_scale=task.reward_scale,
        )

    return make


def _policy(name: str, task: Task, setup: Setup, encoder: Encoder) -> Policy:
    if name == "decision_transformer":
        box = (setup.middle, setup.half) if setup.continuous else None
        length, heads = setup.whole("context"), setup.whole("heads")
        return Foretelling(encoder, setup.actions, length, heads, box)
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
    trying = Trying(
        float(task.config.get("epsilon_start", last)),
        last,
        int(task.config.get("epsilon_steps", 1)),
        int(task.config.get("epsilon_episodes", 1)),
        count_tries=isinstance(task.actions, OpenLabels),
        repeats=float(task.config.get("repeats", 0.0)),
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
