"""Reading what this client wrote: the token of its last write goes along with every call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_TOKEN = "mneme-consistency-token"
_AT_LEAST_AS_FRESH = "mneme-at-least-as-fresh"
_STORE = 16
"""Characters that tokens of one store have in common; the larger of two such is the newer."""


class Freshness:
    """The newest token that a write was answered with; empty before the first.

    Args:
        sent: whether it goes along.
    """

    def __init__(self, sent: bool) -> None:
        self.token = ""
        self._sent = sent

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What a call carries."""
        token = self.token
        return ((_AT_LEAST_AS_FRESH, token),) if token and self._sent else ()

    def note(self, trailers: Iterable[tuple[str, Any]] | None, asked: str) -> None:
        """Take what the server told with an answer to a call that asked for `asked`."""
        for name, value in trailers or ():
            if name == _AT_LEAST_AS_FRESH and self.token == asked:
                self.token = ""  # What was known then is not there any more.
            elif name == _TOKEN:
                known = self.token
                if known[:_STORE] != value[:_STORE] or known < value:
                    self.token = value
