"""The confidence sequence of a difference, looked at again and again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mneme_server.statistics.inference import welch
from mneme_server.statistics.looking import difference_at_any_look

Draw = Callable[[np.random.Generator, int], "np.typing.NDArray[np.float64]"]


@pytest.mark.parametrize(
    ("treated", "control", "truth"),
    [
        (lambda chance, n: chance.normal(0.3, 1, n), lambda chance, n: chance.normal(0, 2, n), 0.3),
        (lambda chance, n: 1.0 * (chance.random(n) < 0.1), lambda c, n: 1.0 * (c.random(n) < 0.05),
         0.05),
        (lambda chance, n: chance.exponential(1.5, n), lambda chance, n: chance.exponential(1, n),
         0.5),
    ],
    ids=["normal", "successes", "exponential"],
)  # fmt: skip
def test_no_look_of_nineteen_experiments_in_twenty_misses(
    treated: Draw, control: Draw, truth: float
) -> None:
    chance = np.random.default_rng(4)
    missed = 0
    for _ in range(150):
        first, second = treated(chance, 200), control(chance, 200)
        looks = (difference_at_any_look(first[:n], second[:n]) for n in range(10, 201, 10))
        missed += any(look is not None and not look.low <= truth <= look.high for look in looks)
    assert missed <= 150 * 0.05


def test_it_is_wider_than_that_of_one_look_and_narrows() -> None:
    chance = np.random.default_rng(1)
    first, second = chance.normal(1, 1, 5_000), chance.normal(0, 1, 5_000)
    widths = []
    for n in (2, 5, 20, 200, 5_000):
        ever, once = difference_at_any_look(first[:n], second[:n]), welch(first[:n], second[:n])
        assert ever is None or ever.low < once.interval.low < once.interval.high < ever.high
        widths.append(np.inf if ever is None else ever.high - ever.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.2


def test_of_outcomes_that_never_differ_it_says_nothing() -> None:
    assert difference_at_any_look(np.ones(5), np.ones(5)) is None


def test_an_arm_of_equal_outcomes_is_not_taken_for_certain() -> None:
    found = difference_at_any_look(np.zeros(50), np.array([0.0] * 49 + [1.0]))
    assert found is not None
    assert found.high - found.low > 0.1


def test_it_holds_for_an_arm_of_few_that_succeed_nearly_always() -> None:
    chance = np.random.default_rng(3)
    missed = 0
    for _ in range(200):
        few, many = (1.0 * (chance.random(n) < 0.95) for n in (100, 900))
        looks = (difference_at_any_look(few[:n], many[: 9 * n]) for n in range(4, 101, 4))
        missed += any(look is not None and not look.low <= 0 <= look.high for look in looks)
    assert missed <= 200 * 0.05
