"""Whether Discover and experiments keep what they promise: `python -m benchmarks.causal`.

Worlds are drawn in which it is known what changes what. Printed is how often that is found, how
often what is not there is, and how often intervals hold the truth.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path

import numpy as np
from mneme_server.features.causal.discovery import tested
from mneme_server.features.causal.estimation import Problem
from mneme_server.features.causal.experiments import Outcomes, analyzed
from mneme_server.features.causal.model import DiscoveryChange, DiscoveryQuestion, Experiment
from mneme_server.statistics.looking import difference_at_any_look
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Vector]

EPISODES = 2_000
CAUSES = 200
REAL = 20
DEVIATIONS = 0.5
QUESTION = DiscoveryQuestion(min_success_rate=0)


@dataclass(frozen=True, slots=True)
class World:
    """Episodes of agents who meet tasks of different difficulty. Half of the causes are commoner in
    hard tasks; `real` of them change the reward by half of its deviation."""

    seed: int
    real: int = 0
    chance: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "chance", np.random.default_rng(self.seed))

    def found(self) -> set[tuple[int, str]]:
        """Return which effects Discover finds: causes, of which the first `real` have some, and
        outcomes."""
        chance = self.chance
        known = chance.normal(size=(EPISODES, 12))  # Directions of meaning, difficulty the first.
        agent = chance.integers(0, 5, EPISODES)
        before = -known[:, 0] + 0.3 * agent + 0.5 * known[:, 1]
        reward = before + chance.normal(size=EPISODES)
        deviation = float(reward.std())
        having = np.array([self._had(known[:, 0], bool(n % 2)) for n in range(CAUSES)])
        for place in range(self.real):
            sign = 1 if place % 2 else -1
            reward = reward + sign * DEVIATIONS * deviation * having[place]
        outcomes = np.column_stack([reward, reward > np.median(reward)]).astype(np.float64)
        indicators = (agent[:, None] == np.arange(1, 5)).astype(np.float64)
        columns = np.hstack([known, indicators])
        columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
        problem = Problem(np.hstack([np.ones((EPISODES, 1)), columns]), outcomes)
        return _discovered(problem, having)

    def _had(self, difficulty: Vector, confounded: bool) -> NDArray[np.bool_]:
        usual = self.chance.uniform(0.05, 0.5)
        log_odds = np.log(usual / (1 - usual)) + (difficulty if confounded else 0)
        had: NDArray[np.bool_] = self.chance.random(EPISODES) < 1 / (1 + np.exp(-log_odds))
        return had


def _discovered(problem: Problem, having: NDArray[np.bool_]) -> set[tuple[int, str]]:
    estimated = []
    for treated in having:
        one = problem.estimate(treated)
        each = one.estimates and [e and astuple(e) for e in one.estimates]
        estimated.append([one.overlap, one.treated, one.control, each])
    names = [str(place) for place in range(len(having))]
    findings, _ = tested(names, estimated, QUESTION, 0.5)
    return {
        (int(one.cause), one.outcome) for one in findings if one.change is DiscoveryChange.CREATED
    }


def turned_round(seed: int) -> tuple[float, float, bool]:
    """Return the plain difference and the uplift of a cause that hard tasks mostly have and that
    helps by 0.15, and whether the interval holds that."""
    chance = np.random.default_rng(seed)
    hard = chance.random(EPISODES) < 0.5
    careful = chance.random(EPISODES) < np.where(hard, 0.8, 0.2)
    works = chance.random(EPISODES) < 0.8 - 0.6 * hard + 0.15 * careful
    column = (hard - hard.mean()) / hard.std()
    features = np.column_stack([np.ones(EPISODES), column])
    problem = Problem(features, works[:, None].astype(np.float64))
    estimates = problem.estimate(careful).estimates
    assert estimates is not None
    (one,) = estimates
    assert one is not None
    return one.plain, one.uplift, one.low <= 0.15 <= one.high


@dataclass(frozen=True, slots=True)
class Trial:
    """An experiment of 30 days with 20 subjects each; `truth` is how much treating adds."""

    name: str
    treated: Draw
    control: Draw
    truth: float

    def run(self, seed: int) -> tuple[bool, bool]:
        """Return whether Welch's interval at the end holds the truth, and whether those of all days
        do that are made to be looked at every day."""
        chance = np.random.default_rng(seed)
        experiment = Experiment("x", "x", "cause", "effect", seed=str(seed))
        arms = np.array([experiment.treats("", place) for place in range(_DAYS * _A_DAY)])
        count = len(arms)
        values = np.where(arms, self.treated(chance, count), self.control(chance, count))
        whole = analyzed(Outcomes(values, arms, np.ones(count, np.bool_), 0))
        assert whole.low is not None
        assert whole.high is not None
        looks = (
            difference_at_any_look(values[:n][arms[:n]], values[:n][~arms[:n]])
            for n in range(_A_DAY, count + 1, _A_DAY)
        )
        always = all(one is None or one.low <= self.truth <= one.high for one in looks)
        return whole.low <= self.truth <= whole.high, always


_DAYS, _A_DAY = 30, 20


def _normal(mean: float, deviation: float) -> Draw:
    return lambda chance, count: chance.normal(mean, deviation, count)


def _successes(rate: float) -> Draw:
    return lambda chance, count: (chance.random(count) < rate).astype(np.float64)


def _exponential(mean: float) -> Draw:
    return lambda chance, count: chance.exponential(mean, count)


TRIALS = (
    Trial("normal, deviations 1 and 2", _normal(0.3, 1), _normal(0, 2), 0.3),
    Trial("successes, 60 % and 50 %", _successes(0.6), _successes(0.5), 0.1),
    Trial("successes, 10 % and 5 %", _successes(0.1), _successes(0.05), 0.05),
    Trial("exponential, means 1.5 and 1", _exponential(1.5), _exponential(1), 0.5),
)


def report(runs: int, trials: int) -> str:
    """Return the tables, made from so many worlds and so many trials of each kind."""
    turned = [turned_round(seed) for seed in range(runs)]
    plain, uplift = (np.array([one[n] for one in turned]) for n in (0, 1))
    nothing = [bool(World(seed).found()) for seed in range(runs)]
    found = [World(seed + 10_000, REAL).found() for seed in range(max(1, runs // 5))]
    power = np.mean([len({n for n, _ in one if n < REAL}) / REAL for one in found])
    false = np.mean([sum(n >= REAL for n, _ in one) / max(1, len(one)) for one in found])
    lines = [
        "| Discover | runs | |",
        "|---|---|---|",
        f"| plain difference of a cause that helps by 0.15, mean | {runs} | {plain.mean():+.3f} |",
        f"| its estimated uplift, mean | {runs} | {uplift.mean():+.3f} |",
        f"| runs in which its sign is right | {runs} | {np.mean(uplift > 0):.0%} |",
        f"| 95 % intervals that hold 0.15 | {runs} | {np.mean([one[2] for one in turned]):.0%} |",
        f"| of {CAUSES} causes without effect: runs that discover any (at most 5 % stated)"
        f" | {runs} | {np.mean(nothing):.0%} |",
        f"| {REAL} real effects of half a deviation among {CAUSES} causes: found"
        f" | {len(found)} | {power:.0%} |",
        f"| of the effects found then, chance (at most 5 % stated) | {len(found)} | {false:.1%} |",
        "",
        f"| experiment, {_DAYS} days of {_A_DAY} subjects | runs | Welch's 95 % interval holds"
        " | the sequential one holds on all days |",
        "|---|---|---|---|",
    ]
    for trial in TRIALS:
        held = np.array([trial.run(seed) for seed in range(trials)])
        once, always = held.mean(axis=0)
        lines.append(f"| {trial.name} | {trials:,} | {once:.1%} | {always:.1%} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--trials", type=int, default=1_000)
    parser.add_argument("--report", type=Path, help="write the tables here, too")
    arguments = parser.parse_args(argv)
    tables = report(arguments.runs, arguments.trials)
    print(tables, end="")
    if arguments.report:
        arguments.report.write_text(f"# Cause and effect, in simulated worlds\n\n{tables}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
