"""Where an index reports what it did on its own."""

from __future__ import annotations

from typing import Protocol


class Log(Protocol):
    """A structured log; structlog's loggers are one."""

    def info(self, event: str, /, **fields: object) -> object:
        """Report something that happened as planned."""
        ...

    def warning(self, event: str, /, **fields: object) -> object:
        """Report something that an operator should know of."""
        ...


class NoLog:
    """Keeps everything to itself."""

    def info(self, event: str, /, **fields: object) -> None:
        """Do nothing."""

    def warning(self, event: str, /, **fields: object) -> None:
        """Do nothing."""
