"""Consistency tokens: how fresh an answer must be, and the next one may be asked to be.

A call that writes leaves here what it wrote; its edge tells the caller, as a token, and whoever
reads with that token is answered from what was written then, or later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

from mneme_server.common.errors import InvalidArgument

_FORM = re.compile(r"([0-9a-f]{16})-([0-9a-f]{12})-([0-9a-f]{16})")


class ConsistencyToken(NamedTuple):
    """A state of a tenant's store: its `generation`, and the row of its feed.

    As a text it is opaque to callers, but for this: of two texts with the same first 16 characters
    the larger one is the newer.
    """

    generation: int
    number: int
    mark: int

    def __str__(self) -> str:
        return f"{self.generation:016x}-{self.number:012x}-{self.mark:016x}"

    @classmethod
    def parse(cls, text: str) -> ConsistencyToken:
        """Read a token.

        Raises:
            InvalidArgument: it is none.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise InvalidArgument(
                "what should say how fresh the answer is to be is no consistency token; leave it"
                " out, or give the last one that a write was answered with"
            )
        return cls(*(int(part, 16) for part in found.groups()))


@dataclass(slots=True)
class Written:
    """What a call wrote last: `token` is None as long as it wrote nothing."""

    token: ConsistencyToken | None = None


_current: ContextVar[Written | None] = ContextVar("mneme_written", default=None)


@contextmanager
def watched() -> Iterator[Written]:
    """Note what this context writes in the block."""
    noted = Written()
    _current.set(noted)
    try:
        yield noted
    finally:
        _current.set(None)


def wrote(token: ConsistencyToken) -> None:
    """Note what was just committed, if anybody wants to know."""
    noted = _current.get()
    if noted is not None:
        noted.token = token
