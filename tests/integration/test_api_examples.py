"""The examples of docs/api.md, sent to a real server in their order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from mneme.v1 import (
    admin_service_pb2,
    context_service_pb2,
    event_service_pb2,
    learn_service_pb2,
    recall_service_pb2,
    reflect_service_pb2,
)
from support.server import ADMIN_KEY, REPOSITORY, local_server

FILES = (
    admin_service_pb2,
    context_service_pb2,
    event_service_pb2,
    learn_service_pb2,
    recall_service_pb2,
    reflect_service_pb2,
)
METHODS: dict[str, MethodDescriptor] = {
    f"{service.name}.{method.name}": method
    for file in FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
EXAMPLES: dict[str, Any] = json.loads((REPOSITORY / "scripts/api_examples.json").read_text())
EMPTY = {"AdminService.DeleteTenant"}
# What the examples before them make them find.
FOUND = {
    "RecallService.Recall": "results",
    "LearnService.SearchLessons": "results",
    "LearnService.SearchReflections": "results",
    "LearnService.QueryKnowledge": "entries",
    "ContextService.SearchSessions": "results",
    "ContextService.GetContext": "sessions",
    "ContextService.GetTimeline": "entries",
    "ReflectService.Reflect": "metadata",
}


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[grpc.Channel]:
    with (
        local_server(tmp_path / "data") as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        yield channel


def answer(channel: grpc.Channel, name: str, requests: list[Message]) -> Message:
    """The answer to a call, the first one of a stream."""
    method = METHODS[name]
    path = f"/{method.containing_service.full_name}/{method.name}"
    kind = ("stream" if method.client_streaming else "unary") + (
        "_stream" if method.server_streaming else "_unary"
    )
    call = getattr(channel, kind)(
        path,
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    given = iter(requests) if method.client_streaming else requests[0]
    said = call(given, metadata=[("authorization", f"Bearer {ADMIN_KEY}")], timeout=60)
    if not method.server_streaming:
        return said
    first: Message = next(said)
    said.cancel()
    return first


def test_every_rpc_has_an_example() -> None:
    assert set(EXAMPLES) == set(METHODS)


def test_the_examples_run_in_their_order(channel: grpc.Channel) -> None:
    chosen: dict[str, str] = {}
    for name, example in EXAMPLES.items():
        text = json.dumps(example if isinstance(example, list) else [example])
        for placeholder, value in chosen.items():
            text = text.replace(placeholder, value)
        request = GetMessageClass(METHODS[name].input_type)
        said: Any = answer(channel, name, [ParseDict(one, request()) for one in json.loads(text)])
        assert name in EMPTY or said.ByteSize(), name
        assert name not in FOUND or getattr(said, FOUND[name]), name
        if name == "AdminService.CreateApiKey":
            chosen["API_KEY_ID"] = said.api_key.id
        elif name == "AdminService.Backup":
            chosen["BACKUP"] = Path(said.path).name
