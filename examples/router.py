"""A router that learns which model a request should go to, and says how sure it is of the gain.

    .venv/bin/python examples/router.py

Some requests are spread evenly, as by a router that knows nothing, and recorded with what came of
them. From this record alone it is worked out what a router that learns would have earned, with a
95 % interval, before it has routed anything. Then it routes, and what it really earns stands below.

The world is simulated: `earned` draws whether a model solves a request, by chances that the router
is not told. Yours calls the model there and rates what it said: a thumb up, tests that pass, less
what it cost. The memory lies in the folder `memory`, whose server starts and stops by itself;
`.venv/bin/mneme --local memory learning list` shows what has learned there.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import fmean, stdev
from uuid import uuid4

import mneme
from mneme.types import ExperienceFields, StateFields

REQUESTS = 500
MODELS = ("small", "large", "reasoning")
COSTS = {"small": 0.0, "large": 0.1, "reasoning": 0.3}
SOLVES = {  # How often each model solves a request of this kind.
    "look something up": {"small": 0.95, "large": 0.95, "reasoning": 0.95},
    "write a letter": {"small": 0.30, "large": 0.90, "reasoning": 0.90},
    "find a bug": {"small": 0.10, "large": 0.40, "reasoning": 0.95},
}


def main() -> None:
    """Record, ask what would have been, route, and compare."""
    world = random.Random(7)
    session = f"router-{uuid4().hex[:8]}"
    with mneme.local("memory") as memory:
        evenly = spread_evenly(memory, session, world)
        print(f"spread evenly:  {mean_of(evenly)} a request")
        tell_what_would_have_been(memory, session)
        routed = route(memory, session, world)
        print(f"routed:         {mean_of(routed)} a request")
        print(f"gained:         {difference_of(routed, evenly)} a request")
        tell_what_was_learned(memory, session)


def earned(world: random.Random, kind: str, model: str) -> float:
    """1 for a request that was solved and 0 for one that was not, less what the model costs."""
    solved = world.random() < SOLVES[kind][model]
    return float(solved) - COSTS[model]


def spread_evenly(memory: mneme.MnemeClient, session: str, world: random.Random) -> list[float]:
    """Have each model take its share, and record what came of it; return the rewards."""
    memory.start_learning_session("thompson", session_id=session)
    steps: list[ExperienceFields] = []
    for _ in range(REQUESTS):
        kind, model = world.choice(list(SOLVES)), world.choice(MODELS)
        steps.append(
            {
                "state": state_of(kind),
                "action": {"label": model},
                "allowed_actions": [{"label": one} for one in MODELS],
                "probability": 1 / len(MODELS),
                "reward": earned(world, kind, model),
                "terminated": True,
            }
        )
    memory.record_experience(session, steps)
    return [step["reward"] for step in steps]


def tell_what_would_have_been(memory: mneme.MnemeClient, session: str) -> None:
    """Tell what the learned router would have earned on requests that it had not learned from."""
    judged = memory.get_learning_metrics(session, evaluate=True).evaluation
    if judged.refused:
        print(f"no estimate:    {judged.refused}")
        return
    gain = judged.gain
    print(f"would gain:     {gain.value:.2f} [{gain.low:.2f}, {gain.high:.2f}] a request")


def route(memory: mneme.MnemeClient, session: str, world: random.Random) -> list[float]:
    """Let the router choose, and tell it what came of it; return the rewards."""
    router = memory.chooser(session, algorithm="thompson")
    rewards = []
    for _ in range(REQUESTS):
        kind = world.choice(list(SOLVES))
        with router.choose(MODELS, state={"kind": kind}) as choice:
            rewards.append(earned(world, kind, str(choice.action)))
            choice.reward(rewards[-1])
    return rewards


def tell_what_was_learned(memory: mneme.MnemeClient, session: str) -> None:
    """Tell where requests go now, and end the session: what it learned becomes a skill."""
    for kind in SOLVES:
        best = memory.predict(session, state_of(kind)).prediction
        print(f"{kind}: {best.action.label}, best with probability {best.confidence:.2f}")
    ended = memory.end_learning_session(session, min_performance=0.6)
    print(f"kept as skill:  {ended.skill_id or 'no, it earns too little'}")


def state_of(kind: str) -> StateFields:
    """What the router goes by; yours knows more, such as the length or the customer."""
    return {"json": {"kind": kind}}


def mean_of(rewards: Sequence[float]) -> str:
    """The mean with its 95 % interval; with hundreds of rewards the normal one will do."""
    return _with_interval(fmean(rewards), stdev(rewards) / math.sqrt(len(rewards)))


def difference_of(one: Sequence[float], other: Sequence[float]) -> str:
    """How much greater the mean of the one is, with its 95 % interval."""
    errors = (stdev(rewards) / math.sqrt(len(rewards)) for rewards in (one, other))
    return _with_interval(fmean(one) - fmean(other), math.hypot(*errors))


def _with_interval(value: float, error: float) -> str:
    return f"{value:.2f} [{value - 1.96 * error:.2f}, {value + 1.96 * error:.2f}]"


if __name__ == "__main__":
    main()
