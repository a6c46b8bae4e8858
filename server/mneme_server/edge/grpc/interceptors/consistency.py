"""Consistency tokens: what a write is answered with, and a reader asks to be as fresh as.

They travel beside the messages, as headers, so that no message has a field for them, and streams
have them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias, cast

import grpc
import structlog

from mneme_server.common import consistency
from mneme_server.common.consistency import ConsistencyToken
from mneme_server.common.errors import MnemeError
from mneme_server.common.identity import KeyScope
from mneme_server.edge.grpc.call import AT_LEAST_AS_FRESH, Call
from mneme_server.edge.grpc.methods import StreamKind
from mneme_server.edge.grpc.pipeline import Layer

TOKEN = "mneme-consistency-token"
"""The trailer with the token of what a call wrote."""
NEWEST = "newest"
"""In the trailer of an answer that is not of the state that was asked for, which is not there any
more, but of the newest one."""

WaitUntilAsFresh: TypeAlias = Callable[[str, ConsistencyToken], bool]
"""Waits until a tenant's answers are as fresh as a token says; False when that state is lost."""

Newest: TypeAlias = Callable[[str], ConsistencyToken | None]
"""Returns a token of what there is of a tenant now; None where only this server writes."""

_log = structlog.get_logger(__name__)


def consistent(wait_until_as_fresh: WaitUntilAsFresh, newest: Newest) -> Layer:
    """Return the layer that waits for what readers ask for, and tells writers their tokens. It must
    be inside those that refuse.

    A call that would write what there is already writes nothing: another server may have written
    it, for the same caller, who did not hear of it. What it did stands: where the store cannot be
    asked for a token it is answered without one.
    """

    @contextmanager
    def layer(call: Call) -> Iterator[None]:
        trailers: list[tuple[str, str]] = []
        if call.at_least_as_fresh and _reads(call):
            token = ConsistencyToken.parse(call.at_least_as_fresh)
            if not wait_until_as_fresh(call.tenant, token):
                trailers.append((AT_LEAST_AS_FRESH, NEWEST))
        with consistency.watched() as written:
            yield
        token_of_it = written.token
        if token_of_it is None and call.method.scope is KeyScope.WRITE:
            token_of_it = _token_of(newest, call)
        if token_of_it is not None:
            trailers.append((TOKEN, str(token_of_it)))
        if trailers:
            cast(grpc.ServicerContext, call.edge).set_trailing_metadata(tuple(trailers))

    return layer


def _token_of(newest: Newest, call: Call) -> ConsistencyToken | None:
    try:
        return newest(call.tenant)
    except Exception as error:
        _log.warning(
            "a write was answered without a token", method=call.method.path, tenant=call.tenant,
            error=str(error), exc_info=not isinstance(error, MnemeError),
        )  # fmt: skip
        return None


def _reads(call: Call) -> bool:
    return call.method.scope is KeyScope.READ and call.method.stream is not StreamKind.WATCH
