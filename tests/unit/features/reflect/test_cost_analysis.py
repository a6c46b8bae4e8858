from __future__ import annotations

from typing import Any

import pytest
from mneme._core.amounts import dollars
from mneme_server.features.events.event_types import EventType
from mneme_server.features.reflect.cost_analysis import NEEDED, cost_analysis
from mneme_server.features.reflect.model import (
    AnalysisFindings,
    BucketSpan,
    CostAnalysis,
    CostAnalysisParams,
    Trend,
)
from mneme_server.features.reflect.settings import Price, PriceTable
from unit.features.reflect.making import daily_sessions, most_false_alarms
from unit.features.reflect.record import DAY, HOUR, Record

ANSWER = EventType.LLM_RESPONSE
PRICES = PriceTable({"large": Price(2e-6, 8e-6)})


def found_in(
    record: Record, limit: int = 10, prices: PriceTable | None = None, **params: Any
) -> AnalysisFindings:
    history = record.history(*NEEDED)
    return cost_analysis(
        history, record, CostAnalysisParams(**params), limit, prices or PriceTable()
    )


def costs_in(
    record: Record, limit: int = 10, prices: PriceTable | None = None, **params: Any
) -> CostAnalysis:
    result = found_in(record, limit, prices, **params).result
    assert isinstance(result, CostAnalysis)
    return result


def spending() -> Record:
    record = Record()
    record.session("one", tags=("billing", "urgent"))
    record.session("two", tags=("billing",), agent="other")
    record.session("three")
    record.add("one", ANSWER, 0, model="large", cost=3.0, input_tokens=10, output_tokens=2)
    record.add("one", ANSWER, 2 * HOUR, model="small", cost=1.0, input_tokens=5)
    record.add("two", EventType.TOOL_CALL, 3, name="search", cost=0.5)
    record.add("three", EventType.MESSAGE, 4, text="free")
    return record


def test_cost_is_broken_down_by_model_by_tag_and_over_time() -> None:
    result = costs_in(spending(), bucket=BucketSpan.HOUR)
    assert [(s.key, s.cost_usd) for s in result.by_model] == [
        ("large", 3.0), ("small", 1.0), ("", 0.5),
    ]  # fmt: skip
    assert [(s.key, s.cost_usd) for s in result.by_tag] == [("billing", 4.5), ("urgent", 4.0)]
    assert result.by_tag[0].share == 1.0
    assert [(s.key, s.cost_usd) for s in result.by_tool] == [("", 4.0), ("search", 0.5)]
    assert [(s.key, s.cost_usd) for s in result.by_agent] == [("agent", 4.0), ("other", 0.5)]
    points = [(p.start_us, p.cost_usd, p.session_count) for p in result.over_time]
    assert points == [(0, 3.5, 3), (2 * 3_600_000_000, 1.0, 1)]


def test_cost_has_its_total_its_average_a_session_its_trend_and_the_dearest_operations() -> None:
    result = costs_in(spending())
    assert result.total_cost_usd == pytest.approx(4.5)
    # What the third session cost is not said; it is not 0.
    assert (result.average_cost_per_session, result.costed_sessions) == (pytest.approx(2.25), 2)
    assert (result.total_input_tokens, result.total_output_tokens) == (15, 2)
    assert result.cost_per_session.trend is Trend.UNKNOWN  # One span tells nothing.
    assert [op.cost_usd for op in result.most_expensive] == [3.0, 1.0, 0.5]
    dearest = result.most_expensive[0]
    assert (dearest.session_id, dearest.model) == ("one", "large")
    assert dearest.description == "llm_response; 10 tokens read, 2 written"


def test_the_dearest_event_is_told_in_one_sentence_though_its_text_is_one() -> None:
    record = spending()
    record.add("one", ANSWER, 5, model="large", cost=9.0, text="It matures in a cave.")
    (told,) = (i.summary for i in found_in(record).insights if i.type == "expensive_operation")
    assert told == "The dearest single event cost $9.00: llm_response; It matures in a cave."


def test_cost_is_scoped_to_a_model() -> None:
    result = costs_in(spending(), model="large")
    assert (result.total_cost_usd, result.average_cost_per_session) == (3.0, 3.0)
    assert [share.key for share in result.by_model] == ["large"]
    assert found_in(spending(), model="none").notes == ["no event names the model 'none'"]


def test_tokens_without_a_cost_are_priced_by_the_table_and_shown_apart() -> None:
    record = spending()
    record.add("three", ANSWER, 5, model="large", input_tokens=1_000_000, output_tokens=100_000)
    result = costs_in(record, prices=PRICES)
    assert result.estimated_cost_usd == pytest.approx(2.8)
    assert result.total_cost_usd == pytest.approx(4.5 + 2.8)
    assert result.unpriced_events == 0


def test_without_a_price_tokens_are_counted_but_not_priced() -> None:
    record = Record()
    record.add("s", ANSWER, 5, model="unheard-of", input_tokens=100)
    findings = found_in(record, prices=PRICES)
    result = findings.result
    assert isinstance(result, CostAnalysis)
    assert (result.total_cost_usd, result.estimated_cost_usd, result.unpriced_events) == (0, 0, 1)
    assert "unheard-of" in findings.notes[0]
    assert costs_in(spending()).estimated_cost_usd == 0  # The default table is empty.


