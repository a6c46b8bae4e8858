"""Discover: what labels, tools and skills change of how episodes end, told from what they only go
with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mneme.v1 import causal_pb2, episode_pb2, skill_service_pb2
from mneme.v1 import discovery_pb2 as pb
from support.api import Api, grpc, refused
from support.making import at, create_edge, skill, struct
from support.operations import ended, finished, response
from support.server import LocalServer

pytestmark = pytest.mark.slow

OUTCOMES = ("reward", "success")
HARD, EASY = "Migrate the billing database", "Fix a typo in the readme"


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("discovery")


def tell(api: Api, episodes: list[episode_pb2.Episode]) -> None:
    for start in range(0, len(episodes), 500):
        some = episodes[start : start + 500]
        api.skill.ImportEpisodes(skill_service_pb2.ImportEpisodesRequest(episodes=some))


def confounded(count: int, seed: int = 0) -> list[episode_pb2.Episode]:
    """Episodes of which the hard ones mostly had "careful", which helps: they do worse all the
    same."""
    chance = np.random.default_rng(seed)
    made = []
    for number in range(count):
        hard = chance.random() < 0.5
        careful = chance.random() < (0.8 if hard else 0.2)
        works = chance.random() < 0.8 - 0.6 * hard + 0.15 * careful
        tags = ["careful"] * careful + ["noise"] * (chance.random() < 0.3)
        made.append(
            episode_pb2.Episode(
                id=f"e-{number:05}", task=HARD if hard else EASY, success=works,
                reward=float(works) + 0.1 * chance.normal(), tags=tags, occurred_at=at(number),
                agent_id="ann", metadata=struct(difficulty=float(hard)),
            )
        )  # fmt: skip
    return made


def discover(api: Api, **fields: Any) -> pb.DiscoverResult:
    given: dict[str, Any] = {"min_success_rate": 0} | fields
    return finished(api, pb.DiscoverRequest(question=pb.DiscoveryQuestion(**given)))


def found(answer: pb.DiscoverResult) -> dict[tuple[str, str], pb.DiscoveredEffect]:
    return {(one.cause, one.outcome): one for one in answer.findings}


def edges(api: Api) -> list[causal_pb2.CausalEdge]:
    return list(api.causal.ListEdges(causal_pb2.ListEdgesRequest()).edges)


def change(name: str) -> int:
    return int(pb.DiscoveryChange.Value(f"DISCOVERY_CHANGE_{name}"))


def test_a_confounder_that_turns_the_difference_round_is_seen_through(api: Api) -> None:
    tell(api, confounded(1_000))
    answer = discover(api)
    careful = found(answer)["tag:careful", "success"]
    assert careful.plain_difference < -0.1
    assert careful.low < 0.15 < careful.high
    assert careful.low > 0
    assert careful.uplift == pytest.approx(careful.mean_with - careful.mean_without)
    assert careful.confounder_score == 1
    assert careful.change == change("CREATED")
    assert found(answer)["tag:noise", "success"].change == change("NOT_SURE")
    assert answer.tested_count == 4
    assert set(answer.adjusted_for) >= {"task", "time"}
    kept = {(one.cause, one.effect): one for one in edges(api)}
    assert kept.keys() == {("tag:careful", "success"), ("tag:careful", "reward")}
    edge = kept["tag:careful", "success"]
    assert (edge.id, edge.uplift, edge.low) == (careful.edge_id, careful.uplift, careful.low)
    assert edge.confidence == pytest.approx(1 - careful.q_value)
    assert edge.origin == causal_pb2.EDGE_ORIGIN_DISCOVERED
    assert edge.sample_size == careful.treated_count + careful.control_count
    assert edge.evidence_ids[0] > "e-009"

    again = discover(api)
    assert {one.change for one in again.findings if one.edge_id} == {change("UNCHANGED")}
    assert {one.id: one for one in edges(api)} == {one.id: one for one in kept.values()}


def test_a_dry_run_writes_nothing_and_what_others_say_stays(api: Api) -> None:
    tell(api, confounded(1_600))
    first = discover(api, dry_run=True)
    assert found(first)["tag:careful", "success"].change == change("CREATED")
    assert found(first)["tag:careful", "success"].edge_id == ""
    assert edges(api) == []
    create_edge(api, "tag:careful", "success", 0.9, edge_id="stated")
    create_edge(api, "reward", "tag:careful", 0.1, edge_id="back")
    answer = found(discover(api))
    assert answer["tag:careful", "success"].change == change("KEPT")
    assert answer["tag:careful", "success"].edge_id == "stated"
    assert answer["tag:careful", "reward"].change == change("CIRCLE")
    assert {one.id for one in edges(api)} == {"stated", "back"}


def test_edges_that_one_run_makes_close_no_circle_together(api: Api) -> None:
    chance = np.random.default_rng(0)
    told = []
    for number in range(600):
        tags = [tag for tag in ("first", "second") if chance.random() < 0.5]
        works = chance.random() < 0.2 + 0.3 * len(tags)
        told.append(
            episode_pb2.Episode(
                id=f"e-{number:05}", task=EASY, success=works, reward=float(works), tags=tags,
                occurred_at=at(number),
            )
        )  # fmt: skip
    tell(api, told)
    create_edge(api, "reward", "tag:first", 0.5)
    create_edge(api, "success", "tag:second", 0.5)
    for dry_run in (True, False):
        effects = discover(api, dry_run=dry_run).findings
        changes = [effect.change for effect in effects]
        assert changes.count(change("CREATED")) == 1
        assert changes.count(change("CIRCLE")) == 3
    assert len(edges(api)) == 3


def test_an_effect_that_no_longer_holds_loses_its_edge(api: Api) -> None:
    told = confounded(400)
    tell(api, told)
    assert found(discover(api))["tag:careful", "reward"].change == change("CREATED")
    for one in told:
        one.success, one.reward = one.id[-1] in "13579", 0.5 + 0.01 * (int(one.id[-2:]) % 7)
    request = skill_service_pb2.ImportEpisodesRequest(
        episodes=told, on_conflict=skill_service_pb2.EPISODE_CONFLICT_REPLACE
    )
    api.skill.ImportEpisodes(request)
    answer = discover(api, dry_run=True)
    assert (answer.removed_count > 0, len(edges(api)) > 0) == (True, True)
    # Another question's edges are not this one's to remove.
    assert discover(api, filter=episode_pb2.EpisodeFilter(agent_id="ann")).removed_count == 0
    assert discover(api).removed_count == answer.removed_count
    assert edges(api) == []


def test_tools_and_skills_are_causes_and_what_says_the_outcome_is_none(api: Api) -> None:
    skill(api, "retry", skill_id="s-1")
    told = []
    for number in range(120):
        helped = number % 2 == 0
        named = struct(skills=["retry"]) if helped else None
        told.append(
            episode_pb2.Episode(
                id=f"e-{number}", task=EASY, success=helped or number % 3 == 0,
                reward=float(helped) + number % 5 / 10, tools=["grep", "grep"] if helped else [],
                tags=["outcome:good"] if helped else [], metadata=named,
            )
        )  # fmt: skip
    tell(api, told)
    # What an attempt calls follows from how far it came.
    assert {one.cause for one in discover(api, dry_run=True).findings} == {"skill:s-1"}
    answer = discover(api, include_tools=True)
    assert {one.cause for one in answer.findings} == {"tool:grep", "skill:s-1"}
    assert all(one.change == change("CREATED") for one in answer.findings)
    assert all(one.treated_count == one.control_count == 60 for one in answer.findings)
    # Asked without them again, edges of tools are gone.
    discover(api)
    assert {edge.cause for edge in edges(api)} == {"skill:s-1"}


def test_what_was_decided_before_an_attempt_is_a_cause(api: Api) -> None:
    told = []
    for number in range(240):
        helped = number % 2 == 0
        metadata = struct(strategy="plan" if helped else "direct", lessons=["l-1"] * helped)
        told.append(
            episode_pb2.Episode(
                id=f"e-{number}", task=EASY, success=helped or number % 3 == 0,
                reward=float(helped) + number % 5 / 10, metadata=metadata,
            )
        )  # fmt: skip
    tell(api, told)
    answer = discover(api, dry_run=True)
    causes = {one.cause: one.uplift > 0 for one in answer.findings}
    assert causes == {"strategy:plan": True, "strategy:direct": False, "lesson:l-1": True}
    assert all(0 <= one.mean_with <= 1 for one in answer.findings if one.outcome == "success")


def test_a_label_of_a_few_tasks_that_are_tried_again_is_not_told(api: Api) -> None:
    """Ten tries of a task are one task: of four easy ones with the label nothing is known."""
    told = [
        episode_pb2.Episode(
            id=f"e-{number}", task=f"task {number % 20}", success=number % 20 < 4,
            reward=float(number % 20 < 4), tags=["mine"] if number % 20 < 4 else [],
        )
        for number in range(240)
    ]  # fmt: skip
    tell(api, told)
    answer = discover(api, dry_run=True)
    assert answer.findings == []
    assert {one.cause for one in answer.refused_causes} == {"tag:mine"}


def test_too_few_and_what_has_no_counterpart_is_refused_and_said(api: Api) -> None:
    told = []
    for number in range(200):
        mine = number % 2 == 0
        tags = ["mine"] * mine + ["rare"] * (number < 29) + ["once"] * (number == 0)
        told.append(
            episode_pb2.Episode(
                id=f"e-{number}", task=EASY, success=True, reward=number % 7 / 7, tags=tags,
                agent_id="ann" if mine else "bo",
            )
        )  # fmt: skip
    tell(api, told)
    answer = discover(api)
    assert answer.findings == []
    why = {
        one.cause: (one.why, one.treated_count, one.control_count) for one in answer.refused_causes
    }
    assert why["tag:rare"] == (pb.DISCOVERY_REFUSAL_TOO_FEW, 29, 171)
    assert why["tag:mine"][0] == pb.DISCOVERY_REFUSAL_NO_OVERLAP
    assert "tag:once" not in why
    tell(api, [episode_pb2.Episode(id="more", task=EASY, reward=0.5, success=True, tags=["rare"])])
    answer = discover(api)
    assert {one.outcome for one in answer.findings} == {"reward"}
    never = {(one.cause, one.outcome): one.why for one in answer.refused_causes}
    assert never["tag:rare", "success"] == pb.DISCOVERY_REFUSAL_NEVER_DIFFERS


def test_what_was_known_before_is_adjusted_for_and_what_came_after_is_refused(api: Api) -> None:
    told = confounded(600)
    for one in told:
        one.task = EASY  # Now only the metadata tells.
    tell(api, told)
    assert found(discover(api, dry_run=True))["tag:careful", "success"].uplift < 0
    answer = discover(api, adjust_for=["difficulty", "tag:noise"])
    assert found(answer)["tag:careful", "success"].uplift > 0
    assert "difficulty" in answer.adjusted_for
    assert {one.cause for one in answer.findings} == {"tag:careful"}
    for name in ("reward", "tokens_used", "tag:status:done"):
        with refused() as failure:
            discover(api, adjust_for=["difficulty", name])
        assert (failure.code, failure.field) == (
            grpc.StatusCode.INVALID_ARGUMENT, "question.adjust_for[1]",
        )  # fmt: skip


def test_reward_and_success_have_the_same_figures_where_they_are_the_same_numbers(
    api: Api,
) -> None:
    """By that, clients tell such findings as one."""
    told = confounded(300)
    for one in told:
        one.reward = float(one.success)
    tell(api, told)
    effects = found(discover(api))
    for name in ("uplift", "low", "high", "plain_difference", "q_value", "mean_with"):
        reward, success = (getattr(effects["tag:careful", one], name) for one in OUTCOMES)
        assert reward == pytest.approx(success)


def test_a_name_to_adjust_for_that_no_episode_has_is_refused(api: Api) -> None:
    """A mistyped name would leave the effects unadjusted, and nobody would know."""
    assert discover(api, adjust_for=["dificulty"]).episode_count == 0
    tell(api, confounded(100))
    for name in ("dificulty", "tag:nose"):
        with refused() as failure:
            discover(api, adjust_for=["difficulty", name])
        assert (failure.code, failure.field) == (
            grpc.StatusCode.INVALID_ARGUMENT, "question.adjust_for[1]",
        )  # fmt: skip
        assert repr(name) in failure.message
    assert "task" in discover(api, adjust_for=["task", "agent"]).adjusted_for


def test_what_tells_no_episodes_apart_is_told_as_not_adjusted_for_with_why(api: Api) -> None:
    told = confounded(60)
    for number, one in enumerate(told):
        one.agent_id = f"agent-{number}"
        one.metadata.update({"ticket": f"T-{number}", "language": "en", "budget": 5})
    tell(api, told)
    asked = ["difficulty", "metadata.ticket", "language", "budget", "tag:noise", "agent", "user"]
    answer = discover(api, adjust_for=asked, dry_run=True)
    assert set(answer.adjusted_for) >= {"difficulty", "tag:noise"}
    assert {one.name: one.why for one in answer.not_adjusted_for} == {
        "ticket": pb.NOT_ADJUSTED_REASON_TOO_FEW_ALIKE,
        "language": pb.NOT_ADJUSTED_REASON_SAME_IN_ALL,
        "budget": pb.NOT_ADJUSTED_REASON_SAME_IN_ALL,
        "agent": pb.NOT_ADJUSTED_REASON_TOO_FEW_ALIKE,
        "user": pb.NOT_ADJUSTED_REASON_SAME_IN_ALL,
    }
    assert not discover(api, dry_run=True).not_adjusted_for


def test_a_name_of_metadata_may_be_given_as_importing_experience_gives_it(api: Api) -> None:
    tell(api, confounded(100))
    expected = discover(api, adjust_for=["difficulty"])
    answer = discover(api, adjust_for=["metadata.difficulty"])
    assert "difficulty" in answer.adjusted_for
    assert found(answer).keys() == found(expected).keys()
    for key, effect in found(expected).items():
        assert found(answer)[key].uplift == effect.uplift


@pytest.mark.parametrize("amount", [1e160, 1.7e308])
def test_an_amount_of_any_size_is_adjusted_for(api: Api, amount: float) -> None:
    """Its squares, sums and differences may be beyond what a float64 holds."""
    told = confounded(500)
    for one in told:
        one.task = EASY  # Now only the metadata tells.
    tell(api, told)
    expected = discover(api, adjust_for=["difficulty"], dry_run=True)
    for one in told:
        hard = one.metadata["difficulty"]
        one.metadata["difficulty"] = amount if hard else -amount
    request = skill_service_pb2.ImportEpisodesRequest(
        episodes=told, on_conflict=skill_service_pb2.EPISODE_CONFLICT_REPLACE
    )
    api.skill.ImportEpisodes(request)
    answer = discover(api, adjust_for=["difficulty"], dry_run=True)
    assert answer.adjusted_for == expected.adjusted_for
    effects = found(answer)
    for key, effect in found(expected).items():
        assert effects[key].uplift == pytest.approx(effect.uplift)
        assert (effects[key].low, effects[key].high) == pytest.approx((effect.low, effect.high))


def test_what_succeeds_rarely_is_not_kept(api: Api) -> None:
    tell(api, confounded(2_000))
    answer = discover(api, min_success_rate=0.7)
    assert found(answer)["tag:careful", "success"].change == change("RARELY_SUCCEEDS")
    assert edges(api) == []


def test_no_episodes_are_an_answer(api: Api) -> None:
    answer = discover(api)
    assert (answer.episode_count, answer.tested_count, answer.refused_count) == (0, 0, 0)


def test_the_same_operation_is_started_once_and_without_a_question_asks_the_defaults(
    api: Api,
) -> None:
    tell(api, confounded(600))
    expected = discover(api, dry_run=True)
    question = pb.DiscoveryQuestion(min_success_rate=0, dry_run=True)
    request = pb.DiscoverRequest(question=question, operation_id="once")
    started = api.causal.Discover(request).operation
    assert (started.id, started.kind) == ("once", "discover")
    assert response(ended(api, "once")) == expected
    assert api.causal.Discover(request).operation.attempts == 1
    with refused() as failure:
        api.causal.Discover(pb.DiscoverRequest(operation_id="once"))
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "operation_id")
    assert finished(api, pb.DiscoverRequest()).tested_count == 4
