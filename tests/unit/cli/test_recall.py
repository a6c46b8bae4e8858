from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from mneme._core.convert import fill
from mneme.messages import RecallMode, RecallOutcome, RecallResponse
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer


def answer(**fields: object) -> RecallResponse:
    message = RecallResponse()
    fill(message, fields)
    return message


FOUND = answer(
    outcome="found",
    total_results=2,
    results=[
        {
            "source_type": "event",
            "source_id": "e1",
            "score": 0.83,
            "text": "login failed:\n\ttoken \x1b[31mexpired",
            "timestamp": datetime.fromisoformat("2026-03-01T12:00:00+00:00"),
            "metadata": {"event_type": "tool_error"},
            "terms": [{"name": "dense", "value": 0.7, "contribution": 0.42}],
        },
        {"source_type": "lesson", "source_id": "l1", "score": 0.5, "text": "Refresh tokens " * 50},
    ],
)


def test_results_are_a_table_with_score_source_and_a_preview_of_the_text(
    served: ScriptedServer,
) -> None:
    served.on("Recall", FOUND)
    result = mneme("recall", "auth errors")
    assert result.code == 0
    head, first, second = result.lines
    assert head.split() == ["SCORE", "SOURCE", "WHEN", "ID", "TEXT"]
    assert first.startswith("0.83 █████   event tool_error")
    assert "login failed: token ⟨U+001B⟩[31mexpired" in first
    assert second.endswith("…")
    assert "  l1  Refresh tokens" in second


def test_of_a_long_text_what_bears_on_the_question_is_shown(served: ScriptedServer) -> None:
    found = {"source_type": "memory", "source_id": "m", "score": 0.4, "text": "Minutes. " * 300}
    passage = {"text": "The key hangs behind the portrait.", "start": 2_000, "end": 2_034}
    served.on("Recall", answer(outcome="found", results=[found | {"passage": passage}]))
    shown = mneme("recall", "where is the key").lines[1]
    assert "… The key hangs behind the portrait." in shown
    assert "Minutes" not in shown


def test_every_option_reaches_the_server(served: ScriptedServer) -> None:
    mneme(
        *["recall", "q", "--scope", "event", "--scope", "lesson", "--limit", "20"],
        *["--from", "2026-01-01T00:00:00Z", "--to", "2026-02-01T00:00:00Z", "--agent", "a"],
        *["--session", "s", "--user", "u", "--project", "p", "--tag", "x", "--tag", "y"],
        *["--mode", "LEXICAL", "--min-score", "0.2", "--explain"],
    )
    request = served.last("Recall")
    assert (request.query, request.limit, request.min_score) == ("q", 20, 0.2)
    assert list(request.scopes) == ["event", "lesson"]
    assert (request.agent_id, request.session_id) == ("a", "s")
    assert (request.user_id, request.project, list(request.tags)) == ("u", "p", ["x", "y"])
    assert request.mode == RecallMode.RECALL_MODE_LEXICAL
    assert request.explain
    assert request.start_time.ToJsonString() == "2026-01-01T00:00:00Z"
    assert request.end_time.ToJsonString() == "2026-02-01T00:00:00Z"


@pytest.mark.parametrize("said", ["event", "events", "EVENTS"])
def test_a_scope_may_be_said_in_the_plural(said: str, served: ScriptedServer) -> None:
    assert mneme("recall", "q", "--scope", said).code == 0
    assert list(served.last("Recall").scopes) == ["event"]


def test_an_unknown_scope_is_answered_with_the_ones_there_are(served: ScriptedServer) -> None:
    result = mneme("recall", "q", "--scope", "evnt")
    assert result.code == 2
    assert "is none of event, lesson, reflection" in " ".join(result.err.replace("│", " ").split())
    assert served.seen == []


def test_a_relative_time_counts_from_now(served: ScriptedServer) -> None:
    mneme("recall", "q", "--from", "7d")
    start = served.last("Recall").start_time.ToDatetime()
    age = datetime.utcnow() - start
    assert timedelta(days=6, hours=23) < age < timedelta(days=7, hours=1)


def test_json_is_the_whole_answer_on_one_line(served: ScriptedServer) -> None:
    served.on("Recall", FOUND)
    (document,) = mneme("recall", "q", "--json").documents
    assert document["total_results"] == 2
    assert document["outcome"] == "found"
    assert document["results"][0]["source_type"] == "event"
    assert document["results"][0]["metadata"] == {"event_type": "tool_error"}
    assert document["results"][1]["terms"] == []


def test_an_explained_score_shows_its_terms(served: ScriptedServer) -> None:
    served.on("Recall", FOUND)
    assert "dense +0.420 (0.700)" in mneme("recall", "q", "--explain").lines[1]