def test_the_share_of_sessions_is_one_of_those_that_the_parts_are_counted_in() -> None:
    record = Record()
    for number in range(4):  # What they cost is not known: one of their models has no price.
        name, at = f"a{number}", number * DAY
        record.add(name, ANSWER, at, model="large", cost=1.0)
        record.add(name, ANSWER, at + 1, model="small", input_tokens=5)
    for number in range(6):
        record.add(f"c{number}", ANSWER, 9 * DAY + number, model="cheap", cost=0.1)
    told = {insight.type: insight.summary for insight in found_in(record).insights}
    assert told["cost_by_model"] == (
        "The dearest model is large, with $4.00 (87 % of the cost, in 40 % of the sessions)."
    )
    record.add("talk", EventType.MESSAGE, 0, text="hello")
    told = {insight.type: insight.summary for insight in found_in(record).insights}
    assert told["cost_by_model"].endswith("in 40 % of the sessions with costs or tokens).")


def test_a_session_that_books_its_costs_apart_is_not_charged_twice() -> None:
    record = Record()
    record.add("s", ANSWER, 0, model="large", input_tokens=1_000_000)
    record.add("s", EventType.COST_TRACKED, 1, cost=2.0)
    assert costs_in(record, prices=PRICES).total_cost_usd == 2.0


def test_a_planted_rise_and_a_planted_fall_of_cost_are_found() -> None:
    for seed in range(3):
        rising = costs_in(daily_sessions(seed, cost=(0.1, 0.3))).cost_per_session
        falling = costs_in(daily_sessions(seed, cost=(0.3, 0.1))).cost_per_session
        assert (rising.trend, falling.trend) == (Trend.DEGRADING, Trend.IMPROVING)
        assert rising.slope_interval.low < 0.2 / 29 < rising.slope_interval.high


def test_an_interval_without_width_is_not_told_and_dollars_have_two_decimals() -> None:
    record = Record()
    for day in range(12):
        record.add(f"s{day:02d}", ANSWER, day * DAY, cost=0.2 + 0.03 * day)
    told = {insight.type: insight.summary for insight in found_in(record).insights}
    assert told["cost_trend"] == (
        "The cost of a session rises by $0.33 over 11 days, on average $0.36; q = 0.0014."
    )
    assert told["expensive_operation"] == "The dearest single event cost $0.53: llm_response."


@pytest.mark.parametrize(
    ("amount", "told"),
    [
        (0.0, "$0.00"), (0.2, "$0.20"), (0.058, "$0.058"), (0.01, "$0.01"), (0.0085, "$0.0085"),
        (0.996, "$1.00"), (0.00003, "$3.0e-05"), (1234.5, "$1,234.50"),
    ],
)  # fmt: skip
def test_dollars_have_two_decimals_and_two_digits_at_least(amount: float, told: str) -> None:
    assert dollars(amount) == told


def test_a_steady_cost_gives_false_alarms_as_seldom_as_stated() -> None:
    runs = 40
    trends = [costs_in(daily_sessions(seed, 14)).cost_per_session.trend for seed in range(runs)]
    assert sum(trend is not Trend.STABLE for trend in trends) <= most_false_alarms(runs)


def test_the_limit_shortens_the_lists_and_says_so() -> None:
    findings = found_in(spending(), limit=1)
    assert isinstance(findings.result, CostAnalysis)
    assert len(findings.result.by_model) == len(findings.result.most_expensive) == 1
    assert "the 1 dearest of 3 models are shown" in findings.notes
    assert findings.caps == []


def test_without_events_nothing_was_spent() -> None:
    result = costs_in(Record())
    assert (result.total_cost_usd, result.average_cost_per_session, result.over_time) == (0, 0, ())


def test_spans_without_events_are_left_out() -> None:
    record = Record()
    record.add("s", ANSWER, 0, cost=1.0)
    record.add("s", ANSWER, 9 * DAY, cost=1.0)
    assert len(costs_in(record, bucket=BucketSpan.DAY).over_time) == 2


def test_clocks_that_are_far_off_are_named_and_hide_no_change_of_the_cost() -> None:
    record = Record()
    start = 2_600 * 7 * DAY
    for number in range(120):
        at = start + number * DAY / 4
        name = record.session(f"s{number:03d}", at=at)
        cost = (0.05 if number < 60 else 0.1) * (1 + number % 5 / 20)
        record.add(name, ANSWER, at, model="m", cost=cost)
    for number in range(2):
        name = record.session(f"lost-{number}", at=6 * 365 * DAY + number * DAY)
        record.add(name, ANSWER, 6 * 365 * DAY + number * DAY, model="m", cost=0.05)
    findings = found_in(record)
    result = findings.result
    assert isinstance(result, CostAnalysis)
    assert result.cost_per_session.trend is Trend.DEGRADING
    assert result.costed_sessions == 122
    assert result.total_cost_usd == pytest.approx(sum(one.cost for one in record.events))
    (note,) = [one for one in findings.notes if "clock" in one]
    assert note.startswith("2 sessions dated between 1975-12-31 and 1976-01-01 left out")


def test_sessions_of_an_earlier_year_that_are_more_than_a_few_are_part_of_the_record() -> None:
    record = Record()
    for number in range(40):
        at = (0 if number < 10 else 1_000 * DAY) + number * DAY
        name = record.session(f"s{number:03d}", at=at)
        record.add(name, ANSWER, at, model="m", cost=0.1)
    assert not any("clock" in note for note in found_in(record).notes)


def test_the_only_model_has_all_of_the_cost_in_whatever_order_it_was_added_up() -> None:
    record = Record()
    record.session("s")
    for number in range(900):
        record.add("s", ANSWER, number, model="m", cost=0.0001 * (1 + number % 7) / 3)
    (share,) = costs_in(record).by_model
    assert share.share == 1.0
