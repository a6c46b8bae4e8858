"""Errors leave as statuses with details; bugs as an id that the log carries too."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import structlog
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from mneme_server.common.errors import DataLoss
from mneme_server.embedding.errors import EmbeddingError
from mneme_server.transport.call import Call
from mneme_server.transport.errors import DETAILS_KEY, internal_outcome, outcome_of

_log = structlog.get_logger()


@contextmanager
def map_errors(call: Call) -> Iterator[None]:
    """Turn what the call raises into its status."""
    try:
        yield
    except BaseException as error:
        # A broken request stream: the caller is gone and nobody hears an answer. And what is meant
        # for the interpreter. A panic in a library written in Rust is neither, and no `Exception`.
        if isinstance(error, grpc.RpcError | GeneratorExit | KeyboardInterrupt | SystemExit):
            raise
        if isinstance(error, EmbeddingError) and error.detail:
            # Where the backend is, is no business of the tenants'.
            _log.warning("embedding failed", error=str(error), request_id=call.request_id)
        if isinstance(error, DataLoss):
            _log.warning("stored data are damaged", tenant=call.tenant_id, error=str(error))
        outcome = outcome_of(error, call.request_id)
        if outcome is None:
            call.error_id = secrets.token_hex(8)
            _log.exception(
                "internal error",
                error_id=call.error_id,
                request_id=call.request_id,
                method=call.method.path,
                tenant=call.tenant_id,
            )
            outcome = internal_outcome(call.error_id, call.request_id)
        call.code = outcome.code
        call.reason = outcome.reason
        _abort(call.context, outcome.code, outcome.status)


def _abort(context: grpc.ServicerContext, code: grpc.StatusCode, status: Status) -> None:
    context.set_trailing_metadata(((DETAILS_KEY, status.SerializeToString()),))
    context.abort(code, status.message)
