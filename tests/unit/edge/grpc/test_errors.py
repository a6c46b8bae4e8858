"""Errors on the wire: code, reason, details, and nothing about the inside of the server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import grpc
import pytest
from mneme.v1 import errors_pb2, event_service_pb2
from mneme_server.common import errors
from mneme_server.common.errors import MnemeError, Reason
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import CODES, INTERNAL_REASON, InvalidRequest, Violation
from mneme_server.engine.embedding.port import EmbeddingError, ModelUnavailable
from structlog.testing import capture_logs
from support.sources import Given
from unit.edge.grpc.edge import Client, Edge

GET = "EventService/GetSession"
REQUEST = event_service_pb2.GetSessionRequest(session_id="s")
StatusCode = grpc.StatusCode

TABLE: list[tuple[MnemeError, StatusCode, str, bool]] = [
    (errors.InvalidArgument("m"), StatusCode.INVALID_ARGUMENT, "INVALID_PARAMETER", False),
    (errors.Unauthenticated("m"), StatusCode.UNAUTHENTICATED, "API_KEY_INVALID", False),
    (errors.PermissionDenied("m"), StatusCode.PERMISSION_DENIED, "SCOPE_MISSING", False),
    (errors.NotFound("m"), StatusCode.NOT_FOUND, "NOT_FOUND", False),
    (errors.AlreadyExists("m"), StatusCode.ALREADY_EXISTS, "ALREADY_EXISTS", False),
    (errors.FailedPrecondition("m"), StatusCode.FAILED_PRECONDITION, "CONSTRAINT_VIOLATION", False),
    (errors.Aborted("m"), StatusCode.ABORTED, "ETAG_MISMATCH", False),
    (errors.ResourceExhausted("m"), StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED", True),
    (errors.Unavailable("m"), StatusCode.UNAVAILABLE, "TRANSACTION_FAILED", True),
    (errors.DataLoss("m"), StatusCode.DATA_LOSS, "DATA_DAMAGED", False),
    (errors.WorkFailed("m"), StatusCode.INTERNAL, "WORK_FAILED", False),
]


def test_every_domain_error_has_a_code() -> None:
    classes = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, MnemeError) and value is not MnemeError
    }
    assert classes == set(CODES) == {type(error) for error, *_ in TABLE}


def test_every_reason_of_the_domain_is_one_of_the_api() -> None:
    listed = {name.removeprefix("ERROR_REASON_") for name, _ in errors_pb2.ErrorReason.items()}
    assert {reason.name for reason in Reason} <= listed


def test_every_reason_of_the_domain_is_raised_somewhere() -> None:
    home = Path(errors.__file__)
    code = "\n".join(file.read_text() for file in home.parents[2].rglob("*.py") if file != home)
    by_default = {cls.default_reason for cls in CODES}
    raised = {Reason[name] for name in re.findall(r"\bReason\.([A-Z_]+)\b", code)}
    assert set(Reason) - by_default == raised - by_default


def test_the_page_of_errors_says_of_reasons_that_no_server_sends_that_they_are_reserved() -> None:
    page = (Path(__file__).parents[4] / "docs/errors.md").read_text()
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| [^|]* \| (.*) \|$", page, re.MULTILINE))
    sent = {reason.name for reason in Reason} | {INTERNAL_REASON}
    listed = {name.removeprefix("ERROR_REASON_") for name, _ in errors_pb2.ErrorReason.items()}
    assert set(rows) == listed - {"UNSPECIFIED"}
    reserved = {name for name, meaning in rows.items() if meaning.startswith("Reserved")}
    assert reserved == set(rows) - sent


@pytest.mark.parametrize(("error", "code", "reason", "has_retry"), TABLE)
def test_a_domain_error_becomes_its_status_with_details(
    edge: Edge,
    client: Client,
    error: MnemeError,
    code: StatusCode,
    reason: str,
    has_retry: bool,
) -> None:
    edge.raises(GET, error)
    refusal = client.refusal(GET, REQUEST)
    assert (refusal.code, refusal.message) == (code, "m")
    assert (refusal.info.domain, refusal.reason) == ("mneme.v1", reason)
    assert refusal.has_retry is has_retry
    assert refusal.fields == []


def test_reason_field_metadata_and_delay_travel_with_the_error(edge: Edge, client: Client) -> None:
    edge.raises(
        GET,
        errors.ResourceExhausted(
            "later",
            reason=Reason.QUEUE_FULL,
            field="events[3].text",
            metadata={"recorded": "17"},
            retry_after_s=2.5,
        ),
    )
    refusal = client.refusal(GET, REQUEST)
    assert refusal.reason == "QUEUE_FULL"
    assert refusal.info.metadata["recorded"] == "17"
    assert refusal.retry.retry_delay.ToMilliseconds() == 2500
    (violation,) = refusal.bad_request.field_violations
    assert (violation.field, violation.description, violation.reason) == (
        "events[3].text",
        "later",
        "QUEUE_FULL",
    )


def test_the_callers_request_id_comes_back_with_the_error(edge: Edge) -> None:
    edge.raises(GET, errors.NotFound("m"))
    client = edge.client(edge.key().secret, x_request_id="trace-7")
    assert client.refusal(GET, REQUEST).info.metadata["request_id"] == "trace-7"


def test_all_violations_are_listed_and_the_first_gives_the_reason(
    edge: Edge, client: Client
) -> None:
    edge.raises(
        GET,
        InvalidRequest(
            [
                Violation("a", "is required", Reason.MISSING_REQUIRED_FIELD),
                Violation("b[2]", "is too long", Reason.OUT_OF_RANGE),
            ]
        ),
    )
    refusal = client.refusal(GET, REQUEST)
    assert refusal.message == "a: is required; b[2]: is too long"
    assert refusal.reason == "MISSING_REQUIRED_FIELD"
    assert refusal.fields == ["a", "b[2]"]


@pytest.mark.parametrize("word", ["plain ", "größer als 100 % ", "記憶😀 "])
@pytest.mark.parametrize(("count", "words"), [(1_000, 3), (5, 60), (2, 3_000), (1, 20_000)])
def test_an_error_travels_however_much_there_is_to_say(
    edge: Edge, client: Client, count: int, words: int, word: str
) -> None:
    violations = [
        Violation(f"events[{n}].text", word * words, Reason.OUT_OF_RANGE) for n in range(count)
    ]
    edge.raises(GET, InvalidRequest(violations))
    for _ in range(
        20
    ):  # Between the soft limit of trailers and the hard one only some are dropped.
        refusal = client.refusal(GET, REQUEST)
        assert refusal.code is StatusCode.INVALID_ARGUMENT
    assert refusal.fields[0] == "events[0].text"
    named = len(refusal.fields)
    if named < count:
        assert refusal.message.endswith((f"; and {count - named} more", "..."))
    edge.raises(GET, errors.NotFound(word * words))
    assert client.refusal(GET, REQUEST).code is StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (
            EmbeddingError("busy", retryable=True, retry_after_s=3),
            StatusCode.UNAVAILABLE,
            "EMBEDDING_FAILED",
        ),
        (EmbeddingError("wrong answer"), StatusCode.INTERNAL, "EMBEDDING_FAILED"),
        (ModelUnavailable("pull it"), StatusCode.FAILED_PRECONDITION, "MODEL_NOT_LOADED"),
    ],
)
def test_an_embedding_error_says_whether_a_retry_helps(
    edge: Edge, client: Client, error: EmbeddingError, code: StatusCode, reason: str
) -> None:
    edge.raises(GET, error)
    refusal = client.refusal(GET, REQUEST)
    assert (refusal.code, refusal.message, refusal.reason) == (code, error.message, reason)
    assert refusal.has_retry is (code is StatusCode.UNAVAILABLE)


class PanicException(BaseException):
    """As libraries written in Rust raise it."""


@pytest.mark.parametrize("bug", [KeyError, PanicException])
@pytest.mark.parametrize("path", [GET, "EventService/WatchEvents", "EventService/StreamEvents"])
def test_a_bug_leaves_as_an_id_that_the_log_carries_with_the_traceback(
    edge: Edge, client: Client, path: str, bug: type[BaseException]
) -> None:
    edge.raises(path, bug("a secret of the inside"))
    with capture_logs() as logs:
        refusal = client.refusal(path, REQUEST if path == GET else None)
    assert (refusal.code, refusal.reason) == (StatusCode.INTERNAL, "INTERNAL_ERROR")
    error_id = refusal.info.metadata["error_id"]
    assert len(error_id) == 16
    assert error_id in refusal.message
    assert "secret" not in str(refusal.info) + refusal.message
    (logged,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert logged["error_id"] == error_id
    assert logged["exc_info"]


def test_an_error_in_the_middle_of_a_stream_comes_after_the_answers_before_it(
    edge: Edge, client: Client
) -> None:
    class TwoThenFail(Given):
        def take(self) -> Any:
            if messages := super().take():
                return messages
            raise errors.Unavailable("gone", metadata={"after": "2"})

    def two_then_fail(request: Any, call: Call) -> Any:
        return TwoThenFail(
            event_service_pb2.WatchEventsResponse(cursor="1"),
            event_service_pb2.WatchEventsResponse(cursor="2"),
        )

    edge.on("EventService/WatchEvents", two_then_fail)
    seen: list[str] = []
    stream = client.open("EventService/WatchEvents")
    with pytest.raises(grpc.RpcError) as failed:
        seen.extend(answer.cursor for answer in stream)
    assert failed.value.code() is StatusCode.UNAVAILABLE
    assert (seen, stream.code()) == (["1", "2"], StatusCode.UNAVAILABLE)


def test_where_the_embedding_backend_is_stays_in_the_log(edge: Edge, client: Client) -> None:
    error = EmbeddingError("no answer", detail="at http://10.0.0.7:11434", retryable=True)
    edge.raises(GET, error)
    with capture_logs() as logged:
        refusal = client.refusal(GET, REQUEST)
    assert refusal.message == "no answer"
    assert "10.0.0.7" not in str(refusal.info)
    (warning,) = [line for line in logged if line["log_level"] == "warning"]
    assert warning["error"] == "no answer (at http://10.0.0.7:11434)"
    assert warning["request_id"] == refusal.info.metadata["request_id"]


def test_a_call_that_finds_no_memory_is_told_to_ask_for_less(edge: Edge, client: Client) -> None:
    edge.raises("EventService/GetSession", MemoryError())
    request = event_service_pb2.GetSessionRequest(session_id="s")
    refusal = client.refusal("EventService/GetSession", request)
    assert (refusal.code, refusal.reason) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED",
    )  # fmt: skip
    assert refusal.has_retry
