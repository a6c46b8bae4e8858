"""What texts say of time, which differs from run to run and with how busy the machine is."""

from __future__ import annotations

import re

_SPAN = r"\d+ (?:second|minute)s?(?: \d+ seconds?)?"
_TOOK = re.compile(rf",? after {_SPAN}|, {_SPAN}(?=,)")
_AGO = re.compile(rf"{_SPAN} ago")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?")


def timeless(text: str) -> str:
    """Return a text in which nothing took any time, all was just now, and no date is told."""
    return _DATE.sub("(time)", _AGO.sub("just now", _TOOK.sub("", text)))
