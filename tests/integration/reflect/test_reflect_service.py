"""ReflectService against a real server: what it is asked for reaches it, and filters filter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from mneme.v1 import auth_pb2
from mneme.v1 import reflect_service_pb2 as pb
from support.api import Api, refused
from support.making import LLM_RESPONSE, at, event, record
from support.reflecting import (
    ANALYSES,
    COMPARISON,
    COST,
    ERRORS,
    SEQUENCES,
    TRENDS,
    reflect,
    session,
)
from support.server import LocalServer, local_server

DAY = 86_400.0


def test_error_patterns_are_answered_as_grouped_patterns_with_counts(api: Api) -> None:
    for number in range(4):
        session(api, f"s{number}", number * 10, "abP")
    answer = reflect(api, ERRORS)
    assert answer.analysis == ERRORS
    (pattern,) = answer.error_patterns.patterns
    assert pattern.template == "tool p failed after <num> tries"
    assert (pattern.tool_name, pattern.count, pattern.sessions_affected) == ("p", 4, 4)
    assert (pattern.rate, answer.error_patterns.error_count) == (1.0, 4)
    assert (pattern.first_seen, pattern.last_seen) == (at(2), at(32))
    assert list(pattern.preceding[0].tools) == ["a", "b"]
    assert [example.session_id for example in pattern.examples] == ["s3", "s2", "s1"]
    assert pattern.examples[0].message == "tool p failed after 76 tries"
    assert pattern.examples[0].timestamp == at(32)
    (insight,) = [found for found in answer.insights if found.type == "recurring_error"]
    assert insight.confidence == 1
    assert not insight.HasField("q_value"), "what was only counted was not tested"
    assert list(insight.session_ids) == ["s3", "s2", "s1", "s0"]
    assert list(insight.event_ids) == [example.event_id for example in pattern.examples]
    assert "4 times in 4 sessions" in insight.summary


def test_tool_sequences_come_with_frequencies_and_what_they_precede(api: Api) -> None:
    for number in range(30):
        won = number % 2 == 0
        session(api, f"s{number:02d}", number * 10, "abc" if won else "abX", reward=float(won))
    result = reflect(api, SEQUENCES).tool_sequences
    most = result.common[0]
    assert (list(most.tools), most.count, most.sessions) == (["a", "b"], 30, 30)
    best = result.before_success[0]
    assert (list(best.tools)[-1:], best.count, best.effect_count) == (["c"], 15, 15)
    assert best.q_value < 0.05
    # Never elsewhere: that is sure, but no ratio.
    assert (best.base_effect_count, best.lift, best.sure) == (0, 0, True)
    assert not best.HasField("lift_interval")
    assert ["a", "b"] in [list(effect.tools) for effect in result.before_errors]
    assert result.average_length == 3


def test_cost_analysis_is_scoped_to_the_model_that_params_name(api: Api) -> None:
    for model, cost in (("claude-opus-4-6", 2.0), ("small", 0.5)):
        record(
            api,
            event("an answer", f"s-{model}", LLM_RESPONSE, model=model, cost_usd=cost,
                  input_tokens=10, output_tokens=3, at=5),
        )  # fmt: skip
    everything = reflect(api, COST).cost_analysis
    assert everything.total_cost_usd == 2.5
    assert [share.key for share in everything.by_model] == ["claude-opus-4-6", "small"]
    one = reflect(api, COST, {"model": "claude-opus-4-6"})
    assert one.cost_analysis.total_cost_usd == 2.0
    assert one.cost_analysis.most_expensive[0].model == "claude-opus-4-6"
    assert one.cost_analysis.most_expensive[0].description.endswith("an answer")


def test_trends_and_comparisons_are_answered_for_sessions_over_days(api: Api) -> None:
    for day in range(12):
        for number in range(3):
            won = number < 1 + day // 4
            seconds = day * DAY + number * 60
            session(api, f"s{day:02d}-{number}", seconds, "ab", reward=float(won))
    trends = reflect(api, TRENDS, {"bucket": "day"}).performance_trends
    assert len(trends.points) == 12
    assert trends.bucket_seconds == 86_400
    assert trends.success_rate.trend == pb.TREND_IMPROVING
    assert trends.success_rate.slope_interval.low >= 0
    assert trends.latency.trend == pb.TREND_UNSPECIFIED
    assert not trends.latency.HasField("slope_interval")
    compared = reflect(api, COMPARISON, {"recent_days": 3.5}).session_comparison
    assert (compared.recent_count, compared.earlier_count) == (12, 24)
    rate = next(c for c in compared.comparisons if c.measure == "success_rate")
    assert (rate.recent_mean, rate.difference_interval.low > 0) == (1.0, True)


def test_a_measure_that_changed_at_one_time_is_answered_with_when_and_by_how_much(api: Api) -> None:
    for day in range(16):
        session(api, f"s{day:02d}", day * DAY, "ab", reward=float(day < 10))
    rate = reflect(api, TRENDS, {"bucket": "day"}).performance_trends.success_rate
    assert rate.trend == pb.TREND_DEGRADING
    step = rate.step
    assert (step.before.value, step.before.hits, step.before.trials) == (1.0, 10, 10)
    assert (step.after.value, step.after.hits, step.after.trials) == (0.0, 0, 6)
    assert step.since.ToSeconds() // DAY - at(0).ToSeconds() // DAY == 10
    assert (step.difference, step.interval.high < 0, step.q_value < 0.05) == (-1.0, True, True)


@pytest.mark.parametrize("analysis", ANALYSES)
def test_every_analysis_answers_a_tenant_without_events(analysis: int, api: Api) -> None:
    answer = reflect(api, analysis)
    assert (answer.metadata.sessions_analyzed, answer.metadata.events_analyzed) == (0, 0)
    assert not answer.metadata.truncated
    assert not answer.insights
    assert (
        answer.WhichOneof("result") == pb.Analysis.Name(analysis).removeprefix("ANALYSIS_").lower()
    )


def test_filters_by_agent_user_project_labels_and_time_filter(api: Api) -> None:
    common: dict[str, Any] = {
        "agent_id": "agent",
        "user_id": "user",
        "project": "project",
        "tags": ["x", "y"],
    }
    session(api, "mine", 100, "abP", **common)
    for number, (field, value) in enumerate(
        (("agent_id", "b"), ("user_id", "b"), ("project", "b"), ("tags", ["x"]))
    ):
        session(api, f"other-{number}", 100, "abP", **(common | {field: value}))
    filters: list[dict[str, Any]] = [
        {"agent_id": "agent"}, {"user_id": "user"}, {"project": "project"}, {"tags": ["x", "y"]},
    ]  # fmt: skip
    for given in filters:
        for analysis in ANALYSES:
            assert reflect(api, analysis, **given).metadata.sessions_analyzed == 4
    assert reflect(api, ERRORS, **common).error_patterns.error_count == 1
    assert reflect(api, ERRORS, start_time=at(102)).error_patterns.error_count == 5
    assert reflect(api, ERRORS, end_time=at(102)).error_patterns.error_count == 0
    scope = reflect(api, ERRORS, start_time=at(101), end_time=at(102)).metadata
    assert (scope.events_analyzed, scope.start_time, scope.end_time) == (5, at(101), at(101))


def test_the_limit_cuts_lists_but_not_counts(api: Api) -> None:
    session(api, "s", 0, "ABCDE")
    result = reflect(api, ERRORS, limit=2).error_patterns
    assert (len(result.patterns), result.pattern_count, result.error_count) == (2, 5, 5)


def test_loops_are_found_in_stored_arguments(api: Api) -> None:
    calls = [
        event("", "s", "tool_call", name="fetch", at=step,
              payload={"arguments": {"url": "x", "deep": {"b": 1, "a": 2}}, "call_id": f"c{step}"})
        for step in range(4)
    ]  # fmt: skip
    record(api, *calls)
    (loop,) = reflect(api, SEQUENCES).tool_sequences.loops
    assert (loop.tool, loop.longest_run) == ("fetch", 4)
    assert loop.arguments == '{"deep":{"a":2,"b":1},"url":"x"}'


def test_messages_that_only_the_payload_holds_are_read_without_their_label(api: Api) -> None:
    kind = "tool_error"
    record(api, event("", "s", kind, name="pay", payload={"message": "card 4421486 refused"}, at=0))
    record(api, event("", "s", "error", payload={"message": "out of memory"}))
    templates = {p.template for p in reflect(api, ERRORS).error_patterns.patterns}
    assert templates == {"card <num> refused", "out of memory"}


def test_of_a_long_message_the_beginning_and_the_end_are_read(api: Api) -> None:
    trace = "Traceback (most recent call last):\n" + "  File x\n" * 5_000 + "ValueError: no luck"
    record(api, event("", "s", "error", error=trace))
    assert reflect(api, ERRORS).error_patterns.patterns[0].template == "ValueError: no luck"


def test_tokens_are_priced_by_the_table_of_the_settings(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("prices")
    (folder / "prices.toml").write_text("[large]\ninput = 2.0\noutput = 8.0\n")
    with local_server(folder / "data", model_prices=str(folder / "prices.toml")) as server:
        api = server.keys.tenant("priced")
        record(
            api,
            event(
                "", "s", LLM_RESPONSE, model="large", input_tokens=500_000, output_tokens=125_000
            ),
        )
        result = reflect(api, COST).cost_analysis
    assert result.estimated_cost_usd == result.total_cost_usd == pytest.approx(2.0)


def test_reflecting_needs_a_key_that_may_read(
    server: LocalServer, new_tenant: Callable[[], Api]
) -> None:
    writer = server.keys.tenant("writer", auth_pb2.KEY_SCOPE_WRITE)
    with refused() as failure:
        reflect(writer, COST)
    assert failure.code == grpc.StatusCode.PERMISSION_DENIED


def test_answers_that_hold_a_traceback_are_told_as_a_guess(api: Api) -> None:
    raised = "Traceback (most recent call last):\n  File 'a.py', line 1\nKeyError: 'x'"
    for number in range(4):
        record(
            api,
            event(raised, f"s{number}", "tool_response", name="bash"),
            event("no traceback", f"s{number}", "tool_response", name="read"),
            event("", f"s{number}", "tool_response", name="run", payload={"result": raised}),
        )
    answer = reflect(api, ERRORS)
    told = {insight.summary.split(" may ")[0] for insight in answer.insights}
    assert told == {"4 answers of bash in 4 sessions", "4 answers of run in 4 sessions"}
    assert {insight.type for insight in answer.insights} == {"unmarked_error"}
    assert answer.error_patterns.error_count == 0
