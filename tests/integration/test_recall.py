"""Recall: what is found, by which filters, in which order, and why."""

from __future__ import annotations

import math
from typing import Any

import pytest
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api, grpc, refused
from support.making import TOOL_CALL, TOOL_ERROR, at, event, ids_of, lesson, recall, record
from support.server import LocalServer

EVENT, LESSON, SESSION = "event", "lesson", "session"
HYBRID, DENSE, LEXICAL = (
    recall_pb.RECALL_MODE_HYBRID, recall_pb.RECALL_MODE_DENSE, recall_pb.RECALL_MODE_LEXICAL
)  # fmt: skip
FOUND = recall_pb.RECALL_OUTCOME_FOUND
MODES = pytest.mark.parametrize("mode", [HYBRID, DENSE, LEXICAL])


@pytest.fixture(scope="module")
def filled(server: LocalServer) -> Api:
    """Return a tenant with sessions of several agents; nobody may change it.

    It is closed and opened again, so that its words are on the disk: BM25 rounds the lengths of
    texts there, and scores would change a little when that happened between two calls.
    """
    api = _fill(server)
    server.close_tenant(api.tenant_id)
    return api


def _fill(server: LocalServer) -> Api:
    api = server.keys.tenant("recall")
    for session, agent, user, project, tags in (
        ("auth", "coder", "ann", "shop", ["login", "web"]),
        ("deploy", "ops", "bob", "shop", ["release"]),
        ("cooking", "chef", "ann", "kitchen", ["web"]),
    ):
        api.events.StartSession(
            events_pb.StartSessionRequest(
                session_id=session, agent_id=agent, user_id=user, project=project, tags=tags
            )
        )
    record(
        api,
        event("The login fails with invalid credentials", "auth", TOOL_ERROR, id="login", at=100,
              name="sign_in"),
        event("The token expired after one hour", "auth", id="token", at=110),
        event("Refreshing the session cookie solved it", "auth", id="cookie", at=120),
        event("Rolling out version two to production", "deploy", id="rollout", at=200),
        event("Health checks fail, rolling back", "deploy", id="rollback", at=210),
        event("The database migration locked a table", "deploy", id="migration", at=220),
        event("Bake the bread for forty minutes", "cooking", id="bread", at=300),
        event("Add salt to the soup", "cooking", id="soup", at=310),
        wait=True,
    )  # fmt: skip
    saved = [
        learn_pb.Lesson(id="tests", title="Always run tests", content="before every deployment",
                        agent_id="ops", project="shop", tags=["release"], category="deployment",
                        importance="IMPORTANCE_HIGH", updated_at=at(400)),
        learn_pb.Lesson(id="old", title="Use FTP to deploy", content="an old habit",
                        archived_at=at(401), updated_at=at(390)),
    ]  # fmt: skip
    api.learn.ImportLessons(learn_pb.ImportLessonsRequest(lessons=saved))
    return api


def found(api: Api, query: str = "what happened", **fields: Any) -> set[str]:
    answer = recall(api, query, limit=100, **fields)
    assert answer.searched_count >= len(answer.results)
    return set(ids_of(answer))


AUTH, DEPLOY = {"login", "token", "cookie"}, {"rollout", "rollback", "migration"}
EVENTS = {"login", "token", "cookie", "rollout", "rollback", "migration", "bread", "soup"}


