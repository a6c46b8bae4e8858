"""Records of which it is known what is true of them.

In those of `NOTHING`, nothing changes anything but what their function says. Each of `SOMETHING`
has one effect, which its function names; whatever else is claimed of it is false.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np

from benchmarks.truth.record import DAY, MadeRecord

Chance = np.random.Generator
START = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
"""A Monday."""
TOOLS = ("search", "open", "read", "edit", "run", "list", "diff", "note")
MONTHS = 60


def _sigmoid(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))


def _tools(chance: Chance, count: int, among: int = 8) -> list[str]:
    return [TOOLS[i] for i in chance.integers(among, size=count)]


def _work(
    chance: Chance, record: MadeRecord, session: str, tools: Sequence[str], fails: float = 0.05
) -> None:
    at = record.rows[session].started_us / 1e6
    for step, tool in enumerate(tools):
        record.call(session, at + 20 * step, tool, "timeout" if chance.random() < fails else "")


def _spend(
    chance: Chance, record: MadeRecord, session: str, times: float = 1, slow: float = 1
) -> None:
    at = record.rows[session].started_us / 1e6 + 900
    record.answer(session, at, chance.lognormal(-3, 0.5) * times, chance.lognormal(0, 0.5) * slow)


def _sometime(chance: Chance) -> float:
    return START + float(chance.uniform(0, MONTHS * DAY))


def _on(chance: Chance, day: int) -> float:
    return START + day * DAY + float(chance.uniform(0, DAY))


def independent(chance: Chance, record: MadeRecord) -> None:
    """Nothing depends on anything."""
    for _ in range(200):
        session = record.session(_sometime(chance), bool(chance.random() < 0.7))
        _work(chance, record, session, _tools(chance, 4 + chance.poisson(5)))
        _spend(chance, record, session)


def _tasks(chance: Chance, record: MadeRecord, tasks: int, trials: int) -> None:
    for task in range(tasks):
        wins = _sigmoid(0.6 + 1.5 * chance.normal())
        usual = _tools(chance, int(chance.integers(4, 9)))
        for _ in range(trials):
            session = record.session(
                _sometime(chance), bool(chance.random() < wins), task_id=f"task-{task}"
            )
            tools = [t if chance.random() > 0.15 else _tools(chance, 1)[0] for t in usual]
            _work(chance, record, session, tools)


def few_trials(chance: Chance, record: MadeRecord) -> None:
    """Fifty tasks, four times each: how a session ends and what it calls depend on the task."""
    _tasks(chance, record, 50, 4)


def trials(chance: Chance, record: MadeRecord) -> None:
    """Thirty tasks, eight times each."""
    _tasks(chance, record, 30, 8)


def many_trials(chance: Chance, record: MadeRecord) -> None:
    """Twenty tasks, twenty times each."""
    _tasks(chance, record, 20, 20)


def long_fail(chance: Chance, record: MadeRecord) -> None:
    """The longer a session, the likelier it fails; what it calls is chance."""
    for _ in range(300):
        calls = 3 + int(chance.poisson(chance.gamma(2, 5)))
        won = bool(chance.random() < _sigmoid(2 - 0.12 * calls))
        session = record.session(_sometime(chance), won)
        _work(chance, record, session, _tools(chance, calls, 6), 0.03)


def late_fail(chance: Chance, record: MadeRecord) -> None:
    """The later a call in its session, the likelier it fails, whatever the tool."""
    for _ in range(200):
        session = record.session(_sometime(chance), bool(chance.random() < 0.7))
        at = record.rows[session].started_us / 1e6
        for step in range(4 + chance.poisson(10)):
            tool = TOOLS[chance.choice(5, p=[0.5, 0.2, 0.15, 0.1, 0.05])]
            fails = chance.random() < min(0.3, 0.005 + 0.01 * step)
            record.call(session, at + 20 * step, tool, "timeout" if fails else "")


def moody(chance: Chance, record: MadeRecord) -> None:
    """Sessions differ in how often their calls fail and in what they call, each for itself."""
    for _ in range(200):
        fails, likes = chance.beta(0.5, 6), chance.dirichlet(np.full(6, 0.7))
        session = record.session(_sometime(chance), bool(chance.random() < 0.7))
        tools = [TOOLS[i] for i in chance.choice(6, size=4 + chance.poisson(8), p=likes)]
        _work(chance, record, session, tools, fails)


def weekends(chance: Chance, record: MadeRecord) -> None:
    """On weekends there are fewer sessions, which fail more and are dearer and slower."""
    for day in range(MONTHS + 1):
        weekend = day % 7 >= 5
        for _ in range(chance.poisson(3 if weekend else 8)):
            won = bool(chance.random() < (0.5 if weekend else 0.8))
            session = record.session(_on(chance, day), won)
            _work(chance, record, session, _tools(chance, 3 + chance.poisson(4), 4))
            _spend(chance, record, session, 1.5 if weekend else 1, 2 if weekend else 1)


def _drifting(chance: Chance, record: MadeRecord, memory: float) -> None:
    level = 0.0
    for day in range(MONTHS):
        level = memory * level + 0.5 * chance.normal()
        for _ in range(5):
            won = bool(chance.random() < _sigmoid(1 + level))
            session = record.session(_on(chance, day), won)
            _work(chance, record, session, _tools(chance, 5, 4))
            _spend(chance, record, session, math.exp(level / 2), math.exp(level / 2))


def drift(chance: Chance, record: MadeRecord) -> None:
    """Days are like the days before them, round a mean that stays."""
    _drifting(chance, record, 0.7)


def short_drift(chance: Chance, record: MadeRecord) -> None:
    """The same with a shorter memory."""
    _drifting(chance, record, 0.4)


def crowd(chance: Chance, record: MadeRecord) -> None:
    """Four agents of different ability, each with its liking for tools, in a mix that stays."""
    wins = chance.uniform(0.3, 0.9, size=4)
    likes = chance.dirichlet(np.ones(6), size=4)
    for _ in range(240):
        who = int(chance.integers(4))
        won = bool(chance.random() < wins[who])
        session = record.session(_sometime(chance), won, agent=f"agent-{who}")
        tools = [TOOLS[i] for i in chance.choice(6, size=4 + chance.poisson(4), p=likes[who])]
        _work(chance, record, session, tools)


def one_tool(chance: Chance, record: MadeRecord) -> None:
    """Sessions that call "deploy", a third, fail with three times the odds."""
    for _ in range(200):
        deploys = chance.random() < 0.3
        odds = 3 / 7 * (3 if deploys else 1)
        won = bool(chance.random() >= odds / (1 + odds))
        session = record.session(_sometime(chance), won)
        tools = _tools(chance, 4 + chance.poisson(5), 7)
        if deploys:
            tools.insert(int(chance.integers(len(tools) + 1)), "deploy")
        _work(chance, record, session, tools)


def next_call(chance: Chance, record: MadeRecord) -> None:
    """The call after "deploy" fails with three times the odds."""
    odds = 3 * 0.05 / 0.95
    for _ in range(200):
        session = record.session(_sometime(chance), bool(chance.random() < 0.7))
        at, before = record.rows[session].started_us / 1e6, ""
        for step in range(4 + chance.poisson(5)):
            tool = (*TOOLS[:7], "deploy")[chance.integers(8)]
            fails = chance.random() < (odds / (1 + odds) if before == "deploy" else 0.05)
            record.call(session, at + 20 * step, tool, "timeout" if fails else "")
            before = tool


def success_falls(chance: Chance, record: MadeRecord) -> None:
    """Success falls evenly from 90 to 70 %."""
    for day in range(MONTHS):
        for _ in range(chance.poisson(4)):
            at = _on(chance, day)
            session = record.session(at, bool(chance.random() < 0.9 - 0.2 * day / MONTHS))
            record.add(session, at + 60, "message", text="hello")


def cost_doubles(chance: Chance, record: MadeRecord) -> None:
    """Cost doubles in the middle."""
    for day in range(MONTHS):
        for _ in range(chance.poisson(4)):
            session = record.session(_on(chance, day), bool(chance.random() < 0.7))
            _spend(chance, record, session, 2 if day >= MONTHS // 2 else 1)


def label(chance: Chance, record: MadeRecord) -> None:
    """Sessions labelled "urgent" succeed in 50 %, others in 80 %; other labels mean nothing."""
    for _ in range(200):
        urgent = chance.random() < 0.2
        won = bool(chance.random() < (0.5 if urgent else 0.8))
        tags = ("urgent" if urgent else "calm", f"batch-{chance.integers(5)}")
        at = _sometime(chance)
        session = record.session(at, won, tags=tags)
        record.add(session, at + 60, "message", text="hello")


def simpson(chance: Chance, record: MadeRecord) -> None:
    """Among hard tasks and among easy ones, by label, "test" adds 15 points; hard ones test more,
    so that the plain figure has the other sign."""
    for _ in range(400):
        hard = chance.random() < 0.5
        tests = chance.random() < (0.8 if hard else 0.2)
        won = bool(chance.random() < (0.25 if hard else 0.8) + (0.15 if tests else 0))
        tags = ("hard" if hard else "easy",)
        session = record.session(_sometime(chance), won, tags=tags)
        tools = ["read", "edit", *(["test"] if tests else []), "commit"]
        _work(chance, record, session, tools, 0.02)


def who_ran(chance: Chance, record: MadeRecord) -> None:
    """One agent succeeds in 30 %, another in 60 %, and takes over: neither improves."""
    for day in range(40):
        for _ in range(6):
            at = _on(chance, day)
            new = day >= 20
            won = bool(chance.random() < (0.6 if new else 0.3))
            session = record.session(at, won, agent="new-agent" if new else "old-agent")
            record.add(session, at + 60, "message", text="hello")


def mix_shifts(chance: Chance, record: MadeRecord) -> None:
    """Three agents, none of which changes; the best runs ever more."""
    for day in range(MONTHS):
        share = 0.1 + 0.7 * day / MONTHS
        for _ in range(chance.poisson(6)):
            at = _on(chance, day)
            who = 2 if chance.random() < share else int(chance.integers(2))
            won = bool(chance.random() < (0.25, 0.35, 0.75)[who])
            session = record.session(at, won, agent=f"agent-{who}")
            record.add(session, at + 60, "message", text="hello")


Shape = Callable[[Chance, MadeRecord], None]
NOTHING: tuple[Shape, ...] = (
    independent, few_trials, trials, many_trials, long_fail, late_fail, moody, weekends, drift,
    short_drift, crowd,
)  # fmt: skip
SOMETHING: tuple[Shape, ...] = (
    one_tool, next_call, success_falls, cost_doubles, label, simpson, who_ran, mix_shifts,
)  # fmt: skip


def made(shape: Shape, seed: int) -> MadeRecord:
    """Return a record of a shape."""
    record = MadeRecord()
    shape(np.random.default_rng(seed), record)
    return record
