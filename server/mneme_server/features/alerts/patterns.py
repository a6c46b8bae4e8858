"""Patterns of errors' messages, as `LIKE` has them."""

from __future__ import annotations

import re

from mneme_server.features.events.history import ESCAPE

_PLACEHOLDER = re.compile(r"<(?:url|email|id|date|str|path|num)>")


def like(pattern: str) -> str:
    """Return what `LIKE` takes for a pattern, with `ESCAPE`; placeholders stand for anything."""
    parts = _PLACEHOLDER.split(pattern.strip())
    escaped = [re.sub(r"[\\%_]", lambda found: ESCAPE + found[0], part) for part in parts]
    return f"%{'%'.join(escaped)}%"
