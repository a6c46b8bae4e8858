"""What tells successes from failures: planted differences are found, chance is not."""

from __future__ import annotations

import numpy as np
from mneme_server.features.skills.comparison import TaskGroup, compared
from mneme_server.features.skills.consolidation import description_of
from mneme_server.features.skills.model import Episode, Trait, findings_of


def attempt(number: int, *tools: str, success: bool = True, **fields: object) -> Episode:
    return Episode(
        id=f"e-{number}",
        task="cancel a flight",
        reward=float(success),
        success=success,
        tools=tools,
        **fields,  # type: ignore[arg-type]
    )


def group(*episodes: Episode) -> TaskGroup:
    worked = [one.success for one in episodes]
    example = next(one for one in episodes if one.success)
    return TaskGroup(episodes, worked, example, {})


def test_a_tool_that_failures_lack_is_named_with_its_counts() -> None:
    (found,) = compared(
        [
            group(
                *(attempt(n, "look", "check_policy") for n in range(12)),
                *(attempt(n, "look", success=False) for n in range(12, 22)),
            )
        ]
    )
    (one,) = found.differences
    assert (one.trait, one.name) == (Trait.TOOL, "check_policy")
    assert (one.successes, one.failures) == (12, 0)
    assert one.q_value < 0.001
    said = description_of(found)
    assert "Successes called check_policy more often than failures: 12 of 12" in said
    assert "Most successes called check_policy (12 of 12; failures: 0 of 10)" in said
    assert "Worked in 12 of 22 attempts (55 %; 95 % interval 35 % to 73 %)." in said


def test_what_all_attempts_share_is_no_difference() -> None:
    (found,) = compared([group(*(attempt(n, "look", success=n % 2 == 0) for n in range(20)))])
    assert (found.differences, found.compared) == ((), 0)
    assert "Nothing that was recorded tells successes from failures" in description_of(found)


def test_labels_that_say_the_outcome_are_left_out() -> None:
    (found,) = compared(
        [
            group(
                *(attempt(n, tags=("reward:1", "shift:day")) for n in range(10)),
                *(attempt(n, success=False, tags=("reward:0",)) for n in range(10, 20)),
            )
        ]
    )
    assert [one.name for one in found.differences] == ["shift:day"]


def test_too_few_to_compare_are_not_compared() -> None:
    few = group(*(attempt(n, "a") for n in range(9)), attempt(9, "b", success=False))
    none = group(*(attempt(n, "a") for n in range(9)))
    found = compared([few, none])
    assert [one.compared for one in found] == [0, 0]
    assert "Only 1 attempt failed: too few" in description_of(found[0])
    assert "No attempt failed" in description_of(found[1])


def test_by_chance_hardly_a_run_finds_anything() -> None:
    rng = np.random.default_rng(7)
    runs, false = 100, 0
    for _ in range(runs):
        groups = [
            group(
                attempt(0),
                *(
                    attempt(
                        n,
                        *(f"tool-{t}" for t in range(12) if rng.random() < 0.5),
                        success=bool(rng.random() < 0.5),
                    )
                    for n in range(1, 40)
                ),
            )
            for _ in range(4)
        ]
        false += any(one.differences for one in compared(groups))
    assert false <= 5 + 2 * np.sqrt(runs * 0.05 * 0.95)


def test_findings_are_read_back_as_they_were_written() -> None:
    (found,) = compared(
        [
            group(
                *(attempt(n, "a", "b", critique="It helped to look first.") for n in range(9)),
                *(attempt(n, success=False) for n in range(9, 15)),
            )
        ]
    )
    assert found.ways
    assert found.critiques
    assert found.differences
    assert findings_of(found.json) == found
    assert findings_of("{}") is None
