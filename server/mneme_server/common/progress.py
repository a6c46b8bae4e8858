"""Progress of long work: how far it is, and whether anybody still wants it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol


class Cancelled(Exception):
    """Somebody called the work off. Whoever catches it puts away what is half done, and goes."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far work is: `done` of `total` in the stage's own unit (bytes, texts); a total of 0 is
    not known yet."""

    stage: str
    done: int = 0
    total: int = 0


class Step(Protocol):
    """What work is given to talk to those who wait for it, wherever it runs."""

    def report(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Say how far the work is, and give way to calls. Call it often: it takes microseconds.

        Raises:
            Cancelled: somebody called the work off.
        """
        ...

    def apart(self, function: str, /, **arguments: Any) -> Any:
        """Do a heavy part of the work where it holds up nobody, in a process of its own if there
        is one, and return its result.

        Args:
            function: "module:function". It takes a `Step` and the arguments, reads and writes
                files and nothing else, and imports no more than it needs: it may be ended anywhere.
            arguments: as JSON can hold them; so is the result.

        Raises:
            Cancelled: somebody called the work off; the process is gone.
            ResourceExhausted: it took more memory than it may.
            WorkFailed: its process was killed from outside, or met a bug.
        """
        ...


class Silent:
    """A `Step` for work that nobody watches or calls off."""

    def report(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Say nothing."""

    def apart(self, function: str, /, **arguments: Any) -> Any:
        """Do it here."""
        module, _, name = function.partition(":")
        return getattr(import_module(module), name)(self, **arguments)
