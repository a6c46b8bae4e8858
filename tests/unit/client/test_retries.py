"""What is sent again, and what is not."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest
from mneme import errors
from mneme._core.retry import Attempts
from mneme._generated.services import RPCS
from mneme.messages import CreateApiKeyResponse, RecallResponse, RecordEventsResponse
from unit.client.refusing import refusing
from unit.client.scripted import ScriptedServer, failure

_RECALL = next(rpc for rpc in RPCS if rpc.method == "Recall")
_REPEATABLE = {rpc.method for rpc in RPCS if rpc.repeatable}


def fail_first(times: int, then: Any, *args: Any, **kwargs: Any) -> Any:
    left = [times]

    def answer(request: Any, context: Any) -> Any:
        if left[0]:
            left[0] -= 1
            failure(context, *args, **kwargs)
        return then

    return answer


def test_reads_and_writes_with_ids_may_be_repeated_and_other_writes_may_not() -> None:
    assert {"Recall", "GetSession", "WatchEvents", "RecordEvents", "CreateLesson"} <= _REPEATABLE
    assert {"StartSession", "EndSession", "UpdateLesson", "ArchiveLesson"} <= _REPEATABLE
    assert {"Backup", "DeleteTenant", "Forget"} <= _REPEATABLE
    assert not {"CreateTenant", "CreateApiKey", "ImportLessons"} & _REPEATABLE


def test_a_read_is_repeated_while_the_server_is_unavailable(
    connect: Any, served: ScriptedServer
) -> None:
    served.on("Recall", fail_first(2, RecallResponse(total_results=7), "UNAVAILABLE", "starting"))
    assert connect(retries=2).call("recall", "q").total_results == 7
    assert len(served.calls("Recall")) == 3


def test_repeated_writes_carry_the_same_ids(connect: Any, served: ScriptedServer) -> None:
    served.on("RecordEvents", fail_first(1, RecordEventsResponse(), "UNAVAILABLE", "restarting"))
    connect(retries=1).call("record_events", [{"session_id": "s", "event_type": "message"}])
    first, second = (call.request for call in served.calls("RecordEvents"))
    assert first == second
    assert first.events[0].id


def test_a_write_without_an_id_is_not_repeated_blindly(
    connect: Any, served: ScriptedServer
) -> None:
    served.on("CreateApiKey", fail_first(1, RecallResponse(), "UNAVAILABLE", "gone"))
    with pytest.raises(errors.UnavailableError):
        connect(retries=3).call("create_api_key", "tenant", "name")
    assert len(served.calls("CreateApiKey")) == 1


def test_without_retries_nothing_is_repeated(connect: Any, served: ScriptedServer) -> None:
    served.on("Recall", fail_first(1, RecallResponse(), "UNAVAILABLE", "starting"))
    with pytest.raises(errors.UnavailableError):
        connect(retries=0).call("recall", "q")
    assert len(served.calls("Recall")) == 1


@pytest.mark.parametrize("method", ["record_events", "import_lessons"])
def test_what_a_server_refuses_for_a_moment_is_sent_again_after_that_moment(
    method: str, connect: Any, served: ScriptedServer
) -> None:
    name = "".join(part.title() for part in method.split("_"))
    answer = RecordEventsResponse(recorded_count=1)
    refusals = fail_first(
        2, answer, "RESOURCE_EXHAUSTED", "full", reason="QUEUE_FULL", retry_after=0.05
    )
    served.on(name, refusals)
    connect(retries=2).call(method, [{}])
    assert len(served.calls(name)) == 3


def test_a_refusal_without_a_delay_is_final(connect: Any, served: ScriptedServer) -> None:
    served.on("Recall", fail_first(1, RecallResponse(), "RESOURCE_EXHAUSTED", "full"))
    with pytest.raises(errors.ResourceExhaustedError):
        connect(retries=3).call("recall", "q")
    assert len(served.calls("Recall")) == 1


def test_a_delay_beyond_the_deadline_is_not_waited_for(
    connect: Any, served: ScriptedServer
) -> None:
    served.on(
        "Recall",
        fail_first(1, RecallResponse(), "RESOURCE_EXHAUSTED", "full", retry_after=3600),
    )
    with pytest.raises(errors.ResourceExhaustedError) as caught:
        connect(retries=3).call("recall", "q", timeout=5)
    assert caught.value.retry_after == 3600


def test_all_attempts_share_one_deadline(connect: Any, served: ScriptedServer) -> None:
    served.on(
        "Recall",
        fail_first(1, RecallResponse(), "RESOURCE_EXHAUSTED", "full", retry_after=1),
    )
    connect(retries=1).call("recall", "q", timeout=10)
    first, second = (call.seconds_left for call in served.calls("Recall"))
    assert first is not None
    assert second is not None
    assert second <= first - 0.5


@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", "NOT_FOUND", "INTERNAL", "UNAUTHENTICATED"])
def test_an_error_that_another_try_will_not_change_is_raised_at_once(
    code: str, connect: Any, served: ScriptedServer
) -> None:
    served.on("Recall", fail_first(1, RecallResponse(), code, "no", retry_after=0.01))
    with pytest.raises(errors.MnemeError):
        connect(retries=3).call("recall", "q")
    assert len(served.calls("Recall")) == 1


def test_a_call_is_sent_again_as_often_as_the_client_says(
    connect: Any, served: ScriptedServer
) -> None:
    refusals = fail_first(
        7, RecallResponse(total_results=7), "UNAVAILABLE", "moving", retry_after=0.01
    )
    served.on("Recall", refusals)
    assert connect(retries=7).call("recall", "q").total_results == 7
    assert len(served.calls("Recall")) == 8


@pytest.mark.parametrize("method", ["Recall", "CreateApiKey"])
def test_a_server_that_says_when_it_is_ready_is_not_asked_before(method: str) -> None:
    attempts = Attempts(next(rpc for rpc in RPCS if rpc.method == method), 3, None)
    for seconds in (4, 60, 0.5):
        pause = attempts.pause_after(errors.UnavailableError("moving", retry_after=seconds))
        assert pause is not None
        assert seconds <= pause <= 1.2 * seconds
    assert attempts.pause_after(errors.UnavailableError("moving", retry_after=1)) is None


def test_a_server_that_cannot_be_reached_is_asked_less_and_less_often() -> None:
    attempts = Attempts(_RECALL, 8, None)
    pauses = [attempts.pause_after(errors.UnavailableError("gone")) or 0.0 for _ in range(8)]
    assert pauses[0] < 0.25
    assert all(earlier < later for earlier, later in pairwise(pauses[:3]))
    assert all(2 <= pause <= 2.4 for pause in pauses[3:])


@pytest.mark.parametrize(
    "error",
    [
        errors.UnavailableError("gone"),
        errors.UnavailableError("stopping", retry_after=1),
        errors.ResourceExhaustedError("too many calls", retry_after=1),
    ],
)
def test_a_call_that_may_be_repeated_uses_all_its_time(
    error: errors.MnemeError, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 27 <= _seconds_tried(error, 30, monkeypatch) <= 30
    # Without a limit it has an end, too.
    assert 27 <= _seconds_tried(error, None, monkeypatch) <= 30


def _seconds_tried(
    error: errors.MnemeError, timeout: float | None, monkeypatch: pytest.MonkeyPatch
) -> float:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    attempts = Attempts(_RECALL, None, timeout)
    while (pause := attempts.pause_after(error)) is not None:
        now[0] += pause
    return now[0] - 100.0


def test_a_restart_of_the_server_is_waited_out(connect: Any, served: ScriptedServer) -> None:
    """Each attempt of three would have been made in its first three seconds."""
    refusals = fail_first(8, RecallResponse(total_results=7), "UNAVAILABLE", "", retry_after=0.01)
    served.on("Recall", refusals)
    assert connect().call("recall", "q").total_results == 7


@pytest.mark.parametrize("retries", [None, 0])
def test_a_stream_that_was_refused_is_sent_again_whatever_the_call_is(
    connect: Any, retries: int | None
) -> None:
    """No server has looked at it, so that it is no second time."""
    with refusing(5, CreateApiKeyResponse(secret="mn_x")) as server:
        client = connect(server.address, retries=retries)
        assert client.call("create_api_key", "tenant", "name").secret == "mn_x"
        assert server.opened == 6


def test_a_call_has_the_client_s_timeout_unless_it_brings_its_own(
    connect: Any, served: ScriptedServer
) -> None:
    client = connect(timeout=100)
    client.call("recall", "q")
    client.call("recall", "q", timeout=7)
    connect(timeout=None).call("recall", "q")
    first, second, third = (call.seconds_left for call in served.calls("Recall"))
    assert first is not None
    # The wire rounds a deadline up, by some percent.
    assert 50 < first < 110
    assert second is not None
    assert second < 8
    # gRPC reports a deadline that is not set as very far away.
    assert third is None or third > 10**6
