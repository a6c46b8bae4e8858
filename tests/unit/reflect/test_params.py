from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mneme_server.common.canonical import JsonObject
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.reflect.params import (
    ComparisonParams,
    CostParams,
    ErrorParams,
    SequenceParams,
    comparison_params,
    cost_params,
    error_params,
    sequence_params,
    trend_params,
)


def test_without_parameters_the_documented_defaults_hold() -> None:
    assert error_params({}) == ErrorParams("", 1, 3, 3, "all_calls")
    assert sequence_params({}) == SequenceParams(1, 4, 3)
    assert cost_params({}) == CostParams("", "")
    assert trend_params({}).bucket == ""
    assert comparison_params({}) == ComparisonParams(None, None)


def test_parameters_are_taken_as_given() -> None:
    given: JsonObject = {
        "tool": "pay",
        "min_count": 2,
        "window": 5,
        "examples": 0,
        "baseline": "same_tool",
    }
    assert error_params(given) == ErrorParams("pay", 2, 5, 0, "same_tool")
    assert sequence_params({"min_length": 5}).max_length == 5
    assert comparison_params({"recent_days": 0.5}).recent_days == 0.5


@pytest.mark.parametrize(
    ("read", "given", "field", "reason"),
    [
        (error_params, {"windw": 3}, "windw", Reason.INVALID_PARAMETER),
        (error_params, {"window": 6}, "window", Reason.OUT_OF_RANGE),
        (error_params, {"window": 0}, "window", Reason.OUT_OF_RANGE),
        (error_params, {"window": 2.5}, "window", Reason.INVALID_TYPE),
        (error_params, {"window": True}, "window", Reason.INVALID_TYPE),
        (error_params, {"window": "3"}, "window", Reason.INVALID_TYPE),
        (error_params, {"window": None}, "window", Reason.INVALID_TYPE),
        (error_params, {"tool": 7}, "tool", Reason.INVALID_TYPE),
        (error_params, {"tool": "x" * 201}, "tool", Reason.OUT_OF_RANGE),
        (error_params, {"baseline": "none"}, "baseline", Reason.INVALID_PARAMETER),
        (error_params, {"bucket": "day"}, "bucket", Reason.INVALID_PARAMETER),
        (sequence_params, {"max_length": 7}, "max_length", Reason.OUT_OF_RANGE),
        (sequence_params, {"min_length": 4, "max_length": 3}, "max_length", Reason.OUT_OF_RANGE),
        (sequence_params, {"min_support": 1}, "min_support", Reason.OUT_OF_RANGE),
        (cost_params, {"bucket": "month"}, "bucket", Reason.INVALID_PARAMETER),
        (cost_params, {"model": ["a"]}, "model", Reason.INVALID_TYPE),
        (trend_params, {"bucket": {}}, "bucket", Reason.INVALID_TYPE),
        (comparison_params, {"recent_days": 0}, "recent_days", Reason.OUT_OF_RANGE),
        (comparison_params, {"recent_days": "7"}, "recent_days", Reason.INVALID_TYPE),
        (comparison_params, {"recent_sessions": 0}, "recent_sessions", Reason.OUT_OF_RANGE),
        (comparison_params, {"recent_sessions": 3, "recent_days": 3}, "recent_sessions",
         Reason.INVALID_PARAMETER),
    ],
)  # fmt: skip
def test_a_wrong_parameter_is_named(
    read: Callable[[Any], object], given: dict[str, Any], field: str, reason: Reason
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read(given)
    assert (refused.value.field, refused.value.reason) == (f"params.{field}", reason)
    assert f"params.{field}" in refused.value.message


def test_an_unknown_parameter_is_answered_with_those_there_are() -> None:
    with pytest.raises(InvalidArgument, match="recent_days, recent_sessions"):
        comparison_params({"days": 3})
