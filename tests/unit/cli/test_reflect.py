from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from mneme._core.convert import fill
from mneme.cli.charts import bar, sparkline
from mneme.messages import (
    Analysis,
    Bucket,
    CostAnalysisParams,
    ErrorPatternsParams,
    ReflectResponse,
)
from unit.cli.command import Result, mneme
from unit.client.scripted import ScriptedServer

DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
METADATA = {
    "sessions_analyzed": 200,
    "events_analyzed": 5398,
    "start_time": DAY,
    "end_time": DAY + timedelta(days=9),
    "notes": ["12 pairs were tested"],
}
EFFECT = {
    "tools": ["search", "calculate"],
    "count": 96,
    "effect_count": 11,
    "lift": 9.4,
    "lift_interval": {"low": 3.04, "high": 29.1},
    "q_value": 0.0004,
    "base_rate": 0.012,
    "base_count": 1_000,
    "base_effect_count": 12,
    "effect": "call_fails",
    "tested": True,
    "sure": True,
}
SPLIT = {
    "sessions": 13, "successes": 1, "success_interval": {"low": 0.01, "high": 0.33},
    "other_sessions": 187, "other_successes": 83, "q_value": 0.03, "tested": True,
}  # fmt: skip
STABLE = {"trend": "stable", "q_value": 0.5, "points": 9}


def shown(served: ScriptedServer, analysis: str, **result: object) -> Result:
    answer = ReflectResponse()
    fill(answer, {"analysis": analysis, "metadata": METADATA, **result})
    served.on("Reflect", answer)
    found = mneme("reflect", analysis, "--tables")
    assert found.code == 0, found.err
    return found


def test_every_option_reaches_the_server(served: ScriptedServer) -> None:
    result = mneme(
        *["reflect", "cost_analysis", "--agent", "a", "--from", "2026-01-01T00:00:00Z"],
        *["--to", "2026-02-01T00:00:00Z", "--project", "p", "--user", "u", "--tag", "x"],
        *["--limit", "20", "--param", "model=gpt-4", "--param", "bucket=day"],
    )
    assert result.code == 0
    request = served.last("Reflect")
    assert request.analysis == Analysis.ANALYSIS_COST_ANALYSIS
    assert (request.agent_id, request.project, request.user_id) == ("a", "p", "u")
    assert (list(request.tags), request.limit) == (["x"], 20)
    assert request.start_time.ToJsonString() == "2026-01-01T00:00:00Z"
    assert request.end_time.ToJsonString() == "2026-02-01T00:00:00Z"
    assert request.cost_analysis == CostAnalysisParams(model="gpt-4", bucket=Bucket.BUCKET_DAY)


def test_a_parameter_that_is_a_number_is_sent_as_one(served: ScriptedServer) -> None:
    mneme("reflect", "error_patterns", "--param", "window=2", "--param", "tool=7")
    assert served.last("Reflect").error_patterns == ErrorPatternsParams(window=2, tool="7")
    mneme("reflect", "session_comparison", "--param", "recent_days=0.5")
    assert served.last("Reflect").session_comparison.recent_days == 0.5


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (["windw=2"], "windw: error_patterns has tool, min_count, window, examples, baseline"),
        (["window=two"], "window: 'two' is not a whole number"),
        (["window=2.5"], "window: '2.5' is not a whole number"),
        (["min_count=99999999999"], "min_count"),
        (["baseline=none"], "baseline: 'none' is none of all_calls, same_tool"),
    ],
)
def test_a_parameter_that_the_analysis_does_not_take_is_refused(
    params: list[str], said: str, served: ScriptedServer
) -> None:
    result = mneme("reflect", "error_patterns", *(f"--param={param}" for param in params))
    assert (result.code, served.seen) == (2, []), result.err
    assert said in result.err


def test_of_two_parameters_that_exclude_each_other_one_is_refused(served: ScriptedServer) -> None:
    params = ["--param", "recent_days=3", "--param", "recent_sessions=5"]
    result = mneme("reflect", "session_comparison", *params)
    assert (result.code, served.seen) == (2, [])
    assert "recent_sessions: recent_days is given, too, and only one of them may be" in result.err


