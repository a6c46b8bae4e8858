"""Questions that ask for days: in full, or relative to today."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api, refused
from support.making import event, recall, record
from support.server import LocalServer

SAID = {
    "deployed": ("2026-03-25", "We deployed the new login page"),
    "fire": ("2026-03-25", "What happened was a fire at the harbour: it happened in the night"),
    "refund": ("2026-03-26", "Customer Acme asked for a refund"),
    "backup": ("2026-03-26", "The nightly backup ran out of space"),
    "release": ("2026-03-20", "Ann planned the release"),
}


def said(name: str, text: str, day: datetime) -> events_pb.NewEvent:
    made = event(text, name, id=name)
    made.timestamp.FromDatetime(day + timedelta(hours=12))
    return made


@pytest.fixture(scope="module")
def week(server: LocalServer) -> Api:
    """Return a tenant with memories of a week of March; nobody may change it."""
    api = server.keys.tenant("week")
    days = {
        name: datetime.fromisoformat(f"{day}T00:00:00+00:00") for name, (day, _) in SAID.items()
    }
    record(api, *(said(name, text, days[name]) for name, (_, text) in SAID.items()), wait=True)
    return api


def first_two(answer: recall_pb.RecallResponse) -> set[str]:
    return {result.source_id for result in answer.results[:2]}


@pytest.mark.parametrize(
    "query", ["what happened on 2026-03-26", "2026-03-26", "what did we do on March 26th, 2026?"]
)
def test_who_asks_for_a_day_alone_gets_what_is_of_that_day_first_and_for_sure(
    week: Api, query: str
) -> None:
    answer = recall(week, query)
    assert first_two(answer) == {"refund", "backup"}
    assert answer.confidence >= 0.9
    assert recall(week, "what happened on 2026-04-20").confidence < 0.1
    assert recall(week, query, session_id="fire").confidence < 0.1


def test_days_relative_to_today_are_read_as_of_the_call(server: LocalServer) -> None:
    api = server.keys.tenant("relative-days")
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    texts = {
        "fire": ("What happened was a fire at the harbour: it happened in the night", 40),
        "parser": ("Bob fixed the parser", 2),
        "refund": ("Customer Acme asked for a refund", 1),
    }
    record(
        api,
        *(said(n, text, today - timedelta(days=ago)) for n, (text, ago) in texts.items()),
        wait=True,
    )
    for query, first in (("what happened yesterday", "refund"), ("two days ago", "parser")):
        answer = recall(api, query)
        assert answer.results[0].source_id == first
        assert answer.confidence >= 0.9


def test_relative_days_of_which_nothing_is_known_change_nothing(week: Api) -> None:
    first = recall(week, "who planned the release last week", explain=True).results[0]
    assert first.source_id == "release"
    assert not any(term.name == "date" and term.contribution for term in first.terms)
    assert recall(week, "what happened yesterday").confidence < 0.5


def test_days_are_meant_as_of_when_it_is_asked(server: LocalServer) -> None:
    api = server.keys.tenant()
    texts = {"old": ("Bob fixed the parser", datetime(2023, 5, 5, 21, tzinfo=UTC)),
             "late": ("Ann drew the plan", datetime(2023, 5, 7, 11, 30, tzinfo=UTC)),
             "new": ("Cleo wrote the letter", datetime(2023, 5, 31, 21, tzinfo=UTC))}  # fmt: skip
    record(api, *(said(n, text, at) for n, (text, at) in texts.items()), wait=True)
    asked = Timestamp()
    asked.FromDatetime(datetime(2023, 5, 8, 12))
    first = {
        query: recall(api, query, reference_time=asked).results[0].source_id
        for query in ("what happened yesterday", "what happened two days ago")
    }
    assert first == {"what happened yesterday": "late", "what happened two days ago": "old"}
    # In Tokyo it was the eighth already.
    there = {"reference_time": asked, "time_zone": "Asia/Tokyo"}
    assert recall(api, "what happened today", **there).results[0].source_id == "late"
    assert recall(api, "what happened yesterday", **there).confidence < 1.0
    with refused() as failure:
        recall(api, "what happened yesterday", time_zone="Mars/Olympus")
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert "time zone" in failure.message
