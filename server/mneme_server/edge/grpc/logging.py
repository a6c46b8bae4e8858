"""Logs: structlog to stderr, for people or as JSON lines."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import Literal, TextIO, cast

import structlog

LogFormat = Literal["console", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


def configure_logging(level: LogLevel, format_: LogFormat, stream: TextIO | None = None) -> None:
    """Send structlog's and the libraries' own log lines to `stream`, by default stderr.

    Tracebacks come without local variables: those hold what callers store, and keys.
    """
    stream = stream or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if format_ == "json":
        shared += [
            structlog.processors.ExceptionRenderer(
                structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
            ),
            structlog.processors.JSONRenderer(),
        ]
    else:
        shared += [
            structlog.dev.ConsoleRenderer(
                colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
    structlog.configure(
        processors=shared,
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _Forgiving(stream))),
        cache_logger_on_first_use=False,
    )
    _forward_standard_logging(number)


class _Forgiving:
    """A stream whose failures hurt nobody: the terminal is gone, or the log's disk is full.

    A line that cannot be written is lost; the call that it tells of must not fail for it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, line: str) -> None:
        """Write a line, if it can be written."""
        with suppress(OSError, ValueError):
            self._stream.write(line)

    def flush(self) -> None:
        """Hand what was written to the system, if it takes it."""
        with suppress(OSError, ValueError):
            self._stream.flush()


class _ToStructlog(logging.Handler):
    """Hands the records of libraries, such as grpc, to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().log(
            record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info
        )


def _forward_standard_logging(level: int) -> None:
    root = logging.getLogger()
    root.handlers = [_ToStructlog()]
    # Libraries say little of use below a warning, and at debug far too much.
    root.setLevel(max(level, logging.WARNING))
