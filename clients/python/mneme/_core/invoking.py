"""Calls of RPCs of which nothing is known but their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mneme._core._sync.caller import SyncCaller
from mneme._core.rpc import AnswerT, RequestT, Rpc, fields_of


def invoke(
    caller: SyncCaller,
    rpc: Rpc[RequestT, AnswerT],
    requests: Iterable[RequestT],
    timeout: float | None,
) -> Iterator[AnswerT]:
    """Call any RPC, whatever its kind. A stream that breaks off is not resumed: its error is told.

    Args:
        caller: makes the call.
        rpc: what is called.
        requests: the request; several where the RPC takes a stream of them.
        timeout: seconds for the call; None: the client's, and no limit for streams.

    Returns:
        The answers as they come; a single one where the RPC answers with no stream.
    """
    kind = rpc.descriptor
    if kind.client_streaming and not kind.server_streaming:
        yield caller._client_stream(rpc, requests, timeout)
    elif kind.client_streaming:
        with caller._bidirectional(rpc, requests, timeout) as stream:
            yield from stream
    else:
        fields = fields_of(next(iter(requests)))
        if not kind.server_streaming:
            yield caller._unary(rpc, fields, timeout)
            return
        with caller._server_stream(rpc, fields, timeout, resumes=False) as stream:
            yield from stream
