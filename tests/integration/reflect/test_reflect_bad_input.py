"""What ReflectService refuses, and how."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from mneme.v1 import reflect_service_pb2 as pb
from support.api import Api, refused
from support.making import at
from support.reflecting import COMPARISON, COST, ERRORS, SEQUENCES, TRENDS, reflect, session

_BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"analysis": 0}, "analysis", "MISSING_REQUIRED_FIELD"),
    ({"analysis": 99}, "analysis", "INVALID_PARAMETER"),
    ({"analysis": COST, "limit": 101}, "limit", "OUT_OF_RANGE"),
    ({"analysis": COST, "limit": -1}, "limit", "OUT_OF_RANGE"),
    ({"analysis": COST, "agent_id": "x" * 201}, "agent_id", "OUT_OF_RANGE"),
    ({"analysis": COST, "project": "a\nb"}, "project", "INVALID_PARAMETER"),
    ({"analysis": COST, "user_id": "a\0b"}, "user_id", "INVALID_PARAMETER"),
    ({"analysis": COST, "tags": [""]}, "tags[0]", "OUT_OF_RANGE"),
    ({"analysis": COST, "tags": ["x"] * 65}, "tags", "OUT_OF_RANGE"),
    ({"analysis": COST, "start_time": at(2), "end_time": at(1)}, "end_time", "INVALID_FILTER"),
    ({"analysis": ERRORS, "params": {"window": 6}}, "error_patterns.window", "OUT_OF_RANGE"),
    ({"analysis": ERRORS, "params": {"window": 0}}, "error_patterns.window", "OUT_OF_RANGE"),
    ({"analysis": ERRORS, "params": {"min_count": 0}}, "error_patterns.min_count", "OUT_OF_RANGE"),
    ({"analysis": ERRORS, "params": {"examples": 11}}, "error_patterns.examples", "OUT_OF_RANGE"),
    ({"analysis": ERRORS, "params": {"tool": "x" * 201}}, "error_patterns.tool", "OUT_OF_RANGE"),
    ({"analysis": ERRORS, "params": {"baseline": 9}}, "error_patterns.baseline",
     "INVALID_PARAMETER"),
    ({"analysis": SEQUENCES, "params": {"max_length": 7}}, "tool_sequences.max_length",
     "OUT_OF_RANGE"),
    ({"analysis": SEQUENCES, "params": {"min_length": 4, "max_length": 3}},
     "tool_sequences.max_length", "OUT_OF_RANGE"),
    ({"analysis": SEQUENCES, "params": {"min_support": 1}}, "tool_sequences.min_support",
     "OUT_OF_RANGE"),
    ({"analysis": COST, "params": {"bucket": 9}}, "cost_analysis.bucket", "INVALID_PARAMETER"),
    ({"analysis": COST, "params": {"model": "x" * 201}}, "cost_analysis.model", "OUT_OF_RANGE"),
    ({"analysis": TRENDS, "params": {"bucket": -1}}, "performance_trends.bucket",
     "INVALID_PARAMETER"),
    ({"analysis": COMPARISON, "params": {"recent_days": 0}}, "session_comparison.recent_days",
     "OUT_OF_RANGE"),
    ({"analysis": COMPARISON, "params": {"recent_days": float("nan")}},
     "session_comparison.recent_days", "OUT_OF_RANGE"),
    ({"analysis": COMPARISON, "params": {"recent_sessions": 0}},
     "session_comparison.recent_sessions", "OUT_OF_RANGE"),
    ({"analysis": COST, "error_patterns": pb.ErrorPatternsParams(window=2)}, "analysis",
     "INVALID_PARAMETER"),
    ({"analysis": ERRORS, "session_comparison": pb.SessionComparisonParams()}, "analysis",
     "INVALID_PARAMETER"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "field", "reason"), _BAD, ids=[f"{field}-{reason}" for _, field, reason in _BAD]
)
def test_bad_input_is_refused_by_the_field_at_fault(
    fields: dict[str, Any], field: str, reason: str, api: Api
) -> None:
    with refused() as failure:
        reflect(api, **fields)
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert (failure.field, failure.reason) == (field, reason)


def test_an_analysis_that_is_left_out_is_answered_with_what_is_required(api: Api) -> None:
    with refused() as failure:
        api.reflect.Reflect(pb.ReflectRequest())
    assert failure.fields["analysis"]


def test_a_bucket_that_cuts_the_range_into_too_many_spans_is_refused(api: Api) -> None:
    session(api, "early", 0, "a")
    session(api, "late", 2_000 * 3_600, "a")
    for analysis, name in ((COST, "cost_analysis"), (TRENDS, "performance_trends")):
        with refused() as failure:
            reflect(api, analysis, {"bucket": "hour"})
        assert (failure.field, failure.reason) == (f"{name}.bucket", "OUT_OF_RANGE")


@pytest.mark.parametrize("value", ["'; DROP TABLE events; --", "%", "😀", "_", "\\", '"'])
def test_a_filter_is_a_value_whatever_it_holds(value: str, api: Api) -> None:
    for field in ("agent_id", "user_id", "project"):
        given: dict[str, Any] = {field: value}
        assert reflect(api, ERRORS, **given).metadata.sessions_analyzed == 0
    assert reflect(api, ERRORS, tags=[value]).metadata.sessions_analyzed == 0
    assert reflect(api, ERRORS, {"tool": value}).error_patterns.pattern_count == 0


def test_times_beyond_every_calendar_are_taken(api: Api) -> None:
    answer = api.reflect.Reflect(
        pb.ReflectRequest(
            analysis=TRENDS, start_time={"seconds": -(10**14)}, end_time={"seconds": 10**14}
        )
    )
    assert answer.metadata.sessions_analyzed == 0
