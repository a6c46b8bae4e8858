"""Figures as sentences show them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from mneme_server.reflect.model import Interval, SequenceEffect


def times(lift: float) -> str:
    """Return a ratio, "2.3×"."""
    return f"{lift:.0f}×" if lift >= 99.5 else f"{lift:.1f}×" if lift >= 0.1 else f"{lift:.2g}×"


def interval(of: Interval, form: str = ".2g") -> str:
    """Return an interval, "1.4–3.8"."""
    return f"{of.low:{form}}–{of.high:{form}}"


def lifted(effect: SequenceEffect) -> str:
    """Return a lift with its interval, "2.3× (1.4–3.8)"."""
    low, high = (
        f"{value:.1f}" if value >= 0.1 else f"{value:.2g}" for value in effect.lift_interval
    )
    return f"{times(effect.lift)} ({low}–{high})"


def sequence(tools: Sequence[str]) -> str:
    """Return a sequence, "search → book"."""
    return " → ".join(tool or "(unnamed)" for tool in tools)


def plural(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, "1 session", "1,200 sessions"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def percent(share: float) -> str:
    """Return a share, "4.2 %"."""
    return f"{100 * share:.0f} %" if share >= 0.0995 or share == 0 else f"{100 * share:.1f} %"


def dollars(amount: float) -> str:
    """Return an amount of US dollars, to the cent, or to two digits below one."""
    if amount and abs(amount) < 0.995:
        return f"${amount:.2g}"
    return f"${amount:,.2f}"


def day(time_us: int) -> str:
    """Return the day of a time, UTC; years that no calendar holds are shown as seconds."""
    try:
        return datetime.fromtimestamp(time_us / 1e6, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return f"{time_us // 1_000_000} s"
