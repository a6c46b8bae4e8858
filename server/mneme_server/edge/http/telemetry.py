"""OpenTelemetry's protocol over HTTP: exports in protobuf's form, or in its own JSON."""

from __future__ import annotations

import binascii
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any

import grpc
import orjson
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from starlette.exceptions import HTTPException
from starlette.responses import Response

from mneme_server.common.errors import InvalidArgument, MnemeError
from mneme_server.edge.grpc.wire import parse_parts
from mneme_server.edge.http import errors, lenient_json
from mneme_server.edge.http.answer import answer
from mneme_server.edge.http.bodies import Bodies, TooLarge, TooSlow
from mneme_server.edge.http.call import HttpCall
from mneme_server.edge.http.connect import ConnectRequest, ConnectRpc
from mneme_server.edge.http.request import Request

_COLLECTOR = "opentelemetry.proto.collector"
_PATHS: Mapping[str, str] = {
    "/v1/traces": f"{_COLLECTOR}.trace.v1.TraceService",
    "/v1/logs": f"{_COLLECTOR}.logs.v1.LogsService",
    "/v1/metrics": f"{_COLLECTOR}.metrics.v1.MetricsService",
}
_KINDS: Mapping[str, bool] = {"application/x-protobuf": False, "application/json": True}
"""The content types, and whether they are JSON."""
_IDS = ("traceId", "spanId", "parentSpanId")


def exports_of(services: Iterable[ServiceDescriptor]) -> Mapping[str, MethodDescriptor]:
    """Return the calls that take telemetry, by their paths."""
    served = {str(service.full_name): service for service in services}
    return {path: served[name].methods[0] for path, name in _PATHS.items() if name in served}


class ExportRpc(ConnectRpc):
    """One of these calls. In its JSON, ids are hexadecimal, and what is not known is left out; what
    is broken in it costs as little as it can."""

    def read(self, raw: ConnectRequest) -> Message:
        """Return the request.

        Raises:
            InvalidArgument: it is broken elsewhere than in what stands for itself.
        """
        parts = self.behaviour.method.parts
        if not raw.json:
            return parse_parts(self._from_bytes, self.method.input_type, raw.body, parts)
        try:
            return super().read(raw)
        except InvalidArgument:
            request = self._request()
            try:
                lenient_json.fill(request, lenient_json.load(raw.body), parts)
            except (ValueError, AttributeError, RecursionError):
                pass
            else:
                return request
            raise

    def fill(self, request: Message, value: dict[str, Any]) -> None:
        """Set the fields of a request that a JSON object says."""
        _write_ids_as_protobuf_does(value)
        json_format.ParseDict(value, request, ignore_unknown_fields=True)


async def serve_export(rpc: ExportRpc, request: Request, bodies: Bodies) -> Response | None:
    """Serve one request. Errors are a `google.rpc.Status` in the request's own form.

    Raises:
        HTTPException: it is no export.
    """
    request.allow("POST")
    json = _KINDS.get(request.content_type)
    if json is None:
        kinds = ", ".join(_KINDS)
        raise HTTPException(415, f"{request.raw_path} takes {kinds}", {"accept-post": kinds})
    try:
        call = HttpCall(request.metadata, request.peer, request.timeout_s())
        body = await bodies.of(rpc, call, request)
    except (TooLarge, TooSlow) as refusal:
        why = refusal.detail
        if isinstance(refusal, TooLarge):
            why += "; export fewer at a time"
        status = errors.plain_status(grpc.StatusCode.INVALID_ARGUMENT, why)
        return _failed(request, status, json=json, code=refusal.status_code, close=True)
    except MnemeError as error:
        status = errors.status_of(error, request.request_id)
        return _failed(request, status, json=json, close=True)
    try:
        told = await rpc.call(ConnectRequest(body, json), call, request.receive)
    finally:
        bodies.release(body, call.sender)
    if isinstance(told, bytes):
        return answer(request, told, kind=request.content_type)
    return None if told is None else _failed(request, told, json=json)


def _failed(
    request: Request, status: Status, *, json: bool, code: int = 0, close: bool = False
) -> Response:
    """Return how a call failed; `close` where the rest of its body is not waited for."""
    kind = next(kind for kind, is_json in _KINDS.items() if is_json == json)
    body = orjson.dumps(errors.status_body(status)) if json else status.SerializeToString()
    headers = {**errors.headers_of(status), **({"connection": "close"} if close else {})}
    return answer(request, body, code or errors.http_status(status), kind, headers)


def _write_ids_as_protobuf_does(value: Any) -> None:
    """Have the ids in Base64 that are hexadecimal. No object has keys that a sender chooses."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += one
        elif isinstance(one, dict):
            left += one.values()
            for name in _IDS:
                if isinstance(said := one.get(name), str):
                    one[name] = _in_base64(name, said)


def _in_base64(name: str, said: str) -> str:
    try:
        return b64encode(binascii.unhexlify(said)).decode()
    except (binascii.Error, ValueError):
        raise ValueError(f"{name} is not hexadecimal: {said[:40]!r}") from None
