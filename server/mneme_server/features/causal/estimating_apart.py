"""The heavy part of Discover, for a process of its own: estimates from a file."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from mneme_server.common.progress import Step
from mneme_server.features.causal.estimating import Problem


def write(path: Path, problem: Problem, having: list[np.typing.NDArray[np.int64]]) -> None:
    """Write what is to be estimated: a problem, and the places of the episodes that had each
    cause."""
    ends = np.cumsum([len(rows) for rows in having])
    together = np.concatenate(having) if having else np.zeros(0, np.int64)
    np.savez(path, features=problem.features, outcomes=problem.outcomes, having=together, ends=ends)


def run(step: Step, path: str) -> list[list[Any]]:
    """Return of each cause its overlap, how many had it and how many had not, and what it changes
    of each outcome, as `estimating.Estimate` has it; None for what was not estimated."""
    with np.load(path) as kept:
        problem = Problem(kept["features"], kept["outcomes"])
        having = np.split(kept["having"], kept["ends"][:-1])
    found: list[list[Any]] = []
    for place, rows in enumerate(having):
        step.report("estimating", place, len(having))
        treated = np.zeros(len(problem.outcomes), np.bool_)
        treated[rows] = True
        one = problem.estimate(treated)
        estimates = None
        if one.estimates is not None:
            estimates = [None if each is None else astuple(each) for each in one.estimates]
        found.append([one.overlap, one.treated, one.control, estimates])
    return found
