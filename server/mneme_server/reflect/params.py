"""The parameters of each analysis, read from what the caller gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from mneme_server.common.canonical import Json, JsonObject
from mneme_server.common.errors import InvalidArgument, Reason

N = TypeVar("N", int, float)

MAX_TEXT = 200
MAX_WINDOW = 5
MAX_LENGTH = 6
BASELINES = ("all_calls", "same_tool")
BUCKETS = ("hour", "day", "week")


@dataclass(frozen=True, slots=True)
class ErrorParams:
    """Of ERROR_PATTERNS."""

    tool: str = ""
    min_count: int = 1
    window: int = 3
    examples: int = 3
    baseline: str = BASELINES[0]


@dataclass(frozen=True, slots=True)
class SequenceParams:
    """Of TOOL_SEQUENCES. `min_support` counts sessions."""

    min_length: int = 1
    max_length: int = 4
    min_support: int = 3


@dataclass(frozen=True, slots=True)
class CostParams:
    """Of COST_ANALYSIS. An empty bucket is chosen by the range."""

    model: str = ""
    bucket: str = ""


@dataclass(frozen=True, slots=True)
class TrendParams:
    """Of PERFORMANCE_TRENDS. An empty bucket is chosen by the range."""

    bucket: str = ""


@dataclass(frozen=True, slots=True)
class ComparisonParams:
    """Of SESSION_COMPARISON. None: not said."""

    recent_days: float | None = None
    recent_sessions: int | None = None


def error_params(given: JsonObject) -> ErrorParams:
    """Read the parameters of ERROR_PATTERNS; raises as `_Given` does."""
    read = _Given(given, ("tool", "min_count", "window", "examples", "baseline"))
    return ErrorParams(
        tool=read.text("tool"),
        min_count=read.whole("min_count", 1, 1, 1_000_000_000),
        window=read.whole("window", 3, 1, MAX_WINDOW),
        examples=read.whole("examples", 3, 0, 10),
        baseline=read.choice("baseline", BASELINES, BASELINES[0]),
    )


def sequence_params(given: JsonObject) -> SequenceParams:
    """Read the parameters of TOOL_SEQUENCES; raises as `_Given` does."""
    read = _Given(given, ("min_length", "max_length", "min_support"))
    shortest = read.whole("min_length", 1, 1, MAX_LENGTH)
    longest = read.whole("max_length", max(4, shortest), 1, MAX_LENGTH)
    if longest < shortest:
        raise InvalidArgument(
            f"params.max_length is {longest}, less than params.min_length, {shortest}",
            reason=Reason.OUT_OF_RANGE,
            field="params.max_length",
        )
    return SequenceParams(shortest, longest, read.whole("min_support", 3, 2, 1_000_000_000))


def cost_params(given: JsonObject) -> CostParams:
    """Read the parameters of COST_ANALYSIS; raises as `_Given` does."""
    read = _Given(given, ("model", "bucket"))
    return CostParams(read.text("model"), read.choice("bucket", BUCKETS, ""))


def trend_params(given: JsonObject) -> TrendParams:
    """Read the parameters of PERFORMANCE_TRENDS; raises as `_Given` does."""
    return TrendParams(_Given(given, ("bucket",)).choice("bucket", BUCKETS, ""))


def comparison_params(given: JsonObject) -> ComparisonParams:
    """Read the parameters of SESSION_COMPARISON; raises as `_Given` does."""
    read = _Given(given, ("recent_days", "recent_sessions"))
    if len(given) > 1:
        raise InvalidArgument(
            "params.recent_days and params.recent_sessions exclude each other: give one",
            field="params.recent_sessions",
        )
    days = read.number("recent_days", 1e-6, 36_500) if "recent_days" in given else None
    sessions = (
        read.whole("recent_sessions", 1, 1, 1_000_000_000) if "recent_sessions" in given else None
    )
    return ComparisonParams(days, sessions)


class _Given:
    """Parameters as given.

    Raises:
        InvalidArgument: one is unknown, of another type or out of its range; its path is
            `params.NAME`.
    """

    def __init__(self, given: JsonObject, known: Sequence[str]) -> None:
        self._given = given
        for name in given:
            if name not in known:
                raise InvalidArgument(
                    f"params.{name} is not known here; known are {', '.join(known)}",
                    field=f"params.{name}",
                )

    def text(self, name: str) -> str:
        value = self._given.get(name, "")
        if not isinstance(value, str):
            raise _wrong_type(name, "a text", value)
        if len(value) > MAX_TEXT:
            raise InvalidArgument(
                f"params.{name} has {len(value)} characters, at most {MAX_TEXT} are allowed",
                reason=Reason.OUT_OF_RANGE,
                field=f"params.{name}",
            )
        return value

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        value = self._given.get(name, default)
        if not isinstance(value, str):
            raise _wrong_type(name, f"one of {', '.join(choices)}", value)
        if value not in (*choices, default):
            raise InvalidArgument(
                f"params.{name} is {value[:50]!r}; it is one of {', '.join(choices)}",
                field=f"params.{name}",
            )
        return value

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        value = self._given.get(name, default)
        # Numbers arrive as floats; 3.0 is a whole number, 3.5 and true are none.
        if isinstance(value, bool) or not isinstance(value, int):
            raise _wrong_type(name, "a whole number", value)
        return _within(name, value, low, high)

    def number(self, name: str, low: float, high: float) -> float:
        value = self._given[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong_type(name, "a number", value)
        return _within(name, float(value), low, high)


def _within(name: str, value: N, low: N, high: N) -> N:
    if not low <= value <= high:
        raise InvalidArgument(
            f"params.{name} is {value:g}; it lies between {low:g} and {high:g}",
            reason=Reason.OUT_OF_RANGE,
            field=f"params.{name}",
        )
    return value


def _wrong_type(name: str, wanted: str, value: Json) -> InvalidArgument:
    return InvalidArgument(
        f"params.{name} is {wanted}, not {str(value)[:50]!r}",
        reason=Reason.INVALID_TYPE,
        field=f"params.{name}",
    )