def test_an_explained_score_shows_how_the_terms_become_it(served: ScriptedServer) -> None:
    explained = RecallResponse()
    explained.CopyFrom(FOUND)
    fill(explained.results[0], {"score": 0.5, "steps": {"sum": 2, "highest": 4, "evidence": 0.5}})
    served.on("Recall", explained)
    shown = " ".join(" ".join(mneme("recall", "q", "--explain").lines).split())
    assert "= 2.000 of 4.000 × evidence 0.500, √ 0.500" in shown


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("nothing_stored", "Nothing is stored there yet."),
        ("nothing_matches_filters", "none passes the filters"),
        ("nothing_above_min_score", "Of 7 memories, none fits"),
    ],
)
def test_no_results_say_why(outcome: str, words: str, served: ScriptedServer) -> None:
    served.on("Recall", answer(outcome=outcome, searched_count=7))
    result = mneme("recall", "q")
    assert (result.code, result.out) == (0, "")
    assert words in result.err


def test_memories_without_embeddings_yet_are_mentioned_beside_the_table(
    served: ScriptedServer,
) -> None:
    served.on("Recall", answer(outcome="found", results=[{"text": "x"}], pending_count=1200))
    result = mneme("recall", "q")
    assert "1,200 of the memories are found by words only" in result.err
    assert "1,200" not in result.out


def test_on_a_narrow_terminal_columns_give_way_and_the_score_stays_whole(
    served: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "46")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    served.on("Recall", FOUND)
    out = mneme("recall", "q", terminal=True).out
    lines = re.sub(r"\x1b\[\d*m", "", out).splitlines()
    assert all(len(line) <= 46 for line in lines)
    assert sum("0.83 █████" in line for line in lines) == 1
    assert "When" not in lines[0]
    assert "Refresh tokens Refresh" in out
    assert "\x1b[36m" not in out


def test_eighty_columns_show_the_ids_and_the_whole_text_below(
    served: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    found = {"source_id": "01K9ZJ6V1W3Q8Y5T2R7N4M6B0C", "score": 0.5, "text": "word " * 30}
    served.on("Recall", answer(outcome="found", results=[found]))
    lines = mneme("recall", "q", terminal=True).out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "01K9ZJ6V1W3Q8Y5T2R7N4M6B0C" in lines[2]
    assert " ".join(lines[3:]).split() == ["word"] * 30


def test_on_a_terminal_colours_are_used_unless_no_color_is_set(
    served: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    served.on("Recall", FOUND)
    assert "\x1b[36m" in mneme("recall", "q", terminal=True).out


def test_outcomes_of_the_schema_all_have_words() -> None:
    explained = {
        RecallOutcome.RECALL_OUTCOME_FOUND,
        RecallOutcome.RECALL_OUTCOME_UNSPECIFIED,
        RecallOutcome.RECALL_OUTCOME_NOTHING_STORED,
        RecallOutcome.RECALL_OUTCOME_NOTHING_MATCHES_FILTERS,
        RecallOutcome.RECALL_OUTCOME_NOTHING_ABOVE_MIN_SCORE,
        RecallOutcome.RECALL_OUTCOME_NOTHING_CONFIDENT,
    }
    assert set(RecallOutcome.values()) == explained


def test_a_result_says_what_it_stands_for_and_what_happened_around_it(
    served: ScriptedServer,
) -> None:
    first, last, before = (datetime(2026, month, 1, tzinfo=UTC) for month in (3, 4, 2))
    found = {
        "source_id": "e", "text": "declined", "copies": 12,
        "first_time": first, "last_time": last,
        "before": [{"source_id": "b", "author": "user", "text": "pay \x1bnow"}],
        "after": [{"source_id": "a", "event_type": "tool_call", "text": "pay again"}],
        "older": {"source_id": "o", "timestamp": before},
    }  # fmt: skip
    served.on("Recall", answer(outcome="found", results=[found]))
    out = mneme("recall", "q", "--context", "1", "--every-copy").out
    assert "(12 like this, 2026-0" in out
    assert "user: pay ⟨U+001B⟩now" in out
    assert out.index("declined") < out.index("before: user: pay ⟨U+001B⟩now")
    assert out.index("before: user: pay ⟨U+001B⟩now") < out.index("after: tool_call: pay again")
    assert "(newer than o of 2026-0" in out
    assert "(older" not in out
    request = served.calls("Recall")[0].request
    assert (request.context_turns, request.every_copy) == (1, True)


def test_doubt_is_said(served: ScriptedServer) -> None:
    found = [{"source_id": "e", "text": "something"}]
    served.on("Recall", answer(outcome="found", results=found, confidence=0.02))
    assert "Confidence 0.02; probably nothing here answers this." in mneme("recall", "q").err
    served.on("Recall", answer(outcome="found", results=found, confidence=0.9))
    assert "Confidence 0.90." in mneme("recall", "q").err
    served.on("Recall", answer(outcome="nothing_confident", confidence=0.02))
    assert mneme("recall", "q").err.strip() == "Nothing here is likely to answer this."
