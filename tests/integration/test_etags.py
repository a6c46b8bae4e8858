"""Etags of what is neither a lesson nor a memory: each kind has them, and they mean the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from mneme.v1 import alert_service_pb2 as alert_pb
from mneme.v1 import causal_pb2, causal_service_pb2
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import experiment_pb2 as experiment_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import pattern_pb2 as pattern_pb
from mneme.v1 import skill_service_pb2 as skill_pb
from support.api import Api, grpc, refused
from support.making import create_edge, episode, skill, struct
from support.server import LocalServer

ABORTED = (grpc.StatusCode.ABORTED, "ETAG_MISMATCH")


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("etags")


@dataclass(frozen=True)
class Kind:
    """A kind of thing, and how it is made, read, listed, used and deleted."""

    name: str
    make: Callable[[Api], Any]
    get: Callable[[Api, Any], Any]
    listed: Callable[[Api], Any]
    delete: Callable[[Api, Any, str], Any]
    use: Callable[[Api, Any], Any] | None = None
    change: Callable[[Api, Any, str, str], Any] | None = None


def _change(call: str, service: str, request: Any, part: str, field: str) -> Any:
    """Return what changes a field of a thing to a text, with an etag."""

    def change(api: Api, thing: Any, etag: str, text: str) -> Any:
        new = type(thing)(id=thing.id, etag=etag, **{field: text})
        asked = request(**{part: new, "update_mask": FieldMask(paths=[field])})
        return getattr(getattr(getattr(api, service), call)(asked), part)

    return change


def _skill(api: Api) -> skill_pb.Skill:
    first, second = episode(api, "one"), episode(api, "two")
    return skill(
        api, "deploy", tags=["b", "a"], metadata=struct(tries=1, share=0.5),
        source_episode_ids=[second.id, first.id], claimed_success_rate=1,
    )  # fmt: skip


def _pattern(api: Api) -> pattern_pb.Pattern:
    semantic = pattern_pb.SemanticPattern(text="tides", threshold=1)
    request = pattern_pb.CreatePatternRequest(name="tides", semantic=semantic)
    return api.memory.CreatePattern(request).pattern


def _match(api: Api, thing: pattern_pb.Pattern) -> None:
    api.memory.MatchPattern(memory_pb.MatchPatternRequest(name=thing.name))


def _experiment(api: Api) -> experiment_pb.Experiment:
    request = experiment_pb.CreateExperimentRequest(name="Review", cause="review", effect="success")
    return api.causal.CreateExperiment(request).experiment


def _observe(api: Api, thing: experiment_pb.Experiment) -> None:
    api.causal.AssignTreatment(
        experiment_pb.AssignTreatmentRequest(experiment_id=thing.id, subject="ann")
    )
    api.causal.RecordObservation(
        experiment_pb.RecordObservationRequest(experiment_id=thing.id, subject="ann", outcome=1)
    )


def _rule(api: Api) -> alert_pb.AlertRule:
    request = alert_pb.CreateAlertRuleRequest(
        name="failures",
        condition=alert_pb.ALERT_CONDITION_ERROR_RATE_EXCEEDS,
        threshold=1,
        resolve_threshold=0,
        scope=alert_pb.AlertScope(tags=["b", "a"]),
    )
    return api.alert.CreateAlertRule(request).rule


KINDS = (
    Kind(
        "episode",
        make=lambda api: episode(api, "Deploy", critique="too late", tags=["b", "a"], reward=1),
        get=lambda api, it: (
            api.skill.GetEpisode(episode_pb.GetEpisodeRequest(episode_id=it.id)).episode
        ),
        listed=lambda api: api.skill.ListEpisodes(episode_pb.ListEpisodesRequest()).episodes[0],
        delete=lambda api, it, etag: api.skill.DeleteEpisode(
            episode_pb.DeleteEpisodeRequest(episode_id=it.id, etag=etag)
        ),
        change=_change(
            "UpdateEpisode", "skill", skill_pb.UpdateEpisodeRequest, "episode", "critique"
        ),
    ),
    Kind(
        "skill",
        make=_skill,
        get=lambda api, it: api.skill.GetSkill(skill_pb.GetSkillRequest(skill_id=it.id)).skill,
        listed=lambda api: api.skill.ListSkills(skill_pb.ListSkillsRequest()).skills[0],
        delete=lambda api, it, etag: api.skill.DeleteSkill(
            skill_pb.DeleteSkillRequest(skill_id=it.id, etag=etag)
        ),
        use=lambda api, it: api.skill.RecordSkillUse(
            skill_pb.RecordSkillUseRequest(skill_id=it.id, success=True)
        ),
        change=_change("UpdateSkill", "skill", skill_pb.UpdateSkillRequest, "skill", "description"),
    ),
    Kind(
        "pattern",
        make=_pattern,
        get=lambda api, it: (
            api.memory.GetPattern(pattern_pb.GetPatternRequest(name=it.name)).pattern
        ),
        listed=lambda api: api.memory.ListPatterns(pattern_pb.ListPatternsRequest()).patterns[0],
        delete=lambda api, it, etag: api.memory.DeletePattern(
            pattern_pb.DeletePatternRequest(name=it.name, etag=etag)
        ),
        use=_match,
        change=_change(
            "UpdatePattern", "memory", pattern_pb.UpdatePatternRequest, "pattern", "description"
        ),
    ),
    Kind(
        "edge",
        make=lambda api: create_edge(api, "review", "success", 1, evidence_ids=["b", "a"]),
        get=lambda api, it: api.causal.GetEdge(causal_pb2.GetEdgeRequest(edge_id=it.id)).edge,
        listed=lambda api: api.causal.ListEdges(causal_pb2.ListEdgesRequest()).edges[0],
        delete=lambda api, it, etag: api.causal.DeleteEdge(
            causal_pb2.DeleteEdgeRequest(edge_id=it.id, etag=etag)
        ),
        change=_change(
            "UpdateEdge", "causal", causal_service_pb2.UpdateEdgeRequest, "edge", "mechanism"
        ),
    ),
    Kind(
        "experiment",
        make=_experiment,
        get=lambda api, it: (
            api.causal.GetExperiment(
                experiment_pb.GetExperimentRequest(experiment_id=it.id)
            ).experiment
        ),
        listed=lambda api: api.causal.ListExperiments(
            experiment_pb.ListExperimentsRequest()
        ).experiments[0],
        delete=lambda api, it, etag: api.causal.DeleteExperiment(
            experiment_pb.DeleteExperimentRequest(experiment_id=it.id, etag=etag)
        ),
        use=_observe,
        change=_change(
            "UpdateExperiment",
            "causal",
            causal_service_pb2.UpdateExperimentRequest,
            "experiment",
            "description",
        ),
    ),
    Kind(
        "rule",
        make=_rule,
        get=lambda api, it: (
            api.alert.GetAlertRule(alert_pb.GetAlertRuleRequest(rule_id=it.id)).rule
        ),
        listed=lambda api: api.alert.ListAlertRules(alert_pb.ListAlertRulesRequest()).rules[0],
        delete=lambda api, it, etag: api.alert.DeleteAlertRule(
            alert_pb.DeleteAlertRuleRequest(rule_id=it.id, etag=etag)
        ),
        change=_change("UpdateAlertRule", "alert", alert_pb.UpdateAlertRuleRequest, "rule", "name"),
    ),
)
of_each = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
of_the_used = pytest.mark.parametrize(
    "kind", [one for one in KINDS if one.use], ids=lambda kind: kind.name
)
of_the_changed = pytest.mark.parametrize(
    "kind", [one for one in KINDS if one.change], ids=lambda kind: kind.name
)


@of_each
def test_whoever_makes_gets_or_lists_a_thing_reads_the_same_etag(kind: Kind, api: Api) -> None:
    made = kind.make(api)
    assert made.etag
    assert (kind.get(api, made).etag, kind.listed(api).etag) == (made.etag, made.etag)


@of_the_used
def test_using_a_thing_does_not_change_its_etag(kind: Kind, api: Api) -> None:
    made = kind.make(api)
    assert kind.use
    kind.use(api, made)
    assert kind.get(api, made).etag == made.etag


@of_the_changed
def test_a_change_with_the_etag_is_made_and_one_with_an_older_etag_is_not(
    kind: Kind, api: Api
) -> None:
    made = kind.make(api)
    assert kind.change
    theirs = kind.change(api, made, made.etag, "theirs")
    assert theirs.etag != made.etag
    with refused() as failure:
        kind.change(api, made, made.etag, "mine")
    assert (failure.code, failure.reason) == ABORTED
    assert "again before you change it" in failure.message
    assert kind.get(api, made) == theirs
    assert kind.change(api, made, "", "mine").etag != theirs.etag, "without an etag nobody asks"


@of_the_changed
def test_a_change_of_nothing_keeps_the_etag_and_says_if_it_is_an_older_one(
    kind: Kind, api: Api
) -> None:
    made = kind.make(api)
    assert kind.change
    first = kind.change(api, made, "", "theirs")
    assert kind.change(api, made, first.etag, "theirs") == first
    with refused() as failure:
        kind.change(api, made, made.etag, "theirs")
    assert (failure.code, failure.reason) == ABORTED


@of_each
def test_a_thing_is_deleted_with_its_etag_and_not_with_another(kind: Kind, api: Api) -> None:
    made = kind.make(api)
    with refused() as failure:
        kind.delete(api, made, "another")
    assert (failure.code, failure.reason) == ABORTED
    assert "again before you change it" in failure.message
    assert kind.get(api, made) == made
    kind.delete(api, made, made.etag)
    with refused() as failure:
        kind.get(api, made)
    assert failure.code == grpc.StatusCode.NOT_FOUND


def test_an_experiment_that_was_concluded_is_not_the_one_that_was_read(api: Api) -> None:
    made = _experiment(api)
    request = experiment_pb.ConcludeExperimentRequest(experiment_id=made.id)
    concluded = api.causal.ConcludeExperiment(request).experiment
    assert concluded.etag != made.etag
