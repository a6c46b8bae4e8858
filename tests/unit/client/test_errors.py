"""A failed call raises the error that its status describes."""

from __future__ import annotations

import asyncio
import pickle
import socket
from typing import Any

import grpc
import pytest
from mneme import AsyncMnemeClient, MnemeClient, errors
from mneme.errors import BY_CODE, FieldViolation, MnemeError
from unit.client.scripted import EitherClient, ScriptedServer, failure


def raised(client: EitherClient, served: ScriptedServer, *args: Any, **kwargs: Any) -> MnemeError:
    served.on("Recall", lambda request, context: failure(context, *args, **kwargs))
    with pytest.raises(MnemeError) as caught:
        client.call("recall", "q")
    return caught.value


@pytest.mark.parametrize(
    "code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]
)
def test_every_status_code_has_its_own_class(
    code: grpc.StatusCode, connect: Any, served: ScriptedServer
) -> None:
    error = raised(connect(retries=0), served, code.name, "no")
    assert type(error) is BY_CODE[code]
    assert error.code is code


def test_an_error_carries_reason_fields_metadata_and_delay(
    connect: Any, served: ScriptedServer
) -> None:
    error = raised(
        connect(retries=0),
        served,
        "INVALID_ARGUMENT",
        "2 fields break their rules",
        reason="INVALID_PARAMETER",
        violations=[
            ("events[3].text", "at most 65536 characters", "OUT_OF_RANGE"),
            ("events[4].id", "no control characters", ""),
        ],
        metadata={"recorded": "12"},
        retry_after=1.5,
    )
    assert isinstance(error, errors.InvalidArgumentError)
    assert error.reason == "INVALID_PARAMETER"
    assert error.field == "events[3].text"
    assert error.violations[0] == FieldViolation(
        "events[3].text", "at most 65536 characters", "OUT_OF_RANGE"
    )
    assert len(error.violations) == 2
    assert error.metadata == {"recorded": "12"}
    assert error.retry_after == 1.5


def test_an_error_reads_as_a_sentence_with_its_fields_and_reason(
    client: EitherClient, served: ScriptedServer
) -> None:
    error = raised(
        client,
        served,
        "INVALID_ARGUMENT",
        "the request is wrong",
        reason="OUT_OF_RANGE",
        violations=[("limit", "must be at most 100", "OUT_OF_RANGE")],
    )
    assert str(error) == "the request is wrong; limit: must be at most 100 [OUT_OF_RANGE]"


def test_a_bug_of_the_server_carries_the_id_under_which_its_log_tells_more(
    client: EitherClient, served: ScriptedServer
) -> None:
    error = raised(
        client,
        served,
        "INTERNAL",
        "a bug",
        reason="INTERNAL_ERROR",
        metadata={"error_id": "abc123"},
    )
    assert isinstance(error, errors.InternalError)
    assert error.error_id == "abc123"


def test_without_a_server_the_error_names_the_address(connect: Any, served: ScriptedServer) -> None:
    served.stop()
    with pytest.raises(
        errors.UnavailableError, match=f"no Mneme server answers at {served.address}"
    ):
        connect(retries=0).call("recall", "q")


@pytest.mark.parametrize("timeout", [0.001, 0.05, 0.3])
def test_without_a_server_a_short_timeout_tells_the_same(
    connect: Any, served: ScriptedServer, timeout: float
) -> None:
    served.stop()
    client = connect(timeout=timeout)  # Repeated until the time is up.
    with pytest.raises(
        errors.UnavailableError, match=f"no Mneme server answers at {served.address}"
    ):
        client.call("recall", "q")


def test_something_that_accepts_and_says_nothing_is_no_server_either(connect: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with (
            MnemeClient(address, timeout=0.2) as client,
            pytest.raises(errors.UnavailableError, match=f"no Mneme server answers at {address}"),
        ):
            client.recall("q")


def test_a_closed_client_says_that_it_is_closed(served: ScriptedServer) -> None:
    client = MnemeClient(served.address)
    client.close()
    client.close()
    with pytest.raises(errors.ClosedError, match="closed; make a new one"):
        client.recall("q")

    async def use_after_closing() -> None:
        other = AsyncMnemeClient(served.address)
        await other.recall("q")
        await other.aclose()
        await other.aclose()
        with pytest.raises(errors.ClosedError, match="closed; make a new one"):
            await other.recall("q")

    asyncio.run(use_after_closing())


def test_a_call_that_takes_too_long_ends_at_its_timeout(
    client: EitherClient, served: ScriptedServer
) -> None:
    def wait(request: Any, context: Any) -> None:
        served.ended.wait(10)

    served.on("Recall", wait)
    with pytest.raises(errors.DeadlineExceededError) as caught:
        client.call("recall", "q", timeout=1)  # Connecting is part of it.
    served.ended.set()
    assert str(caught.value) == "the time for the call is over [DEADLINE_EXCEEDED]"


def test_a_request_that_is_too_large_for_a_server_is_told_with_its_size(
    client: EitherClient,
) -> None:
    with pytest.raises(errors.ResourceExhaustedError) as caught:
        client.call("recall", "q" * 5_000_000)
    assert caught.value.message == "the request takes 5000005 bytes, at most 4194304 are allowed"


def test_an_answer_that_is_too_large_for_a_client_is_told_with_its_size(
    client: EitherClient, served: ScriptedServer
) -> None:
    said = "Stream removed (CLIENT: Received message larger than max (70000010 vs. 67108864))"
    error = raised(client, served, "RESOURCE_EXHAUSTED", said)
    assert error.message == "the answer takes 70000010 bytes, at most 67108864 are allowed"


def test_an_unknown_method_of_an_older_server_is_an_error_of_its_own(
    client: EitherClient, served: ScriptedServer
) -> None:
    assert isinstance(raised(client, served, "UNIMPLEMENTED", "?"), errors.UnimplementedError)


def test_status_details_that_cannot_be_read_leave_the_code_and_the_message(
    client: EitherClient, served: ScriptedServer
) -> None:
    def broken(request: Any, context: grpc.ServicerContext) -> None:
        context.set_trailing_metadata((("grpc-status-details-bin", b"\xff\xff"),))
        context.abort(grpc.StatusCode.NOT_FOUND, "no such lesson")

    served.on("Recall", broken)
    with pytest.raises(errors.NotFoundError, match="no such lesson") as caught:
        client.call("recall", "q")
    assert caught.value.reason == ""


def test_an_error_survives_the_way_to_another_process() -> None:
    error = errors.NotFoundError("gone", reason="NOT_FOUND", metadata={"a": "b"}, retry_after=2)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is errors.NotFoundError
    assert (str(copy), copy.reason, copy.metadata, copy.retry_after) == (
        str(error),
        "NOT_FOUND",
        {"a": "b"},
        2,
    )


def test_grpc_s_own_error_stays_reachable_as_the_cause(
    client: EitherClient, served: ScriptedServer
) -> None:
    assert isinstance(raised(client, served, "NOT_FOUND", "no").__cause__, grpc.RpcError)
