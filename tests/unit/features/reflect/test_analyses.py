from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from mneme_server.common import deadline
from mneme_server.common.errors import InvalidArgument, ResourceExhausted
from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.history import HistoryFilter
from mneme_server.features.reflect.analyses import AT_ONCE, Analyses
from mneme_server.features.reflect.model import (
    Analysis,
    BucketSpan,
    CostAnalysisParams,
    ErrorPatternsParams,
    Params,
    PerformanceTrendsParams,
    SessionComparisonParams,
    ToolSequencesParams,
)
from unit.features.reflect.making import random_calls
from unit.features.reflect.record import Record

EVERY: tuple[Params, ...] = (
    ErrorPatternsParams(),
    ToolSequencesParams(),
    CostAnalysisParams(),
    PerformanceTrendsParams(),
    SessionComparisonParams(),
)


class Tenants:
    """One tenant; reading it can be held up."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.opened = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.go_on.set()

    def get(self, _repository: type) -> Record:
        return self.record

    @contextmanager
    def open(self, tenant_id: str) -> Iterator[Any]:
        yield self

    @contextmanager
    def read(self) -> Iterator[Any]:
        self.opened.release()
        self.go_on.wait(30)
        yield self


@pytest.mark.parametrize("params", EVERY)
def test_every_analysis_answers_an_empty_record(params: Params) -> None:
    found = Analyses(Tenants(Record())).run("t", params, HistoryFilter(), 10)
    assert (found.coverage.sessions, found.coverage.events, found.insights) == (0, 0, ())
    assert (found.coverage.first_us, found.coverage.truncated) == (None, False)


@pytest.mark.parametrize("params", EVERY)
def test_the_answer_says_what_was_looked_at(params: Params) -> None:
    record = random_calls(1, sessions=12)
    found = Analyses(Tenants(record)).run("t", params, HistoryFilter(), 10)
    assert (found.coverage.sessions, found.coverage.events) == (12, len(record.events))
    assert found.coverage.first_us == min(event.time for event in record.events)
    assert found.coverage.last_us == max(event.time for event in record.events)


def test_the_parameters_say_which_analysis_runs() -> None:
    asked = [Analyses(Tenants(Record())).run("t", params, HistoryFilter(), 10) for params in EVERY]
    assert [report.analysis for report in asked] == list(Analysis)


def test_a_bucket_that_makes_too_many_spans_is_refused_by_its_name() -> None:
    record = Record()
    for at in (0.0, 1e9):
        record.call("s", "pay", at)
    with pytest.raises(InvalidArgument, match="at most 1,000") as refused:
        Analyses(Tenants(record)).run(
            "t", PerformanceTrendsParams(BucketSpan.HOUR), HistoryFilter(), 10
        )
    assert refused.value.field == "bucket"


def test_more_analyses_than_may_run_at_once_are_told_when_to_come_back() -> None:
    tenants = Tenants(Record())
    tenants.go_on.clear()
    analyses = Analyses(tenants, patience_s=0.01)

    def run() -> None:
        analyses.run("t", CostAnalysisParams(), HistoryFilter(), 10)

    running = [threading.Thread(target=run) for _ in range(AT_ONCE)]
    for thread in running:
        thread.start()
        assert tenants.opened.acquire(timeout=30)
    with pytest.raises(ResourceExhausted) as refused:
        run()
    assert refused.value.retry_after_s
    tenants.go_on.set()
    for thread in running:
        thread.join(30)
    run()  # And the place is free again.


def test_an_analysis_that_waits_for_those_of_another_tenant_is_not_refused() -> None:
    tenants = Tenants(Record())
    tenants.go_on.clear()
    analyses, answered = Analyses(tenants, patience_s=0.01), threading.Event()

    def run(tenant: str) -> None:
        analyses.run(tenant, CostAnalysisParams(), HistoryFilter(), 10)

    def run_calm() -> None:
        run("calm")
        answered.set()

    running = [threading.Thread(target=run, args=["busy"]) for _ in range(AT_ONCE)]
    for thread in running:
        thread.start()
        assert tenants.opened.acquire(timeout=30)
    running.append(threading.Thread(target=run_calm))
    running[-1].start()
    with pytest.raises(ResourceExhausted):
        run("busy")
    assert not answered.is_set()
    tenants.go_on.set()
    assert answered.wait(30)
    for thread in running:
        thread.join(30)


def test_an_analysis_ends_when_nobody_waits_for_it_any_more() -> None:
    tenants, looked = Tenants(random_calls(1, sessions=12)), list[int]()

    def left() -> float:
        looked.append(1)
        return 60.0 if len(looked) < 3 else 0.0

    def run() -> None:
        deadline.enter(left)
        Analyses(tenants).run("t", CostAnalysisParams(), HistoryFilter(), 10)

    with pytest.raises(deadline.Abandoned):
        contextvars.Context().run(run)


def test_a_session_without_events_counts_where_it_started_in_range() -> None:
    record = Record()
    record.session("silent", at=10)
    record.session("before", at=1)
    record.add("spoke", EventType.MESSAGE, 12, text="hello")
    filter_ = HistoryFilter(start_us=5_000_000, end_us=20_000_000)
    found = Analyses(Tenants(record)).run("t", CostAnalysisParams(), filter_, 10)
    assert (found.coverage.sessions, found.coverage.events) == (2, 1)


@pytest.mark.parametrize("params", EVERY)
def test_times_at_the_ends_of_the_calendar_are_no_trouble(params: Params) -> None:
    record = Record()
    for at in (-62_135_596_800.0, 0.0, 253_402_300_799.0):  # The years 1 to 9999.
        record.call(f"s{at}", "pay", at, error="too late")
        record.add(f"s{at}", EventType.LLM_RESPONSE, at, cost=1.0, duration=5, model="m")
    found = Analyses(Tenants(record)).run("t", params, HistoryFilter(), 10)
    assert found.coverage.sessions == 3
