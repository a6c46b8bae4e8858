"""Evaluations, explanations and shaped rewards."""

from __future__ import annotations

from mneme.v1 import learning_service_pb2 as service_pb
from mneme.v1 import learning_trust_pb2 as pb

from mneme_server.common.canonical import canonical_json
from mneme_server.features.learning.algorithms.reward_shaping import Shaped, Shaping
from mneme_server.features.learning.explanation.attribution import (
    Absent,
    Attribution,
    Part,
    Path,
    name_of,
)
from mneme_server.features.learning.explanation.counterfactuals import Counterfactual
from mneme_server.features.learning.explanation.explanation import ActionNames, NamedExplanation
from mneme_server.features.learning.messages.spaces import action, given, value_of
from mneme_server.features.learning.sessions.policy import StateInput
from mneme_server.features.learning.sessions.prediction import BaselineInput
from mneme_server.features.learning.sessions.shaped_rewards import ShapingInput
from mneme_server.features.learning.transfer.transfer import TransferKind, TransferResult
from mneme_server.features.learning.trust.estimates import ValueEstimate
from mneme_server.features.learning.trust.evaluation import Evaluation, Propensities, summary
from mneme_server.features.learning.trust.gate import GateVerdict

_PROPENSITIES = {
    Propensities.RECORDED: pb.PROPENSITIES_RECORDED,
    Propensities.ESTIMATED: pb.PROPENSITIES_ESTIMATED,
    Propensities.PARTLY_ESTIMATED: pb.PROPENSITIES_PARTLY_ESTIMATED,
}
_SHAPING = {
    pb.SHAPING_TYPE_CURIOSITY: Shaping.CURIOSITY,
    pb.SHAPING_TYPE_NOVELTY: Shaping.NOVELTY,
    pb.SHAPING_TYPE_PROGRESS: Shaping.PROGRESS,
    pb.SHAPING_TYPE_NONE: Shaping.NONE,
}
TRANSFERS = {
    pb.TRANSFER_TYPE_FULL: TransferKind.FULL,
    pb.TRANSFER_TYPE_FREEZE_ENCODER: TransferKind.FREEZE_ENCODER,
    pb.TRANSFER_TYPE_FINE_TUNE: TransferKind.FINE_TUNE,
}


def evaluation(found: Evaluation, *, steps: int, truncated: bool = False) -> pb.OffPolicyEvaluation:
    """Return the message of an evaluation, for which so many steps were read."""
    return pb.OffPolicyEvaluation(
        summary=summary(found),
        refused=found.refused,
        episodes=found.episodes,
        decisions=found.decisions,
        effective_sample_size=found.effective,
        overlap=found.overlap,
        propensities=_PROPENSITIES[found.propensities],
        behaviour=estimate(found.behaviour),
        weighted_importance_sampling=estimate(found.weighted),
        doubly_robust=estimate(found.doubly_robust),
        gain=estimate(found.gain),
        modelled=estimate(found.modelled),
        steps_read=steps,
        truncated=truncated,
    )


def estimate(found: ValueEstimate | None) -> pb.Estimate | None:
    """Return the message of an estimate."""
    return None if found is None else pb.Estimate(value=found.value, low=found.low, high=found.high)


def explained(request: service_pb.ExplainRequest) -> StateInput:
    """Return the question of a request."""
    return StateInput(
        state=value_of(request.state, "state"),
        allowed=[
            value_of(one, f"allowed_actions[{place}]")
            for place, one in enumerate(request.allowed_actions)
        ],
    )


