"""What the settings of the algorithms that learn with neural networks may be.

The defaults are those that many tasks agree on, as far as one can know without the task: what
cleanrl and the zoo of Stable-Baselines3 use most, in networks small enough for one processor.
"""

from __future__ import annotations

from mneme_server.features.learning.algorithm import Key


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


DQN = (
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
    Key(
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


def reuse(target_kl: float) -> tuple[Key, ...]:
    """Return the settings of how often the same transitions are learned from."""
    return (
        _batch_size(64),
        Key("epochs", 10, "How often it learns from each transition.", 1, 100),
        Key(
            "target_kl",
            target_kl,
            "How far the policy may go from its behaviour.",
            0.0001,
            100,
        ),
    )


def a2c(rollout_steps: int, reused: tuple[Key, ...]) -> tuple[Key, ...]:
    """Return the settings of an actor-critic that learns after so many steps."""
    return (
        _learning_rate(5e-4),
        _DISCOUNT,
        _EPSILON,
        Key(
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
    Key("rollout_steps", 512, "After how many transitions it learns from them.", 8, 100_000),
    *reuse(0.05),
    Key("clip_range", 0.2, "By how much the ratio of probabilities may change.", 0.01, 1),
    _GAE,
    _entropy_weight(0.005),
    _VALUE_WEIGHT,
    *_network(64),
)
_NOISE = (
    Key(
        "exploration_noise",
        0.2,
        "The deviation of the noise that is added when it explores, in halves of the width of the "
        "box, in the end.",
        0,
        10,
    ),
    Key("first_noise", 1.0, "The deviation of this noise at first.", 0, 10),
    Key(
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
    *_NOISE,
    _batch_size(128),
    *_replay(1_000, 1, 0.005),
    *_network(128),
)
TD3 = (
    *DDPG,
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
SAC = (
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
TRANSFORMER = (
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
