"""Times as people type them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from mneme.days import moment

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_RELATIVE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])(?:\s+ago)?", re.IGNORECASE)
HELP = "an ISO time or a day (2026-01-31), both in UTC, or how long ago (7d, 12h, 30m)"


def parse_start(text: str) -> datetime:
    """The moment from which something counts, or before which: a day's first, in UTC.

    Raises:
        typer.BadParameter: the text is no time.
    """
    return _parse(text.strip(), end_of_day=False)


def parse_end(text: str) -> datetime:
    """The moment up to which something counts: a day counts to its end, in UTC.

    Raises:
        typer.BadParameter: the text is no time.
    """
    return _parse(text.strip(), end_of_day=True)


def _parse(text: str, *, end_of_day: bool) -> datetime:
    now = datetime.now(UTC)
    try:
        if match := _RELATIVE.fullmatch(text):
            return now - timedelta(**{_UNITS[match[2].lower()]: float(match[1])})
        if text.lower() == "now":
            return now
        day = {"today": now, "yesterday": now - timedelta(days=1)}.get(text.lower())
        return moment(day.date().isoformat() if day else text, end=end_of_day)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"{text!r} is not a time; give {HELP}") from error


From = Annotated[
    datetime | None,
    typer.Option("--from", parser=parse_start, metavar="TIME", help=f"At or after: {HELP}."),
]
To = Annotated[
    datetime | None,
    typer.Option("--to", parser=parse_end, metavar="TIME", help="Up to this; a day is included."),
]
