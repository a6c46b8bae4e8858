"""What a time that people or models write means, wherever they write it.

A date is a day in UTC, whatever zone the machine is in: as the beginning of a span its first
moment, as the end of one that includes it the first moment after it. A time without a zone is UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def moment(text: str, *, end: bool = False) -> datetime:
    """The moment that a text names, with its zone.

    Args:
        text: an ISO time, or a date.
        end: it ends a span that includes it, so that a date counts to its end.

    Raises:
        ValueError: it is neither.
        OverflowError: it is the last day that there is, to its end.
    """
    text = text.strip()
    read = datetime.fromisoformat(text)
    read = read if read.tzinfo else read.replace(tzinfo=UTC)
    return read + timedelta(days=1) if end and _DATE.fullmatch(text) else read