@pytest.mark.parametrize("mode", [HYBRID, DENSE])
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, EVENTS | {"tests"}),
        ({"include_archived": True}, EVENTS | {"tests", "old"}),
        ({"scopes": [EVENT]}, EVENTS),
        ({"scopes": [LESSON]}, {"tests"}),
        ({"scopes": [LESSON], "include_archived": True}, {"tests", "old"}),
        ({"scopes": [EVENT, LESSON]}, EVENTS | {"tests"}),
        ({"agent_id": "coder"}, {"login", "token", "cookie"}),
        ({"agent_id": "ops"}, {"rollout", "rollback", "migration", "tests"}),
        ({"session_id": "cooking"}, {"bread", "soup"}),
        ({"user_id": "ann"}, {"login", "token", "cookie", "bread", "soup", "tests"}),
        ({"user_id": "ann", "only_own": True}, {"login", "token", "cookie", "bread", "soup"}),
        ({"agent_id": "coder", "only_own": True, "scopes": [LESSON]}, set()),
        ({"project": "shop"}, EVENTS - {"bread", "soup"} | {"tests"}),
        ({"tags": ["web"]}, {"login", "token", "cookie", "bread", "soup"}),
        ({"tags": ["web", "login"]}, {"login", "token", "cookie"}),
        ({"tags": ["release"]}, {"rollout", "rollback", "migration", "tests"}),
        ({"start_time": at(210)}, {"rollback", "migration", "bread", "soup", "tests"}),
        ({"end_time": at(110)}, {"login"}),
        ({"start_time": at(110), "end_time": at(210)}, {"token", "cookie", "rollout"}),
        ({"project": "shop", "user_id": "ann"}, {"login", "token", "cookie", "tests"}),
        ({"project": "shop", "user_id": "ann", "only_own": True}, {"login", "token", "cookie"}),
        ({"project": "bank"}, set()),  # Everything here is of some project.
        ({"agent_id": "nobody"}, set()),
        ({"any_tags": ["login", "release"]}, AUTH | DEPLOY | {"tests"}),
        ({"any_tags": ["login", "release"], "tags": ["web"]}, AUTH),
        ({"session_id": "auth", "scopes": [LESSON]}, set()),
    ],
)
def test_every_filter_lets_through_exactly_what_matches(
    mode: int, filters: dict[str, Any], expected: set[str], filled: Api
) -> None:
    assert found(filled, mode=mode, **filters) == expected
    answer = recall(filled, "what happened", mode=mode, **filters)
    assert answer.searched_count == len(expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("authentication problem", "login"),
        ("monitoring found the service unhealthy", "rollback"),
        ("how long does dough stay in the oven", "bread"),
        ("schema change blocked the database", "migration"),
    ],
)
def test_memories_are_found_by_meaning_when_the_words_differ(
    query: str, expected: str, filled: Api
) -> None:
    for mode in (HYBRID, DENSE):
        assert ids_of(recall(filled, query, mode=mode, scopes=[EVENT]))[0] == expected


def test_memories_are_found_by_their_words_in_other_forms(filled: Api) -> None:
    for query, expected in (
        ("migrations", {"migration"}), ("EXPIRES", {"token"}), ("salted soups", {"soup"}),
    ):  # fmt: skip
        assert found(filled, query, mode=LEXICAL) == expected


def test_a_lexical_query_that_shares_no_word_finds_nothing_above_min_score(filled: Api) -> None:
    answer = recall(filled, "xylophone", mode=LEXICAL)
    assert (len(answer.results), answer.total_results) == (0, 0)
    assert answer.outcome == recall_pb.RECALL_OUTCOME_NOTHING_ABOVE_MIN_SCORE
    assert answer.searched_count == 9


