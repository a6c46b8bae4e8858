"""Ports to what the use cases of memories need from storage."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol


class UpliftReader(Protocol):
    """What causal edges say of memories and other things."""

    def uplifts(self, kind: str, ids: Collection[str]) -> Mapping[str, float]:
        """Return what those of these things (by kind and id) of which edges say something surely
        enough change, by id."""
        ...
