import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.measure import Round, Rounds, flood, paced, percentile, time_calls

numbers = st.lists(st.floats(0, 1e6), min_size=1)


@given(numbers, st.floats(0, 100), st.floats(0, 100))
def test_a_higher_percentile_is_never_smaller(
    values: list[float], one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert percentile(values, low) <= percentile(values, high) * (1 + 1e-12) + 1e-12


@given(numbers)
def test_the_ends_are_the_least_and_the_greatest(values: list[float]) -> None:
    assert percentile(values, 0) == min(values)
    assert percentile(values, 100) == max(values)


def test_a_percentile_lies_between_its_neighbours() -> None:
    assert percentile([4, 1, 3, 2], 50) == 2.5
    assert percentile([10, 20], 95) == pytest.approx(19.5)


def test_no_values_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_rounds_report_the_median_round() -> None:
    rounds = Rounds([Round([n / 1000], 1.0) for n in (1, 50, 3)])
    assert rounds.p50_ms == pytest.approx(3)
    assert rounds.figures()["p95_ms_worst_round"] == pytest.approx(50)
    assert rounds.figures()["calls"] == 3


@pytest.mark.parametrize("in_flight", [1, 4])
def test_every_input_is_called_once(in_flight: int) -> None:
    called: list[int] = []
    round_ = time_calls(called.append, range(50), in_flight)
    assert sorted(called) == list(range(50))
    assert len(round_.times_s) == 50


def test_calls_are_in_flight_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=10)
    time_calls(lambda _: together.wait(), range(3), in_flight=3)


@pytest.mark.parametrize("in_flight", [1, 4])
def test_a_failing_call_ends_the_round(in_flight: int) -> None:
    def call(number: int) -> None:
        if number == 3:
            raise LookupError("no")

    with pytest.raises(LookupError):
        time_calls(call, range(50), in_flight)


class _Answered:
    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def result(self) -> object:
        if self._error:
            raise self._error
        return None

    def add_done_callback(self, callback):  # type: ignore[no-untyped-def]
        callback(self)


def test_a_flood_sends_the_calls_it_was_asked_for() -> None:
    sent = []

    def send() -> _Answered:
        sent.append(1)
        return _Answered()

    assert flood(send, 20, in_flight=4) > 0
    assert len(sent) == 20


def test_a_flood_with_a_failed_call_fails() -> None:
    answers = iter([_Answered(), _Answered(LookupError("no")), _Answered()])
    with pytest.raises(LookupError):
        flood(lambda: next(answers), 3, in_flight=1)


def test_calls_at_a_pace_are_made_once_each_and_no_faster() -> None:
    called: list[int] = []
    round_ = paced(called.append, range(10), 200, in_flight=2)
    assert sorted(called) == list(range(10))
    assert round_.seconds >= 9 / 200


def test_who_waits_for_others_at_a_pace_is_late_by_that() -> None:
    release = threading.Event()

    def call(number: int) -> None:
        if number == 0:
            threading.Timer(0.05, release.set).start()
            assert release.wait(10)

    times_s = paced(call, range(3), 1000, in_flight=1).times_s
    assert min(times_s) >= 0.04


def test_a_failing_call_at_a_pace_ends_the_round() -> None:
    called: list[int] = []

    def call(number: int) -> None:
        called.append(number)
        raise LookupError("no")

    with pytest.raises(LookupError):
        paced(call, range(1_000), 200, in_flight=1)
    assert len(called) < 1_000
