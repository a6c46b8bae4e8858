"""Ports to what the use cases of patterns need from storage."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol


class Matcher(Protocol):
    """Tells which of many items match."""

    def matching(self, joined: bytes) -> Collection[int]:
        """Return which of the items match, from 0; `joined` are they, in UTF-8, with NUL between
        them."""
        ...
