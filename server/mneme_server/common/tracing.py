"""The span of the work at hand.

Whoever does something that is worth a span asks here for what it is part of, so that no port needs
a parameter for it. By default that is `NOTHING`, which costs nothing and tells nobody. The
transport says which span a call is; `engine.tracing` has spans that are exported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Protocol, TypeAlias

Value: TypeAlias = str | int | float | bool | Sequence[str]
Attributes: TypeAlias = Mapping[str, Value]

ERROR_TYPE = "error.type"
NO_ATTRIBUTES: Attributes = {}


class SpanKind(Enum):
    """What a span is to others: SERVER serves a call, CLIENT makes one, INTERNAL does neither."""

    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"


class Span(Protocol):
    """Something that is being done, told to whoever watches the server. Thread-safe."""

    @property
    def is_told(self) -> bool:
        """Whether anybody gets to know of it: without, nothing need be worked out for it."""
        ...

    @property
    def tells_texts(self) -> bool:
        """Whether what callers ask and store may be told, too."""
        ...

    @property
    def trace_id(self) -> str:
        """The trace that it belongs to, 32 hexadecimal digits; empty when it is not told."""
        ...

    def child(
        self,
        name: str,
        attributes: Attributes = NO_ATTRIBUTES,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        began_ns: int | None = None,
        headers: Mapping[str, str | bytes] | None = None,
    ) -> Span:
        """Begin a part of this.

        Args:
            name: what is done; one of few.
            attributes: of it.
            kind: what it is to others.
            began_ns: when it began, in nanoseconds since 1970; None: now.
            headers: of a request, by names in lower case; a W3C trace context among them says what
                the span is part of instead.
        """
        ...

    def tell(self, attributes: Attributes) -> None:
        """Add attributes."""
        ...

    def end(self, error: str = "") -> None:
        """Say that it is done; with an error, of what kind, that it failed."""
        ...


class _Nothing:
    """A span that nobody is told of."""

    is_told = False
    tells_texts = False
    trace_id = ""

    def child(
        self,
        name: str,
        attributes: Attributes = NO_ATTRIBUTES,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        began_ns: int | None = None,
        headers: Mapping[str, str | bytes] | None = None,
    ) -> Span:
        """See Span."""
        return self

    def tell(self, attributes: Attributes) -> None:
        """See Span."""

    def end(self, error: str = "") -> None:
        """See Span."""


NOTHING: Span = _Nothing()

_current: ContextVar[Span] = ContextVar("mneme_span", default=NOTHING)


def current() -> Span:
    """Return the span of the work at hand; `NOTHING` where it is not told."""
    return _current.get()


def enter(span: Span) -> None:
    """Have the rest of this context's work be part of a span, until `leave`. Threads that it starts
    do not inherit it."""
    _current.set(span)


def leave() -> None:
    """Have the work be part of nothing again."""
    _current.set(NOTHING)


@contextmanager
def doing(name: str, attributes: Attributes = NO_ATTRIBUTES) -> Iterator[Span]:
    """Do the block as a part of the work at hand, which is told of."""
    outer = _current.get()
    span = outer.child(name, attributes)
    _current.set(span)
    try:
        yield span
    except BaseException as error:
        span.end(type(error).__name__)
        raise
    else:
        span.end()
    finally:
        _current.set(outer)