@MODES
def test_scores_fall_lie_between_0_and_1_and_reach_min_score(mode: int, filled: Api) -> None:
    everything = recall(filled, "rolling back the login", mode=mode, limit=100)
    scores = [result.score for result in everything.results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert everything.total_results == len(scores)
    threshold = scores[len(scores) // 2]
    part = recall(filled, "rolling back the login", mode=mode, limit=100, min_score=threshold)
    assert ids_of(part) == [r.source_id for r in everything.results if r.score >= threshold]
    assert part.total_results == len(part.results)
    nothing = recall(filled, "rolling back the login", mode=mode, min_score=1)
    if scores[0] < 1:
        assert nothing.outcome == recall_pb.RECALL_OUTCOME_NOTHING_ABOVE_MIN_SCORE


def test_the_score_of_each_mode_is_what_it_is_said_to_be(filled: Api) -> None:
    dense = recall(filled, "token", mode=DENSE, limit=100)
    assert all(r.score == pytest.approx(max(0, r.similarity)) for r in dense.results)
    lexical = recall(filled, "token", mode=LEXICAL)
    assert not any(result.HasField("similarity") for result in lexical.results)
    hybrid = {r.source_id: r.similarity for r in recall(filled, "token", limit=100).results}
    assert hybrid == pytest.approx({r.source_id: r.similarity for r in dense.results}, abs=1e-6)


@MODES
@pytest.mark.parametrize("limit", [1, 3, 0, 100])
def test_the_best_are_returned_up_to_the_limit_and_all_are_counted(
    mode: int, limit: int, filled: Api
) -> None:
    all_ids = ids_of(recall(filled, "login token", mode=mode, limit=100))
    answer = recall(filled, "login token", mode=mode, limit=limit)
    assert ids_of(answer) == all_ids[: limit or 10]
    assert answer.total_results == len(all_ids)
    assert not answer.candidates_capped


def test_the_explained_terms_add_up_to_the_basis_of_the_score(filled: Api) -> None:
    answer = recall(filled, "why did the login fail?", explain=True, limit=100)
    ratios = []
    for result in answer.results:
        added = [term.contribution for term in result.terms]
        assert added == sorted(added, key=abs, reverse=True)
        assert len({term.name for term in result.terms}) == len(added)
        ratios.append(sum(added) / result.score**2)
    # score = sqrt(sum / highest * evidence), and both of these are the query's.
    assert ratios == pytest.approx([ratios[0]] * len(ratios))
    terms = {term.name: term for term in answer.results[0].terms}
    assert terms["dense"].value == pytest.approx(answer.results[0].similarity, abs=1e-6)
    plain = recall(filled, "why did the login fail?").results[0]
    assert not plain.terms
    assert not plain.HasField("steps")


@pytest.mark.parametrize("query", ["why did the login fail?", "zebra stripes of 12 May 2031"])
@pytest.mark.parametrize("scopes", [[], ["event"], ["session"], ["lesson"]])
def test_the_explained_steps_lead_from_the_terms_to_the_score(
    query: str, scopes: list[str], filled: Api
) -> None:
    for result in recall(filled, query, scopes=scopes, explain=True, limit=100).results:
        steps = result.steps
        assert steps.sum == pytest.approx(sum(term.contribution for term in result.terms))
        share = min(max(steps.sum / steps.highest, 0), 1)
        assert result.score == pytest.approx(math.sqrt(share * steps.evidence))


@pytest.mark.parametrize("mode", [recall_pb.RECALL_MODE_DENSE, recall_pb.RECALL_MODE_LEXICAL])
def test_a_score_that_is_no_sum_has_no_steps(mode: int, filled: Api) -> None:
    answer = recall(filled, "login fails", explain=True, mode=mode)
    assert not [result for result in answer.results if result.HasField("steps")]


def test_a_weight_of_zero_switches_its_terms_off(filled: Api) -> None:
    names = {
        "neighbors": {"answer", "next"}, "session": {"session_dense", "session_lexical"},
        "recency": {"recency"}, "importance": {"importance"},
    }  # fmt: skip

    def shown(**weights: float) -> set[str]:
        answer = recall(
            filled, "login fails", explain=True, limit=100,
            weights=recall_pb.RankingWeights(**weights),
        )  # fmt: skip
        return {term.name for result in answer.results for term in result.terms}

    for weight, terms in names.items():
        assert terms & shown()
        assert not terms & shown(**{weight: 0}), weight
    assert shown(neighbors=0, session=0, recency=0, importance=0) >= {"dense", "lexical"}


def test_importance_and_recency_decide_between_equal_memories(api: Api) -> None:
    text = {"title": "Backups", "content": "are taken at night"}
    low, high = 1, 4
    for name, importance, day in (("low", low, 0), ("high", high, 0), ("newer", low, 90)):
        saved = learn_pb.Lesson(
            id=name, importance=importance, updated_at=at(day * 86_400), **text
        )  # fmt: skip
        api.learn.ImportLessons(learn_pb.ImportLessonsRequest(lessons=[saved]))
    assert ids_of(recall(api, "backups"))[0] == "high"
    assert ids_of(recall(api, "backups", weights=recall_pb.RankingWeights(importance=0)))[0] == (
        "newer"
    )
    off = recall_pb.RankingWeights(importance=0, recency=0)
    first, *repeated = recall(api, "backups", weights=off, every_copy=True).results
    assert (first.source_id, len({result.score for result in repeated})) == ("newer", 1)


@MODES
def test_equal_memories_are_ordered_by_time_then_by_id_every_time(mode: int, api: Api) -> None:
    record(
        api,
        *[event("exactly the same words", f"s{n}", id=f"e{n}", at=n // 2) for n in range(8)],
        wait=True,
    )
    fields = {"weights": recall_pb.RankingWeights(recency=0), "every_copy": True}
    first = recall(api, "the same words", mode=mode, **fields)
    # HYBRID puts back what repeats the text of a memory that ranks higher: all but the first tie.
    assert len({result.score for result in first.results[mode == HYBRID :]}) == 1
    seconds = [result.timestamp.ToSeconds() for result in first.results]
    assert seconds == sorted(seconds, reverse=True)
    for _ in range(5):
        assert recall(api, "the same words", mode=mode, **fields) == first


def test_each_outcome_says_why_there_is_nothing(api: Api) -> None:
    assert recall(api, "anything").outcome == recall_pb.RECALL_OUTCOME_NOTHING_STORED
    lesson(api, "one lesson")
    nothing = recall(api, "anything", scopes=[EVENT])
    assert nothing.outcome == recall_pb.RECALL_OUTCOME_NOTHING_STORED
    filtered = recall(api, "anything", agent_id="nobody", only_own=True)
    assert filtered.outcome == recall_pb.RECALL_OUTCOME_NOTHING_MATCHES_FILTERS
    assert filtered.searched_count == 0
    too_high = recall(api, "anything", min_score=1)
    assert too_high.outcome == recall_pb.RECALL_OUTCOME_NOTHING_ABOVE_MIN_SCORE
    assert too_high.searched_count == 1
    assert recall(api, "anything").outcome == FOUND


def test_a_scope_that_nothing_is_stored_in_yet_is_empty_not_an_error(filled: Api) -> None:
    for scope in ("reflection", "knowledge"):
        answer = recall(filled, "anything", scopes=[scope])
        assert answer.outcome == recall_pb.RECALL_OUTCOME_NOTHING_STORED


@pytest.mark.parametrize("scopes", [["evnt"], ["event", "nonsense"]])
def test_a_kind_that_nobody_brings_is_refused_with_those_there_are(
    filled: Api, scopes: list[str]
) -> None:
    with refused() as failure:
        recall(filled, "anything", scopes=scopes)
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert list(failure.fields) == [f"scopes[{len(scopes) - 1}]"]
    assert (
        "is not a kind of memory; known kinds: event, lesson, reflection, knowledge, memory,"
        in (failure.message)
    )


def test_a_kind_of_memory_is_known_in_upper_case_too(api: Api) -> None:
    record(api, event("the ferry leaves at noon", id="ferry"))
    assert ids_of(recall(api, "ferry", scopes=["EVENT", "lesson"])) == ["ferry"]


def test_what_was_recorded_is_found_by_its_words_as_soon_as_the_call_returns(api: Api) -> None:
    for n in range(30):
        (receipt,) = record(api, event(f"the zebra number{n} crossed"))
        answer = recall(api, f"number{n}", mode=LEXICAL)
        assert ids_of(answer)[0] == receipt.id
        assert receipt.id in ids_of(recall(api, f"zebra number{n}", limit=100))


def test_what_was_recorded_and_waited_for_is_found_by_its_meaning(api: Api) -> None:
    for n, (text, query) in enumerate(
        [("The cat sleeps on the sofa", "a pet is resting"), ("Stocks fell sharply", "markets")]
    ):
        (receipt,) = record(api, event(text, f"s{n}"), wait=True)
        answer = recall(api, query, mode=DENSE)
        assert ids_of(answer)[0] == receipt.id
        assert answer.pending_count == 0


def test_results_carry_what_is_known_of_their_memory(filled: Api) -> None:
    (login,) = recall(filled, "invalid credentials", limit=1).results
    assert (login.source_type, login.source_id, login.session_id) == (EVENT, "login", "auth")
    assert (login.agent_id, login.text) == ("coder", "The login fails with invalid credentials")
    assert login.timestamp == at(100)
    assert login.metadata["event_type"].upper().endswith("TOOL_ERROR")
    assert login.metadata["name"] == "sign_in"
    assert {"severity", "sequence"} <= set(login.metadata)
    (rule,) = recall(filled, "tests before deployment", scopes=[LESSON], limit=1).results
    assert (rule.source_type, rule.source_id, rule.agent_id) == (LESSON, "tests", "ops")
    assert rule.metadata["title"] == "Always run tests"
    assert rule.metadata["category"] == "deployment"
    assert {"importance", "archived"} <= set(rule.metadata)


def test_a_query_of_any_characters_is_answered(filled: Api) -> None:
    for query in (
        "AND OR NOT", 'a:"b', "(((", "*", "?", "\\", "🙂", "the of and", "x" * 8_192,
        "word " * 1_600, "ünïcödé", "'; DROP TABLE events; --", "日本語の質問",
    ):  # fmt: skip
        for mode in (HYBRID, DENSE, LEXICAL):
            answer = recall(filled, query, mode=mode)
            assert all(math.isfinite(result.score) for result in answer.results)


def test_an_old_memory_is_found_among_many_newer_ones(api: Api) -> None:
    record(api, event("The spare key lies under the blue flower pot", "old", id="key", at=0))
    for start in range(0, 1_500, 500):
        record(api, *[
            event(f"routine check {n} passed", f"s{n % 20}", TOOL_CALL, at=1_000 + n)
            for n in range(start, start + 500)
        ], wait=True)  # fmt: skip
    answer = recall(api, "where is the key hidden?")
    assert ids_of(answer)[0] == "key"
    assert answer.searched_count == 1_501


def test_long_texts_are_cut_so_that_any_client_can_take_the_answer(server: LocalServer) -> None:
    api = server.keys.tenant("long")
    character = "\N{PILE OF POO}"  # Four bytes.
    long = [event("word " + character * 60_000, id=f"{n}") for n in range(100)]
    for start in range(0, 100, 25):
        record(api, *long[start : start + 25])
    record(api, event("word " + "x" * 8_187, id="as long as may be"))
    answer = recall(api, "word", mode=LEXICAL, limit=100, every_copy=True)
    assert len(answer.results) == 100
    assert answer.ByteSize() < 4 * 1024 * 1024
    for result in answer.results:
        assert result.text_truncated == (result.source_id != "as long as may be")
        assert len(result.text) == 8_192
        assert result.text.startswith("word ")
