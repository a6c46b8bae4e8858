"""What algorithms are tried on, and what they must reach."""

from __future__ import annotations

from dataclasses import dataclass

_CARTPOLE_STEPS, _PENDULUM_STEPS, _TABLE_STEPS = 300_000, 20_000, 50_000


@dataclass(frozen=True, slots=True)
class Task:
    """An algorithm, where it is tried, and what it must reach.

    Args:
        low: the goal: the mean return of greedy episodes must be at least this,
        reference: published, or known of the environment.
        high: and at most this (what stays away from the edge is longer).
        enough: when a few greedy episodes reach it, learning ends before all steps are taken.
    """

    algorithm: str
    environment: str
    steps: int
    low: float
    reference: str
    high: float = float("inf")
    enough: float = float("inf")


_CLIFF = (
    "-13 is the shortest way, -17 the one furthest from the edge (Sutton and Barto, example 6.6)"
)
_CARTPOLE = "500 is the most there is; solved from 475 (Gymnasium)"
_ACROBOT, _MOUNTAIN = "solved from -100 (Gymnasium)", "solved from -110 (Gymnasium)"
_PENDULUM = "about -150 (rl-baselines3-zoo: ddpg -169, sac -176, td3 -172)"

TASKS = [
    Task("q_learning", "CliffWalking-v1", _TABLE_STEPS, -13.0, _CLIFF, -13.0),
    Task("sarsa", "CliffWalking-v1", _TABLE_STEPS, -17.0, _CLIFF, -15.0),
    *(
        Task(algorithm, "CartPole-v1", _CARTPOLE_STEPS, 475.0, _CARTPOLE, enough=495.0)
        for algorithm in ("dqn", "actor_critic", "ppo", "a3c")
    ),
    *(
        Task(algorithm, "Pendulum-v1", _PENDULUM_STEPS, -200.0, _PENDULUM)
        for algorithm in ("ddpg", "sac", "td3")
    ),
]

_TABLES, _NETWORKS, _NUMBERS = (
    ("q_learning", "sarsa"), ("dqn", "actor_critic", "ppo", "a3c"), ("ddpg", "sac", "td3")
)  # fmt: skip
OTHERS = [
    *(Task(a, "FrozenLake-v1", _TABLE_STEPS, 0.2, "0.74 is the best there is") for a in _TABLES),
    *(Task(a, "Taxi-v4", _TABLE_STEPS, -100.0, "7.9 is the best there is") for a in _TABLES),
    *(Task(a, "Blackjack-v1", _TABLE_STEPS, -0.2, "-0.04 is the best there is") for a in _TABLES),
    *(Task(a, "Acrobot-v1", 100_000, -200.0, _ACROBOT, enough=-95.0) for a in _NETWORKS),
    *(Task(a, "MountainCar-v0", 150_000, -180.0, _MOUNTAIN, enough=-130.0) for a in ("dqn", "ppo")),
    *(
        Task(a, "MountainCarContinuous-v0", _PENDULUM_STEPS, 0.0, "solved from 90 (Gymnasium)")
        for a in _NUMBERS
    ),
]
"""What nothing was tuned to; the goals say what is clearly better than random play."""
