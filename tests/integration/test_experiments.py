"""Experiments: the server decides by chance who gets the cause, and says what came of it."""

from __future__ import annotations

from typing import Any

import pytest
import scipy
from google.protobuf.field_mask_pb2 import FieldMask
from mneme.v1 import causal_pb2, causal_service_pb2, discovery_pb2, episode_pb2, skill_service_pb2
from mneme.v1 import experiment_pb2 as pb
from support.api import Api, grpc, refused
from support.making import at, create_edge, struct
from support.operations import finished
from support.server import LocalServer


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("experiments")


def create(api: Api, **fields: Any) -> pb.Experiment:
    given = {"experiment_id": "x", "name": "Review", "cause": "review", "effect": "success"}
    return api.causal.CreateExperiment(pb.CreateExperimentRequest(**given | fields)).experiment


def assign(api: Api, subject: str, **fields: Any) -> pb.AssignTreatmentResponse:
    request = pb.AssignTreatmentRequest(
        **{"experiment_id": "x", "subject": subject} | fields  # type: ignore[arg-type]
    )
    return api.causal.AssignTreatment(request)


def observe(api: Api, outcome: float, **fields: Any) -> pb.RecordObservationResponse:
    request = pb.RecordObservationRequest(**{"experiment_id": "x", "outcome": outcome} | fields)
    return api.causal.RecordObservation(request)


def analyze(api: Api) -> pb.ExperimentResult:
    return api.causal.AnalyzeExperiment(pb.AnalyzeExperimentRequest(experiment_id="x")).result


def conclude(api: Api, **fields: Any) -> pb.ConcludeExperimentResponse:
    request = pb.ConcludeExperimentRequest(experiment_id="x", **fields)
    return api.causal.ConcludeExperiment(request)


def update(api: Api, *named: str, **new: Any) -> pb.Experiment:
    request = causal_service_pb2.UpdateExperimentRequest(
        experiment=pb.Experiment(id="x", **new), update_mask=FieldMask(paths=named or list(new))
    )
    return api.causal.UpdateExperiment(request).experiment


def test_an_update_changes_what_is_said_of_an_experiment_while_subjects_go_on(api: Api) -> None:
    made = create(api, description="Reviews find bugs", seed="s", metadata=struct(by="ann"))
    arms = [assign(api, f"subject-{n}").treatment for n in range(4)]
    observe(api, 1, subject="subject-0")
    changed = update(api, "name", "description", "metadata", name="Second look", cause="other")
    assert (changed.name, changed.description, dict(changed.metadata)) == ("Second look", "", {})
    assert (changed.cause, changed.seed, changed.created_at) == ("review", "s", made.created_at)
    assert (changed.assigned_count, changed.observation_count) == (4, 1)
    assert [assign(api, f"subject-{n}").treatment for n in range(4)] == arms
    assert (
        api.causal.GetExperiment(pb.GetExperimentRequest(experiment_id="x")).experiment == changed
    )


def test_what_is_compared_and_how_it_is_drawn_cannot_be_changed(api: Api) -> None:
    made = create(api)
    drawn = ("cause", "effect", "block_size", "treated_per_block", "seed", "status", "result")
    for field in drawn:
        with refused() as failure:
            update(api, field)
        assert (failure.code, failure.field) == (
            grpc.StatusCode.INVALID_ARGUMENT, "update_mask",
        )  # fmt: skip
    with refused() as failure:
        update(api, name=" ")
    assert failure.field == "experiment.name"
    assert api.causal.GetExperiment(pb.GetExperimentRequest(experiment_id="x")).experiment == made


def test_what_is_said_of_a_concluded_experiment_can_be_changed_and_its_result_stays(
    api: Api,
) -> None:
    create(api)
    for n in range(4):
        observe(api, n % 2, treatment=n < 2)
    concluded = conclude(api).experiment
    changed = update(api, description="Nothing came of it.")
    assert changed.description == "Nothing came of it."
    assert (changed.result, changed.edge_id) == (concluded.result, concluded.edge_id)
    assert (changed.status, changed.completed_at) == (concluded.status, concluded.completed_at)


def test_an_experiment_is_returned_as_it_was_created(api: Api) -> None:
    made = create(api, description="Reviews find bugs", seed="s", metadata=struct(by="ann"))
    assert (made.name, made.cause, made.effect) == ("Review", "review", "success")
    assert (made.block_size, made.treated_per_block, made.seed) == (4, 2, "s")
    assert made.status == pb.EXPERIMENT_STATUS_RUNNING
    assert create(api, description="Reviews find bugs", seed="s", metadata=struct(by="ann")) == made
    with refused() as failure:
        create(api, description="Reviews find bugs", seed="t", metadata=struct(by="ann"))
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "experiment_id")
    other = create(api, experiment_id="")
    assert len(other.seed) == 32
    listed = api.causal.ListExperiments(pb.ListExperimentsRequest(page_size=1))
    assert ([one.id for one in listed.experiments], listed.total_size) == ([other.id], 2)


