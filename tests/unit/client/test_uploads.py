"""When an upload that broke off goes on, and when it is given up."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from grpc import StatusCode
from mneme import errors
from mneme._core import resuming, time_left
from mneme._core.uploading import Unacknowledged, unacknowledged
from mneme.v1.event_service_pb2 import StreamEventsRequest, StreamEventsResponse

GONE = errors.UnavailableError("the server is gone", code=StatusCode.UNAVAILABLE)


class Clock:
    now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (resuming, time_left):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


def upload_of_one(timeout: float | None = None) -> Unacknowledged:
    upload = unacknowledged(retries=3, limit_s=30.0, timeout=timeout)
    upload.keep(StreamEventsRequest())
    return upload


def test_one_that_had_nothing_to_send_for_long_goes_on_all_the_same(clock: Clock) -> None:
    upload = upload_of_one()
    upload.acknowledge(StreamEventsResponse(acknowledged_count=1, recorded_count=1))
    clock.now += 3_600
    assert upload.pause_after(GONE) is not None


def test_one_that_is_acknowledged_nothing_is_given_up_after_the_time_for_a_call(
    clock: Clock,
) -> None:
    upload = upload_of_one()
    assert upload.pause_after(GONE) is not None
    clock.now += 20
    assert upload.pause_after(GONE) is not None
    clock.now += 20
    assert upload.pause_after(GONE) is None


def test_what_is_acknowledged_begins_the_patience_anew(clock: Clock) -> None:
    upload = upload_of_one()
    assert upload.pause_after(GONE) is not None
    clock.now += 29
    upload.acknowledge(StreamEventsResponse(acknowledged_count=1, recorded_count=1))
    clock.now += 29
    assert upload.pause_after(GONE) is not None


def test_no_pause_outlasts_the_deadline(clock: Clock) -> None:
    upload = upload_of_one(timeout=10)
    clock.now += 9.9
    assert upload.pause_after(GONE) is None
