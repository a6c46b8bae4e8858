from __future__ import annotations

from typing import Any

import pytest
from mneme._core.convert import fill
from mneme.v1 import reflect_service_pb2 as pb
from mneme_server.edge.grpc.schema_options import fill_defaults
from mneme_server.features.reflect.messages import params, params_field
from mneme_server.features.reflect.model import (
    BucketSpan,
    CostAnalysisParams,
    ErrorPatternsParams,
    Params,
    PerformanceTrendsParams,
    RateBaseline,
    SessionComparisonParams,
    ToolSequencesParams,
)


def read(**fields: Any) -> Params:
    request = pb.ReflectRequest()
    fill(request, fields)
    fill_defaults(request)
    return params(request)


@pytest.mark.parametrize(
    ("name", "defaults"),
    [
        ("error_patterns", ErrorPatternsParams("", 1, 3, 3, RateBaseline.ALL_CALLS)),
        ("tool_sequences", ToolSequencesParams(1, None, 3)),
        ("cost_analysis", CostAnalysisParams("", BucketSpan.BY_RANGE)),
        ("performance_trends", PerformanceTrendsParams(BucketSpan.BY_RANGE)),
        ("session_comparison", SessionComparisonParams(None, None)),
    ],
)
def test_an_analysis_is_asked_for_by_name_or_by_parameters_and_has_the_documented_defaults(
    name: str, defaults: Params
) -> None:
    assert read(analysis=name) == read(**{name: {}}) == read(analysis=name, **{name: {}})
    assert read(analysis=name) == defaults
    assert params_field(pb.ReflectRequest(analysis="ANALYSIS_" + name.upper())) == name


def test_parameters_are_taken_as_given() -> None:
    given = {"tool": "pay", "min_count": 2, "window": 5, "examples": 0, "baseline": "same_tool"}
    assert read(error_patterns=given) == ErrorPatternsParams("pay", 2, 5, 0, RateBaseline.SAME_TOOL)
    costs = read(cost_analysis={"model": "m", "bucket": "week"})
    assert costs == CostAnalysisParams("m", BucketSpan.WEEK)
    compared = read(session_comparison={"recent_days": 0.5})
    assert compared == SessionComparisonParams(recent_days=0.5)


@pytest.mark.parametrize(
    ("given", "lengths"),
    [
        ({}, [1, 2, 3, 4]),
        ({"min_length": 3}, [3, 4]),
        ({"min_length": 5}, [5]),
        ({"max_length": 2}, [1, 2]),
        ({"min_length": 2, "max_length": 6}, [2, 3, 4, 5, 6]),
    ],
)
def test_a_default_never_contradicts_what_is_given(
    given: dict[str, int], lengths: list[int]
) -> None:
    found = read(tool_sequences=given)
    assert isinstance(found, ToolSequencesParams)
    assert list(found.lengths) == lengths


def test_what_the_domain_calls_an_enum_has_the_numbers_of_the_api() -> None:
    for kind, wire in ((RateBaseline, pb.Baseline), (BucketSpan, pb.Bucket)):
        prefix = wire.DESCRIPTOR.name.upper()
        for member in kind:
            if member:
                assert wire.Value(f"{prefix}_{member.name}") == member
