"""What no careful colleague would say, on records of any shape."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.history import HistoryFilter
from mneme_server.features.reflect.analyses import Analyses
from mneme_server.features.reflect.model import AnalysisReport
from unit.features.reflect.record import DAY, Record
from unit.features.reflect.test_analyses import EVERY, Tenants

_NONSENSE = re.compile(
    r"\bnan\b|\binf\b|(?<![\d.,])0×|\b0 times|\$0\.00|by 0(?:\.0+)? |\(0 to 0\)|\b0 % a day|-0\b",
    re.IGNORECASE,
)


def every_analysis(record: Record) -> list[AnalysisReport]:
    analyses = Analyses(Tenants(record))
    return [analyses.run("t", params, HistoryFilter(), 10) for params in EVERY]


def check(report: AnalysisReport) -> None:
    for insight in report.insights:
        data = insight.data
        assert not _NONSENSE.search(insight.summary), insight.summary
        if "q_value" in data:
            assert data["q_value"] <= 0.05  # type: ignore[operator]
        if "lift" in data:
            assert data["effect_count"] >= 1  # type: ignore[operator]
            assert data["base_effect_count"] >= 1  # type: ignore[operator]
            assert data["lift_low"] > 1 or data["lift_high"] < 1  # type: ignore[operator]
        if "slope_per_day" in data:
            assert data["slope_per_day"] != 0
        if "difference" in data:
            assert data["difference"] != 0
    if any("q_value" in insight.data for insight in report.insights):
        assert report.caveat


SESSIONS = st.lists(
    st.tuples(
        st.sampled_from((None, 0.0, 1.0)),  # The reward.
        st.lists(
            st.tuples(st.sampled_from("abc"), st.booleans(), st.sampled_from((0.0, 0.1, 5.0))),
            max_size=6,
        ),
        st.sampled_from((0.0, DAY / 3, DAY)),  # Until the next session.
    ),
    max_size=30,
)


@given(SESSIONS, st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_no_finding_is_one_of_nothing(
    sessions: list[tuple[float | None, list[tuple[str, bool, float]], float]], repeated: int
) -> None:
    record = Record()
    at = 0.0
    for number, (reward, calls, gap) in enumerate(sessions * repeated):
        said = {} if reward is None else {"reward": reward}
        name = record.session(f"s{number:03d}", at=at, tags=("x",), project="p", **said)
        for step, (tool, fails, cost) in enumerate(calls):
            record.call(name, tool, at + step, error="went wrong" if fails else "")
            record.add(
                name, EventType.LLM_RESPONSE, at + step, cost=cost, duration=1_000, model="m"
            )
        at += gap
    for report in every_analysis(record):
        check(report)


@pytest.mark.parametrize("shape", ["constant", "zeros", "silent", "one", "talk"])
def test_records_without_a_story_have_no_findings_that_compare(shape: str) -> None:
    record = Record()
    for number in range(1 if shape == "one" else 40):
        at = number * DAY
        name = record.session(f"s{number:03d}", at=at, reward=1.0)
        if shape in ("constant", "one"):
            record.call(name, "a", at)
            record.add(name, EventType.LLM_RESPONSE, at, cost=0.25, duration=7_000, model="m")
        elif shape == "zeros":
            record.add(name, EventType.LLM_RESPONSE, at, cost=0.0, duration=0, model="m")
        elif shape == "talk":
            record.add(name, EventType.MESSAGE, at, text="hello")
    for report in every_analysis(record):
        check(report)
        compares = [i for i in report.insights if "q_value" in i.data]
        assert compares == []
