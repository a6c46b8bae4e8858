from benchmarks.report import (
    Row,
    Verdict,
    as_json,
    as_markdown,
    at_least,
    at_most,
    both,
    megabytes,
    milliseconds,
)


def test_a_budget_that_is_just_reached_is_met() -> None:
    assert at_most(10, 10) is Verdict.MET
    assert at_least(10, 10) is Verdict.MET


def test_a_budget_beyond_reach_is_missed() -> None:
    assert at_most(10.01, 10) is Verdict.MISSED
    assert at_least(9.99, 10) is Verdict.MISSED


def test_one_missed_budget_of_several_is_a_miss() -> None:
    assert both(Verdict.MET, Verdict.MISSED) is Verdict.MISSED
    assert both(Verdict.MET, Verdict.NONE) is Verdict.MET
    assert both(Verdict.NONE) is Verdict.NONE


def test_figures_are_written_with_their_units() -> None:
    assert milliseconds(0.4) == "0.40 ms"
    assert milliseconds(8.12) == "8.1 ms"
    assert milliseconds(1250.4) == "1,250 ms"
    assert megabytes(12_600_000) == "13 MB"


_ROWS = {
    "One": [
        Row("fast | call", "≤ 5 ms", "4 ms", Verdict.MET, "how", {"p50_ms": 4.0}),
        Row("slow call", "≤ 5 ms", "6 ms", Verdict.MISSED, "how"),
        Row("beside", "", "1 ms", Verdict.NONE, "how"),
    ]
}


def test_the_report_says_what_was_missed() -> None:
    text = as_markdown(_ROWS, {"python": "3"})
    assert "1 of 2 budgets are met. Missed: slow call." in text
    assert "| fast \\| call | ≤ 5 ms | 4 ms | met | how |" in text
    assert "| python | 3 |" in text


def test_the_report_of_a_disturbed_run_says_so() -> None:
    assert "Other programs were busy" in as_markdown(_ROWS, {}, disturbed=True)
    assert "Other programs were busy" not in as_markdown(_ROWS, {})


def test_the_report_for_machines_has_every_row_with_its_figures() -> None:
    report = as_json(_ROWS, {})
    rows = report["rows"]
    assert isinstance(rows, list)
    assert [row["verdict"] for row in rows] == ["met", "missed", "none"]
    assert rows[0]["figures"] == {"p50_ms": 4.0}
