"""The examples of docs/api, sent to a real server in their order."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from support.descriptors import services
from support.examples import EXAMPLES, needed
from support.moments import timeless
from support.operations import in_the_end
from support.server import ADMIN_KEY, REPOSITORY, local_server

METHODS: dict[str, MethodDescriptor] = {
    f"{service.name}.{method.name}": method for service in services() for method in service.methods
}
EMPTY = {
    "AdminService.DeleteTenant",
    "AlertService.ListAlertHistory",  # It takes more than the examples to trigger a rule.
    "LearningService.DeleteLearningSession",
}
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
ANSWERS = REPOSITORY / "tests/fixtures/api_answers.json"
# What differs from run to run, or between machines, by its field.
_OF_THE_RUN = frozenset(
    {"disk_bytes", "path", "prefix", "replaced_path", "replaced_size_bytes", "salt", "secret"}
    | {"hashes", "json", "leaf_hash", "note", "introduction", "root_hash", "verifier_key"}
    | {"folder_bytes", "memory_bytes", "vector_bytes", "schema_version"}
    | {"leaf_index", "new_size", "newest_leaf_index", "size"}
    | {"model_bytes", "prediction_id", "session_duration", "size_bytes", "training_time", "version"}
)
# What may be there or not: the embedder works on while the calls are made, and they may take time.
_OF_THE_MOMENT = frozenset({"duration_seconds", "pending_count", "vector_count"})
_MADE = re.compile(r"\b(?:[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{32,64})\b")


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
    key = [("authorization", f"Bearer {ADMIN_KEY}")]
    if not method.server_streaming:
        return in_the_end(lambda: call(given, metadata=key, timeout=60))
    said = call(given, metadata=key, timeout=60)
    first: Message = next(said)
    said.cancel()
    return first


def test_every_rpc_has_an_example() -> None:
    missing, unknown = set(METHODS) - set(EXAMPLES), set(EXAMPLES) - set(METHODS)
    assert not missing, f"write an example of {sorted(missing)} into scripts/api_examples.json"
    assert not unknown, f"scripts/api_examples.json has examples of no RPC: {sorted(unknown)}"


def masked(value: Any, field: str = "") -> Any:
    """An answer as JSON, without what differs from run to run."""
    if field in _OF_THE_RUN or isinstance(value, float):
        return f"({field})"
    if isinstance(value, dict):
        if field in ("operation", "operations"):  # It goes on meanwhile.
            return {name: value[name] for name in ("id", "kind", "tenant_id")}
        kept = {name: inner for name, inner in value.items() if name not in _OF_THE_MOMENT}
        return {name: masked(inner, name) for name, inner in kept.items()}
    if isinstance(value, list):
        return [masked(inner, field) for inner in value]
    if isinstance(value, str):
        return _MADE.sub("(made)", timeless(value))
    return value


def test_the_examples_run_in_their_order_and_are_answered_as_before(channel: grpc.Channel) -> None:
    """The answers are kept in tests/fixtures/api_answers.json.

    An answer that is meant to change is written anew with MNEME_TEST_WRITE_ANSWERS=1.
    """
    for name, request in needed().items():
        answer(channel, name, [request])
    chosen: dict[str, str] = {}
    answers: dict[str, Any] = {}
    for name, example in EXAMPLES.items():
        text = json.dumps(example if isinstance(example, list) else [example])
        for placeholder, value in chosen.items():
            text = text.replace(placeholder, value)
        kind = GetMessageClass(METHODS[name].input_type)
        said: Any = answer(channel, name, [ParseDict(one, kind()) for one in json.loads(text)])
        assert name in EMPTY or said.ByteSize(), name
        assert name not in FOUND or getattr(said, FOUND[name]), name
        answers[name] = masked(MessageToDict(said, preserving_proto_field_name=True))
        if name == "AdminService.CreateApiKey":
            chosen["API_KEY_ID"] = said.api_key.id
        elif name == "AdminService.Backup":
            chosen["BACKUP"] = Path(said.path).name
        elif name == "RecallService.RecallWithCertificate":
            chosen["CERTIFICATE_ID"] = said.certificate.id
            chosen["CERTIFICATE_JSON"] = json.dumps(said.certificate.json)[1:-1]
    if os.environ.get("MNEME_TEST_WRITE_ANSWERS"):
        ANSWERS.write_text(json.dumps(answers, indent=2, ensure_ascii=False, sort_keys=True) + "\n")
    kept = json.loads(ANSWERS.read_text())
    again = "if it is meant: MNEME_TEST_WRITE_ANSWERS=1 writes tests/fixtures/api_answers.json anew"
    assert set(kept) == set(answers), again
    for name, said in answers.items():
        was, now = (
            json.dumps(one, indent=1, sort_keys=True).splitlines() for one in (kept[name], said)
        )
        changed = "\n".join(unified_diff(was, now, "kept", "now", lineterm=""))
        assert not changed, f"{name} is answered in another way; {again}\n{changed}"