@pytest.mark.parametrize("fields", [{"block_size": 1}, {"block_size": 4, "treated_per_block": 4}])
def test_a_block_needs_treated_and_untreated_subjects(api: Api, fields: dict[str, int]) -> None:
    with refused() as failure:
        create(api, **fields)
    assert (failure.reason, failure.field) == ("OUT_OF_RANGE", "treated_per_block")


def test_a_subject_keeps_its_arm_and_blocks_are_balanced_in_each_stratum(api: Api) -> None:
    create(api, block_size=4, treated_per_block=1, seed="s")
    arms: dict[str, list[bool]] = {"a": [], "b": []}
    for number in range(12):
        for stratum, given in arms.items():
            answer = assign(api, f"{stratum}-{number}", stratum=stratum)
            assert not answer.already_assigned
            given.append(answer.treatment)
    for given in arms.values():
        assert [sum(given[n : n + 4]) for n in (0, 4, 8)] == [1, 1, 1]
    again = assign(api, "a-3", stratum="b")
    assert (again.treatment, again.already_assigned) == (arms["a"][3], True)
    # The same seed decides the same elsewhere.
    create(api, experiment_id="y", block_size=4, treated_per_block=1, seed="s")
    there = [
        assign(api, str(number), experiment_id="y", stratum="a").treatment for number in range(12)
    ]
    assert there == arms["a"]


def test_the_test_and_its_interval_are_welchs(api: Api) -> None:
    create(api, seed="s")
    outcomes: dict[bool, list[float]] = {True: [], False: []}
    for number in range(40):
        treatment = assign(api, str(number)).treatment
        outcome = (number * 37 % 11) / 10 + 0.8 * treatment
        answer = observe(api, outcome, subject=str(number))
        assert (answer.treatment, answer.observation_count) == (treatment, number + 1)
        outcomes[treatment].append(outcome)
    result = analyze(api)
    expected = scipy.stats.ttest_ind(outcomes[True], outcomes[False], equal_var=False)
    interval = expected.confidence_interval()
    assert result.p_value == pytest.approx(expected.pvalue, rel=1e-6)
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high), rel=1e-4)
    assert (result.treatment.count, result.control.count) == (20, 20)
    assert result.uplift == pytest.approx(result.treatment.mean - result.control.mean)
    assert result.sequential_low < result.low < result.high < result.sequential_high
    assert "one look" in result.notes[-1]


def test_an_observation_counts_once_and_a_subject_once(api: Api) -> None:
    create(api)
    mine = assign(api, "ann").treatment
    first = observe(api, 1, subject="ann", observation_id="o", observed_at=at(1))
    assert observe(api, 1, subject="ann", observation_id="o") == first
    with refused() as failure:
        observe(api, 0, subject="ann", observation_id="o")
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "observation_id")
    with refused() as failure:
        observe(api, 1, subject="ann", treatment=not mine)
    assert (failure.code, failure.field) == (grpc.StatusCode.FAILED_PRECONDITION, "treatment")
    observe(api, 0, subject="ann", treatment=mine)
    result = analyze(api)
    arm = result.treatment if mine else result.control
    assert (arm.count, arm.mean, arm.HasField("deviation")) == (1, 0.5, False)
    assert any("more than once" in note for note in result.notes)
    assert not result.HasField("p_value")


def test_an_arm_that_a_caller_says_is_told_from_one_of_chance(api: Api) -> None:
    create(api)
    for fields in ({}, {"subject": "bo"}):
        with refused() as failure:
            observe(api, 1, **fields)
        assert (failure.reason, failure.field) == ("MISSING_REQUIRED_FIELD", "treatment")
    for outcome in (0, 1, 1):
        observe(api, outcome, treatment=True)
        observe(api, 1 - outcome, treatment=False)
    result = analyze(api)
    assert (result.treatment.count, result.control.count, result.not_assigned_count) == (3, 3, 6)
    assert any("not chance" in note for note in result.notes)
    assert result.HasField("p_value")