def explanation(found: NamedExplanation) -> pb.Explanation:
    """Return the message of an explanation."""
    why, named = found.explanation, found.named
    shares = sorted(why.attribution.shares.items(), key=lambda one: -abs(one[1]))
    return pb.Explanation(
        action=action(named.of(why.action)),
        chosen_action=action(named.of(why.choice.action)),
        confidence=why.choice.confidence,
        measure=why.measure,
        score=why.attribution.score,
        typical=why.attribution.typical,
        method=pb.ATTRIBUTION_METHOD_EXACT
        if why.attribution.exact
        else pb.ATTRIBUTION_METHOD_SAMPLED,
        feature_importance=[
            pb.FeatureImportance(
                feature=name_of(path),
                value=_part(why.state.get(path, Absent())),
                importance=share,
                **_reach(why.attribution, path, share),
            )
            for path, share in shares
        ],
        counterfactuals=[_counterfactual(one, named) for one in why.counterfactuals],
        decision_path=why.path,
        unknown=why.unknown,
    )


def _reach(found: Attribution, path: Path, share: float) -> dict[str, float]:
    """Return the ends of the interval of a share; nothing where it has none."""
    reach = found.reaches.get(path)
    return {} if reach is None else {"low": share - reach, "high": share + reach}


def _counterfactual(found: Counterfactual, named: ActionNames) -> pb.Counterfactual:
    return pb.Counterfactual(
        changes=[
            pb.FeatureChange(feature=name_of(path), value=_part(part))
            for path, part in found.changes.items()
        ],
        predicted_action=action(named.of(found.choice.action)),
        confidence=found.choice.confidence,
        distance=found.distance,
    )


def _part(part: Part) -> str:
    return "" if isinstance(part, Absent) else canonical_json(part)


def wanted(request: service_pb.ShapeRewardRequest) -> ShapingInput:
    """Return the step of a request whose reward is to be shaped."""
    return ShapingInput(
        state=value_of(request.state, "state"),
        next_state=given(request, "next_state"),
        action=given(request, "action"),
        actor=request.actor_id,
        ends=request.terminated,
        reward=request.extrinsic_reward,
        shaping=_SHAPING[request.shaping_type],
        weight=request.shaping_weight,
        potential_based=request.potential_based,
    )


def shaped(reward: float, found: Shaped) -> service_pb.ShapeRewardResponse:
    """Return the message of a shaped reward; `reward` is the task's own."""
    return service_pb.ShapeRewardResponse(
        extrinsic_reward=reward,
        intrinsic_reward=found.bonus,
        shaped_reward=found.reward,
        components=pb.ShapingComponents(
            curiosity_bonus=found.curiosity,
            novelty_bonus=found.novelty,
            progress_bonus=found.progress,
        ),
        keeps_best_policy=found.keeps_best_policy,
        why=found.why,
    )


def transferred(found: TransferResult) -> service_pb.TransferResponse:
    """Return the message of a transfer."""
    alike, before, after = found.similarity, found.before, found.after
    return service_pb.TransferResponse(
        task_similarity=pb.TaskSimilarity(
            overall=alike.overall,
            features=alike.features,
            actions=alike.actions,
            states=alike.states,
            rewards=alike.rewards,
            why=alike.why,
            reward_agreement=estimate(alike.agreement),
        ),
        parameters_transferred=found.numbers,
        performance_baseline=evaluation(before, steps=found.steps),
        performance_after_transfer=evaluation(after, steps=found.steps),
        improvement=None if found.gain is None else found.gain.value,
        gain=estimate(found.gain),
        worth=found.worth,
        applied=found.is_applied,
    )


def baseline(request: service_pb.PredictRequest | service_pb.ActRequest) -> BaselineInput | None:
    """Return the baseline of a request; None if it asks for the policy."""
    if not request.HasField("only_if_better"):
        return None
    wanted = request.only_if_better
    return BaselineInput(
        action=given(wanted, "action", "only_if_better."),
        first_steps=wanted.first_steps,
        behaviour=wanted.behaviour,
        low=wanted.lowest_reward,
        high=wanted.highest_reward,
    )


def verdict(found: GateVerdict | None) -> pb.GateVerdict | None:
    """Return the message of what a gate says."""
    if found is None:
        return None
    return pb.GateVerdict(
        trusts_policy=found.trusts_policy,
        decisions=found.decisions,
        gain=pb.Estimate(value=found.gain, low=found.low, high=found.high),
        why=found.why,
        rewards_beyond_range=found.clipped,
    )
