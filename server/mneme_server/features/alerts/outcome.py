"""What came of an attempt to send something."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """`error`: why it failed; empty if it did not. `final`: trying again makes no sense."""

    error: str = ""
    final: bool = False