@pytest.mark.parametrize("text", ["window", "=3"])
def test_a_parameter_without_a_name_or_value_is_refused(text: str, served: ScriptedServer) -> None:
    result = mneme("reflect", "error_patterns", "--param", text)
    assert (result.code, served.seen) == (2, [])
    assert "is not KEY=VALUE" in result.err


def test_an_unknown_analysis_is_answered_with_the_ones_there_are(served: ScriptedServer) -> None:
    result = mneme("reflect", "errors")
    assert (result.code, served.seen) == (2, [])
    assert "error_patterns" in result.err


def test_error_patterns_are_a_table_with_error_count_first_and_last_seen(
    served: ScriptedServer,
) -> None:
    pattern = {
        "template": "payment amount does not add up, total is <num>",
        "tool_name": "book",
        "count": 24,
        "sessions_affected": 13,
        "rate": 0.45,
        "first_seen": DAY,
        "last_seen": DAY + timedelta(days=3),
        "preceding": [EFFECT, EFFECT | {"tools": ["think"], "sure": False, "q_value": 0.6}],
        "outcome": SPLIT,
        "recoveries": [
            {"kind": "other_arguments", "tools": ["calculate", "book"], "sessions": 4},
        ],
    }
    result = shown(
        served,
        "error_patterns",
        error_patterns={"patterns": [pattern], "pattern_count": 9, "error_count": 73},
    )
    assert result.lines[0] == "200 sessions, 5,398 events, 2026-03-01 12:00 to 2026-03-10 12:00"
    assert result.lines[2] == "73 errors; the 1 most frequent of 9 patterns"
    assert result.lines[3].split("  ")[0] == "#"
    assert " ".join(result.lines[4].split()) == (
        "1 payment amount does not add up, total is <num> book 24 13 45 % 2026-03-01 2026-03-04"
    )
    text = "\n".join(" ".join(line.split()) for line in result.lines)
    # A ratio is quoted only where it is sure.
    assert (
        "1 search → calculate 11 of 24 11 of 96, 11 % 12 of 1,000, 1.2 % 9.4× (3.0–29.1) <0.001\n"
        "1 think 11 of 24 11 of 96, 11 % 12 of 1,000, 1.2 % 0.600"
    ) in text
    assert "1 1 of 13, 7.7 % 83 of 187, 44 % 0.030" in text
    assert "1 it went through with other arguments calculate → book 4" in text
    assert result.err == "Note: 12 pairs were tested\n"


def test_tool_sequences_are_lists_with_frequencies_and_lifts(served: ScriptedServer) -> None:
    success = EFFECT | {"effect": "success", "lift": 2.2, "lift_interval": {"low": 1.7, "high": 3}}
    result = shown(
        served,
        "tool_sequences",
        tool_sequences={
            "common": [
                {"tools": ["a", "b"], "count": 40, "sessions": 12, "support": 0.3},
                {"tools": ["b", "c"], "count": 10, "sessions": 4, "support": 0.1},
            ],
            "before_errors": [EFFECT],
            "before_success": [
                success,
                success | {"effect_count": 0},
                success | {"tools": ["chance"], "sure": False},
            ],
            "average_length": 6.42,
            "sequence_count": 580,
            "tools": [{"tool": "a", "count": 50, "sessions": 12, "failed": 5}],
            "loops": [{"tool": "fetch", "arguments": "{}", "longest_run": 7, "runs": 2}],
        },
    )
    assert "580 sequences; 6.4 tool calls a session on average" in result.lines
    assert "a → b  40 ██████████        12     30 %" in result.lines
    assert "b → c  10 ██▌                4     10 %" in result.lines
    at = result.lines.index("In sessions that succeed")
    assert "2.2× (1.7–3.0)" in result.lines[at + 2]
    assert result.lines[at + 3] == ""  # What makes success rarer is not shown twice.
    assert "chance" not in result.out
    assert "a        50        12  5 of 50, 10 %" in result.lines
    assert result.lines[-1].split() == ["fetch", "7", "2", "{}"]


