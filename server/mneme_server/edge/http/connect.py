"""Connect's protocol: unary calls and streams of answers, in protobuf's own JSON or in binary."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import orjson
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from mneme._core.json_values import misfit_in
from mneme._core.misfits import in_words

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.entrance import Behaviour, Entrance
from mneme_server.edge.grpc.wire import parse
from mneme_server.edge.http.call import only_for_who_reads
from mneme_server.edge.http.reading import parse_json

UNARY: Mapping[str, bool] = {"application/json": True, "application/proto": False}
STREAM: Mapping[str, bool] = {
    "application/connect+json": True,
    "application/connect+proto": False,
}
"""The content types, and whether they are JSON."""

_PREFIX = struct.Struct(">BI")
_COMPRESSED, _END = 1, 2


@dataclass(frozen=True, slots=True)
class ConnectRequest:
    """What travelled."""

    body: bytes
    json: bool

    def __len__(self) -> int:
        """Its bytes."""
        return len(self.body)


class ConnectRpc:
    """One RPC."""

    def __init__(self, method: MethodDescriptor, entrance: Entrance) -> None:
        self.method = method
        self._request = cast(Callable[[], Message], GetMessageClass(method.input_type))
        around = only_for_who_reads if not method.server_streaming else lambda serve: serve
        self.behaviour: Behaviour = entrance.behaviour(method, self.read, around)

    def read(self, raw: ConnectRequest) -> Message:
        """Return the request.

        Raises:
            InvalidArgument: it cannot be read.
        """
        if not raw.json:
            return parse(self._from_bytes, self.method.input_type, raw.body)
        value = parse_json(raw.body) if raw.body.strip() else {}
        request = self._request()
        if not isinstance(value, dict):
            raise InvalidArgument("the body is not a JSON object", reason=Reason.INVALID_TYPE)
        try:
            self.fill(request, value)
        except (json_format.ParseError, ValueError, TypeError, RecursionError) as error:
            raise InvalidArgument(
                f"the request cannot be read: {in_words(error, request.DESCRIPTOR)}",
                reason=Reason.INVALID_TYPE,
            ) from None
        return request

    def fill(self, request: Message, value: dict[str, Any]) -> None:
        """Set the fields of a request that a JSON object says."""
        misfit = misfit_in(value, request.DESCRIPTOR)
        if misfit is not None:
            raise InvalidArgument(
                f"{misfit.path}: {misfit.problem}",
                reason=Reason.INVALID_TYPE if misfit.of_type else Reason.OUT_OF_RANGE,
                field=misfit.path,
            )
        json_format.ParseDict(value, request)

    def dump(self, raw: ConnectRequest, answer: Message) -> bytes:
        """Return the answer's bytes, in the request's form."""
        if raw.json:
            return orjson.dumps(json_format.MessageToDict(answer))
        return answer.SerializeToString()

    def _from_bytes(self, body: bytes) -> Message:
        request = self._request()
        request.ParseFromString(body)
        return request


def enveloped(payload: bytes) -> bytes:
    """Return a message of a stream."""
    return _PREFIX.pack(0, len(payload)) + payload


def end_of_stream(body: Mapping[str, Any]) -> bytes:
    """Return what a stream ends with."""
    payload = orjson.dumps(body)
    return _PREFIX.pack(_END, len(payload)) + payload


def only_message(body: bytes) -> bytes:
    """Return the one message of a stream of requests.

    Raises:
        InvalidArgument: there is not exactly one, or it is compressed.
    """
    if len(body) >= _PREFIX.size:
        flags, size = _PREFIX.unpack_from(body)
        if not flags & (_COMPRESSED | _END) and len(body) == _PREFIX.size + size:
            return body[_PREFIX.size :]
    raise InvalidArgument(
        "the body is not one uncompressed message in an envelope", reason=Reason.INVALID_TYPE
    )
