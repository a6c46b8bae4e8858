"""Errors leave as statuses with details; bugs as an id that the log carries too."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import grpc
import structlog
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from mneme_server.common.deadline import Abandoned
from mneme_server.common.errors import DataLoss, MnemeError
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import DETAILS_KEY, Failure, failure_of, internal_failure
from mneme_server.edge.grpc.pipeline import Layer
from mneme_server.engine.embedding.port import EmbeddingError

_log = structlog.get_logger()


Diagnose = Callable[[str], MnemeError | None]
"""Tells, by the tenant, what is wrong with its data; None when they seem to be sound."""


def map_errors(diagnose: Diagnose = lambda _tenant: None) -> Layer:
    """Return the layer that turns what a call raises into its status.

    Args:
        diagnose: asked when a call fails without saying why: damaged data are no bug.
    """

    @contextmanager
    def mapped(call: Call) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            # A broken request stream: the caller is gone and nobody hears an answer. And what is
            # meant for the interpreter. A panic in a library written in Rust is neither, and no
            # `Exception`.
            if isinstance(error, grpc.RpcError | GeneratorExit | KeyboardInterrupt | SystemExit):
                raise
            context = cast(grpc.ServicerContext, call.edge)
            if isinstance(error, Abandoned):
                context.abort(call.abandoned_code, error.message)
            failure = _failure_of(call, error, diagnose)
            call.code = failure.code
            call.reason = failure.reason
            _abort(context, failure.code, failure.status)

    return mapped


def _failure_of(call: Call, error: BaseException, diagnose: Diagnose) -> Failure:
    if isinstance(error, EmbeddingError) and error.detail:
        # Where the backend is, is no business of the tenants'.
        _log.warning("embedding failed", error=str(error), request_id=call.request_id)
    if isinstance(error, DataLoss):
        _log.warning("stored data are damaged", tenant=call.tenant_id, error=str(error))
    failure = failure_of(error, call.request_id)
    if failure is not None:
        return failure
    damage = diagnose(call.tenant_id) if call.tenant_id else None
    if damage is not None and (told := failure_of(damage, call.request_id)) is not None:
        _log.warning(
            "stored data are damaged", tenant=call.tenant_id, error=str(damage),
            method=call.method.path, exc_info=True,
        )  # fmt: skip
        return told
    call.error_id = secrets.token_hex(8)
    _log.exception(
        "internal error",
        error_id=call.error_id,
        request_id=call.request_id,
        method=call.method.path,
        tenant=call.tenant_id,
    )
    return internal_failure(call.error_id, call.request_id)


def _abort(context: grpc.ServicerContext, code: grpc.StatusCode, status: Status) -> None:
    context.set_trailing_metadata(((DETAILS_KEY, status.SerializeToString()),))
    context.abort(code, status.message)