def test_cost_is_a_summary_with_breakdowns(served: ScriptedServer) -> None:
    shares = [
        {"key": "large", "cost_usd": 9.0, "share": 0.9, "event_count": 3},
        {"key": "", "cost_usd": 1.0, "share": 0.1, "event_count": 1},
    ]
    result = shown(
        served,
        "cost_analysis",
        cost_analysis={
            "total_cost_usd": 10.0,
            "estimated_cost_usd": 0.5,
            "average_cost_per_session": 0.05,
            "costed_sessions": 9,
            "total_input_tokens": 12_000,
            "by_model": shares,
            "by_tag": [shares[1]],
            "over_time": [
                {"start_time": DAY, "cost_usd": cost, "cost_per_session": cost}
                for cost in (1.0, 2.0, 7.0)
            ],
            "cost_per_session": {
                "trend": "degrading",
                "slope_per_day": 0.02,
                "slope_interval": {"low": 0.01, "high": 0.03},
                "q_value": 0.004,
                "points": 9,
                "change": 0.16,
                "days": 8,
            },
            "most_expensive": [{"event_id": "e1", "cost_usd": 7.0, "description": "a long answer"}],
        },
    )
    text = result.out
    assert "Cost       $10.00\nEstimated  $0.50 of it\nA session  $0.05 on average in 9" in text
    assert "Over time  ▁▂█ total\n" in text
    assert (
        "degrading: cost of a session rises by $0.02 a day (between $0.01 and $0.03, 95 %),"
        " by $0.16 over 8.0 d; q 0.004"
    ) in text
    assert "large       $9.00    90 % █████████" in text
    assert "(not said)  $1.00    10 % █" in text
    assert "By label" not in text
    assert "a long answer" in result.lines[-1]


def test_what_a_model_without_a_price_cost_is_not_known_rather_than_nothing(
    served: ScriptedServer,
) -> None:
    result = shown(
        served,
        "cost_analysis",
        cost_analysis={
            "total_input_tokens": 36_101_117,
            "unpriced_events": 1,
            "by_model": [{"key": "large", "input_tokens": 36_101_117, "event_count": 1}],
        },
    )
    assert "$0.00" not in result.out
    assert result.lines[-1].split()[:3] == ["large", "not", "known"]


def test_trends_are_drawn_as_sparklines_with_their_verdict(served: ScriptedServer) -> None:
    points = [
        {
            "start_time": DAY, "session_count": 2, "told_count": 2, "errors_per_session": 1.0,
            "success_rate": 0.2, "sessions_per_hour": 1.0,
        },
        {"start_time": DAY},
        {
            "start_time": DAY, "session_count": 3, "told_count": 3, "errors_per_session": 1.0,
            "success_rate": 0.9, "sessions_per_hour": 3.0,
        },
    ]  # fmt: skip
    improving = {
        "trend": "improving", "slope_per_day": 0.1, "q_value": 0.01, "points": 9,
        "slope_interval": {"low": 0.05, "high": 0.15},
    }  # fmt: skip
    result = shown(
        served,
        "performance_trends",
        performance_trends={
            "points": points, "success_rate": improving, "throughput": STABLE,
            "bucket_seconds": 86400,
        },
    )  # fmt: skip
    assert result.lines[1] == "3 spans of 1.0 d"
    rate, sessions, errors = result.lines[-3:]
    assert "▁·█" in rate
    assert "improving: it rises by 10 % a day (between 5 % and 15 %, 95 %); q 0.010" in rate
    assert "▃▁█" in sessions
    assert "no trend shown" in sessions
    assert "too few points to tell" in errors
    assert "latency" not in result.out


def test_a_step_is_told_in_place_of_a_slope_that_does_not_show_it(served: ScriptedServer) -> None:
    step = {
        "since": DAY, "before": {"value": 1.0, "hits": 10, "trials": 10},
        "after": {"value": 0.0, "hits": 0, "trials": 4}, "difference": -1.0, "q_value": 0.002,
    }  # fmt: skip
    result = shown(
        served,
        "performance_trends",
        performance_trends={
            "points": [{"start_time": DAY, "session_count": 2, "success_rate": 1.0}],
            "success_rate": STABLE | {"trend": "degrading", "step": step},
            "bucket_seconds": 86400,
        },
    )
    told = " ".join(result.out.split())
    assert "degrading: it fell from 100 % before" in told
    assert "to 0 % since; q 0.002" in told
    assert " a day" not in told