def test_a_subject_that_was_observed_in_both_arms_counts_in_neither(api: Api) -> None:
    create(api)
    for outcome in (0, 1, 1):
        observe(api, outcome, treatment=True)
        observe(api, 1 - outcome, treatment=False)
    before = analyze(api)
    for treatment in (True, False, False):
        observe(api, 100, subject="bo", treatment=treatment)
    result = analyze(api)
    told = "1 subject was observed in both arms: it counts in neither."
    assert set(result.notes) == {told, *before.notes}
    del result.notes[:], before.notes[:]
    assert result == before


def test_what_never_differs_is_not_tested(api: Api) -> None:
    create(api)
    for treatment in (True, False) * 3:
        observe(api, 1, treatment=treatment)
    result = analyze(api)
    assert (result.uplift, result.HasField("p_value"), result.HasField("low")) == (0, False, False)
    assert result.notes[0] == "All outcomes are the same: nothing can be tested yet."


def test_a_concluded_experiment_keeps_its_result_and_makes_an_edge(api: Api) -> None:
    create(api, seed="s")
    for number in range(12):
        treatment = assign(api, str(number)).treatment
        observe(api, number % 3 + 4 * treatment, subject=str(number))
    before = analyze(api)
    done = conclude(api)
    assert done.experiment.status == pb.EXPERIMENT_STATUS_COMPLETED
    assert done.experiment.result == before
    assert (done.edge.cause, done.edge.effect) == ("review", "success")
    assert done.edge.uplift == pytest.approx(before.uplift)
    assert done.edge.confidence == pytest.approx(1 - before.p_value)
    assert (done.edge.sample_size, list(done.edge.experiment_ids)) == (12, ["x"])
    assert (done.edge.low, done.edge.high) == (before.low, before.high)
    assert done.edge.origin == causal_pb2.EDGE_ORIGIN_EXPERIMENT
    assert done.experiment.edge_id == done.edge.id
    assert conclude(api) == done
    for act in (lambda: observe(api, 1, treatment=True), lambda: assign(api, "late")):
        with refused() as failure:
            act()
        assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
    assert assign(api, "3").already_assigned
    api.causal.DeleteExperiment(pb.DeleteExperimentRequest(experiment_id="x"))
    with refused() as failure:
        analyze(api)
    assert failure.code == grpc.StatusCode.NOT_FOUND
    assert api.causal.GetEdge(causal_pb2.GetEdgeRequest(edge_id=done.edge.id)).edge == done.edge


def test_an_edge_that_was_discovered_keeps_no_figure_of_it_beside_those_of_an_experiment(
    api: Api,
) -> None:
    told = [
        episode_pb2.Episode(
            id=f"e-{number:03}", task="Fix a typo", success=number % 3 > 0,
            reward=number % 3, tags=["review"] * (number % 3 > 0), occurred_at=at(number),
        )
        for number in range(150)
    ]  # fmt: skip
    api.skill.ImportEpisodes(skill_service_pb2.ImportEpisodesRequest(episodes=told))
    question = discovery_pb2.DiscoveryQuestion(min_success_rate=0)
    found = finished(api, discovery_pb2.DiscoverRequest(question=question)).findings
    edge_id = next(one.edge_id for one in found if one.outcome == "success")
    edge = api.causal.GetEdge(causal_pb2.GetEdgeRequest(edge_id=edge_id)).edge
    assert "plain_difference" in edge.metadata
    create(api, cause="tag:review")
    for number in range(8):
        observe(api, number // 3, treatment=number % 2 == 0)
    after = conclude(api).edge
    assert (after.id, after.origin) == (edge.id, causal_pb2.EDGE_ORIGIN_EXPERIMENT)
    assert not after.metadata
    assert not after.evidence_ids


def test_an_edge_that_a_caller_states_is_left_alone_and_a_circle_is_refused(api: Api) -> None:
    stated = create_edge(api, "review", "success", 0.9, edge_id="stated")
    create(api)
    for number in range(8):
        observe(api, number // 3, treatment=number % 2 == 0)
    done = conclude(api)
    assert (done.HasField("edge"), done.experiment.edge_id) == (False, "")
    found = api.causal.GetEdge(causal_pb2.GetEdgeRequest(edge_id="stated")).edge
    assert found == stated
    create(api, experiment_id="y", cause="success", effect="review")
    for number in range(8):
        observe(api, number // 3, treatment=number % 2 == 0, experiment_id="y")
    with refused() as failure:
        api.causal.ConcludeExperiment(pb.ConcludeExperimentRequest(experiment_id="y"))
    assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
    assert "'success' → 'review' → 'success'" in failure.message
    got = api.causal.GetExperiment(pb.GetExperimentRequest(experiment_id="y")).experiment
    assert got.status == pb.EXPERIMENT_STATUS_RUNNING
