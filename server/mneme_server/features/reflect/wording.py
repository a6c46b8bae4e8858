"""Figures as sentences show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mneme_server.common.canonical import Json, JsonObject
from mneme_server.common.clock import HOUR_US
from mneme_server.common.humanize import day
from mneme_server.features.reflect.model import OutcomeSplit, SequenceEffect, TrendStep, TrendTest
from mneme_server.statistics.distributions import Interval

_POINT = 0.01
"""Shares that are closer than this read alike."""
_MCP = "mcp__"
_WHOLE = 1 - 1e-9


def times(lift: float) -> str:
    """Return a ratio, "2.3×"."""
    return f"{_figure(lift)}×"


def interval(of: Interval) -> str:
    """Return an interval of ratios, "1.4–3.8"."""
    return f"{_figure(of.low)}–{_figure(of.high)}"


def _figure(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 99.5 else f"{ratio:.1f}" if ratio >= 0.95 else f"{ratio:.2g}"


def against(effect: SequenceEffect) -> str:
    """Return both rates as counts, and their ratio where there is one: "6 of 9 times (67 %)
    against 15 of 300 (5 %), 13× (8.1–16)"."""
    others = of(effect.base_effect_count, effect.base_count)
    counts = f"{of(effect.effect_count, effect.count)} against {others}"
    if _is_apart(effect.usual, effect.base_rate):
        # What else is known of them makes others of the plain figures.
        counts = (
            f"{of(effect.effect_count, effect.count)} where {percent(effect.usual)} is expected"
            f" (the others: {others})"
        )
    if effect.has_ratio:
        counts += f", {times(effect.lift)} ({interval(effect.lift_interval)})"
    return counts + _of_tasks(effect.tasks)


def of(some: int, all_: int) -> str:
    """Return a share with its counts, "6 of 9 (67 %)"."""
    return f"{some:,} of {all_:,} ({percent(some / all_ if all_ else 0.0)})"


def outcomes(split: OutcomeSplit) -> str:
    """Return how some sessions ended and how the others did."""
    said = (
        f"{of(split.successes, split.sessions)} succeeded, of the others"
        f" {of(split.other_successes, split.other_sessions)}"
    )
    if _is_apart(split.usual, split.other_rate):
        said += f", which makes {percent(split.usual)} of such as these"
    return said + _of_tasks(split.tasks)


def _is_apart(expected: float, plain: float) -> bool:
    return abs(expected - plain) >= _POINT


def _of_tasks(tasks: int) -> str:
    """Return of how many tasks sessions are, where tasks repeat."""
    return f", of {plural(tasks, 'task')}" if tasks else ""


def sure(q_value: float) -> str:
    """Return a q-value, "q < 0.001"."""
    return "q < 0.001" if q_value < 0.001 else f"q = {q_value:.2g}"


def sequence(tools: Sequence[str]) -> str:
    """Return a sequence, "search → book"."""
    return " → ".join(called(tool) for tool in tools)


def called(tool: str) -> str:
    """Return what a tool is called in a sentence, without the server that it is of."""
    if tool.startswith(_MCP) and "__" in tool[len(_MCP) :]:
        return tool[len(_MCP) :].partition("__")[2]
    return tool or "(unnamed)"


def plural(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, "1 session", "1,200 sessions"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def percent(share: float) -> str:
    """Return a share, "4.2 %"; only none is "0 %", and only all "100 %"."""
    if share >= 0.0995 or share == 0:
        rounded = min(round(100 * share), 99) if share < _WHOLE else 100
        return f"{rounded} %"
    return f"{100 * share:.1f} %" if share >= 0.0005 else "< 0.1 %"


def figure(value: float) -> str:
    """Return a number, to two digits below a hundred: "0.042", "1,234"."""
    return f"{value:,.0f}" if abs(value) >= 99.5 else f"{value:.2g}"


def milliseconds(value: float) -> str:
    """Return a duration, "420 ms"."""
    return f"{figure(value)} ms"


def points(difference: float) -> str:
    """Return a difference of shares, "4.2 percentage points": from 80 to 60 % is less by a quarter,
    not by 20 %."""
    number = figure(100 * difference)
    return f"{number} percentage {'point' if number == '1' else 'points'}"


def moves(test: TrendTest, amount: Callable[[float], str]) -> str:
    """Return what a series does, "rises by 120 ms over 10 days (by between 80 and 150 ms, 95 %)",
    which does not read as where it started and ended."""
    over = plural(round(test.days), "day") if test.days >= 1.5 else f"{24 * test.days:.0f} hours"
    verb = "rises" if test.slope_per_day > 0 else "falls"
    ends = (test.days * end for end in test.slope_interval)
    return f"{verb} by {amount(abs(test.change))} over {over}{_between(ends, amount)}"


def _between(ends: Iterable[float], amount: Callable[[float], str]) -> str:
    """Return the interval of a change, " (by between 80 ms and 150 ms, 95 %)"; nothing where both
    ends read alike."""
    low, high = map(amount, sorted(map(abs, ends)))
    return f" (by between {low} and {high}, 95 %)" if low != high else ""


def steps(step: TrendStep, amount: Callable[[float], str]) -> str:
    """Return how a level changes: "rose from 80 ms before 2026-05-12 to 120 ms since, by 40 ms
    (by between 30 ms and 50 ms, 95 %)"; of a share, with its counts."""
    before, after = (
        of(level.hits, level.trials) if level.trials else amount(level.value)
        for level in (step.before, step.after)
    )
    verb = "rose" if step.size > 0 else "fell"
    return (
        f"{verb} from {before} before {moment(step.since_us)} to {after} since,"
        f" by {amount(abs(step.size))}{_between(step.interval, amount)}"
    )


def step_figures(step: TrendStep) -> JsonObject:
    """Return the figures behind a step."""
    return {
        "since": moment(step.since_us),
        "before": step.before.value,
        "after": step.after.value,
        "difference": step.size,
        "difference_low": step.interval.low,
        "difference_high": step.interval.high,
        "q_value": step.q_value,
    }


def moment(time_us: int) -> str:
    """Return the start of a span, UTC: its day, with the hour where that is not midnight."""
    hour = time_us // HOUR_US % 24
    return f"{day(time_us)} {hour:02}:00" if hour else day(time_us)


def effect_data(effect: SequenceEffect) -> dict[str, Json]:
    """Return the figures behind an effect; a ratio only where there is one."""
    data: dict[str, Json] = {
        "tools": list(effect.tools),
        "effect": effect.effect,
        "count": effect.count,
        "effect_count": effect.effect_count,
        "base_count": effect.base_count,
        "base_effect_count": effect.base_effect_count,
        "base_rate": effect.base_rate,
        "q_value": effect.q_value,
    }
    if effect.has_ratio:
        low, high = effect.lift_interval
        data.update(lift=effect.lift, lift_low=low, lift_high=high)
    return data


def split_data(split: OutcomeSplit) -> JsonObject:
    """Return the figures behind a comparison of outcomes."""
    return {
        "sessions": split.sessions,
        "successes": split.successes,
        "success_low": split.interval.low,
        "success_high": split.interval.high,
        "other_sessions": split.other_sessions,
        "other_successes": split.other_successes,
        "q_value": split.q_value,
    }