def test_sessions_are_compared_measure_by_measure_with_intervals(served: ScriptedServer) -> None:
    compared = {
        "measure": "cost_per_session", "recent_mean": 0.3, "earlier_mean": 0.1,
        "difference": 0.2, "difference_interval": {"low": 0.1, "high": 0.3},
        "effect_size": 0.8, "q_value": 0.0001, "trend": "degrading",
        "recent_count": 30, "earlier_count": 40,
    }  # fmt: skip
    result = shown(
        served,
        "session_comparison",
        session_comparison={
            "recent_count": 30, "earlier_count": 40, "split_time": DAY,
            "comparisons": [compared],
            "new_errors": [
                {"template": "new trouble", "sessions": 9, "q_value": 0.01},
                {"template": "seen by chance", "sessions": 1, "q_value": 0.9},
            ],
            "outcomes": [
                {"dimension": "task", "group_count": 50, "q_value": 0.02, "tested": True,
                 "groups": [{"key": "refund", "outcome": SPLIT}]},
            ],
        },
    )  # fmt: skip
    expected = "30 recent sessions, from 2026-03-01 12:00 on, against 40 earlier ones"
    assert result.lines[1] == expected
    assert "+0.2 (+0.1 to +0.3)   +0.80  <0.001  worse" in result.out
    assert "new trouble" in result.out
    assert "seen by chance" not in result.out
    assert "Success by task; 1 of 50, those that differ most (all of them: differ, q 0.020)" in (
        result.lines
    )
    assert "refund  1 of 13, 7.7 %  1.0 % to 33 %  83 of 187, 44 %  0.030" in result.lines[-1]


def test_the_warning_that_association_is_no_cause_is_shown(served: ScriptedServer) -> None:
    result = shown(served, "error_patterns", caveat="What goes together need not cause each other.")
    assert "What goes together need not cause each other." in result.err


def test_json_is_the_servers_answer(served: ScriptedServer) -> None:
    answer = ReflectResponse()
    fill(answer, {"analysis": "cost_analysis", "cost_analysis": {"total_cost_usd": 2.5}})
    served.on("Reflect", answer)
    (document,) = mneme("reflect", "cost_analysis", "--json").documents
    assert document["cost_analysis"]["total_cost_usd"] == 2.5


def test_a_terminal_obeys_nothing_that_an_error_holds(served: ScriptedServer) -> None:
    pattern = {"template": "bad \x1b[31mred", "count": 1}
    result = shown(served, "error_patterns", error_patterns={"patterns": [pattern]})
    assert "\x1b" not in result.out


def test_a_sparkline_shortens_long_series_and_marks_gaps() -> None:
    assert sparkline([0, 7]) == "▁█"
    assert sparkline([5, 5, 5]) == "▄▄▄"
    assert sparkline([None, 1.0, None, 2.0]) == "·▁·█"
    assert sparkline([None, None]) == "··"
    assert sparkline([]) == ""
    assert len(sparkline([float(i) for i in range(1000)])) == 40


def test_a_bar_is_as_long_as_its_share() -> None:
    assert (bar(0), bar(0.5), bar(1), bar(2)) == ("", "█████", "██████████", "██████████")


def test_what_was_found_is_told_in_sentences_and_tables_are_shown_on_request(
    served: ScriptedServer,
) -> None:
    answer = ReflectResponse()
    insights = [{"summary": "Sessions with pay fail more often."}, {"summary": "pay is dear."}]
    pattern = {"template": "card refused", "tool_name": "pay", "count": 3, "sessions_affected": 3}
    fill(
        answer,
        {
            "analysis": "error_patterns", "metadata": METADATA, "insights": insights,
            "error_patterns": {"patterns": [pattern], "pattern_count": 1, "error_count": 3},
        },
    )  # fmt: skip
    served.on("Reflect", answer)
    told = mneme("reflect", "error_patterns").out
    assert "1. Sessions with pay fail more often.\n2. pay is dear.\n" in told
    assert "card refused" not in told
    assert "card refused" in mneme("reflect", "error_patterns", "--tables").out
