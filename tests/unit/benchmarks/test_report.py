from benchmarks.report import (
    NO_BUDGET,
    Row,
    Verdict,
    as_json,
    as_markdown,
    at_least,
    at_most,
    at_rate,
    both,
    in_time,
    megabytes,
    milliseconds,
)

MET, MISSED = Verdict(fixed=1.0), Verdict(fixed=0.5)


def test_a_budget_that_is_just_reached_is_met() -> None:
    assert at_most(10, 10).met()
    assert at_least(10, 10).met()
    assert at_most(0, 0).met()
    assert at_most(-0.2, 1).met()


def test_a_budget_beyond_reach_is_missed() -> None:
    assert not at_most(10.01, 10).met()
    assert not at_least(9.99, 10).met()
    assert not at_most(1, 0).met()


def test_one_missed_budget_of_several_is_a_miss() -> None:
    assert not both(MET, MISSED).met()
    assert not both(MET, in_time(6, 5)).met()
    assert both(MET, NO_BUDGET).met()
    assert not both(NO_BUDGET).judged


def test_times_and_rates_follow_the_machines_pace_and_nothing_else_does() -> None:
    """At half the pace a time may be twice as long, and a rate half as high."""
    assert in_time(10, 5).met(0.5)
    assert not in_time(10.01, 5).met(0.5)
    assert at_rate(50, 100).met(0.5)
    assert not at_rate(49.9, 100).met(0.5)
    assert not at_most(10, 5).met(0.5)
    assert not both(in_time(10, 5), at_most(10, 5)).met(0.5)


def test_figures_are_written_with_their_units() -> None:
    assert milliseconds(0.4) == "0.40 ms"
    assert milliseconds(8.12) == "8.1 ms"
    assert milliseconds(1250.4) == "1,250 ms"
    assert megabytes(12_600_000) == "13 MB"


_ROWS = {
    "One": [
        Row("fast | call", "≤ 5 ms", "4 ms", MET, "how", {"p50_ms": 4.0}),
        Row("slow call", "≤ 5 ms", "6 ms", in_time(6, 5), "how"),
        Row("large file", "≤ 5 MB", "6 MB", MISSED, "how"),
        Row("beside", "", "1 ms", NO_BUDGET, "how"),
    ]
}


def test_the_report_says_what_was_missed() -> None:
    text = as_markdown(_ROWS, {"python": "3"})
    assert "1 of 3 budgets are met. Missed: slow call; large file." in text
    assert "| fast \\| call | ≤ 5 ms | 4 ms | met | how |" in text
    assert "| python | 3 |" in text


def test_the_report_of_a_slow_machine_says_what_is_met_to_scale_and_what_is_not() -> None:
    text = as_markdown(_ROWS, {}, pace=0.5)
    assert "1 of 3 budgets are met. 1 more are met to scale" in text
    assert "0.50 times as many calls" in text
    assert "Missed: large file." in text
    assert "| 6 ms | missed; met to scale |" in text
    assert "| 6 MB | **missed** |" in text


def test_the_report_of_a_disturbed_run_says_so() -> None:
    assert "Other programs were busy" in as_markdown(_ROWS, {}, disturbed=True)
    assert "Other programs were busy" not in as_markdown(_ROWS, {})


def test_the_report_for_machines_has_every_row_with_its_figures() -> None:
    report = as_json(_ROWS, {}, pace=0.5)
    rows = report["rows"]
    assert isinstance(rows, list)
    assert [row["met"] for row in rows] == [True, False, False, None]
    assert [row["met_to_scale"] for row in rows] == [True, True, False, None]
    assert rows[0]["figures"] == {"p50_ms": 4.0}
