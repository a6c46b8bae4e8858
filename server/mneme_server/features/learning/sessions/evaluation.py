"""The evaluation of what a session learns: would it have done better than what was done?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mneme_server.common import deadline
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.algorithms.algorithm import (
    Algorithm,
    Closes,
    Learner,
    LearningTask,
    Transition,
)
from mneme_server.features.learning.model import Definition, RecordedStep
from mneme_server.features.learning.sessions.live_session import LiveSession, Tenant
from mneme_server.features.learning.sessions.session_copies import SessionCopies
from mneme_server.features.learning.spaces import Box
from mneme_server.features.learning.store.steps import SqlLearningSteps
from mneme_server.features.learning.trust.blocks import Basis, Episode, episodes_of
from mneme_server.features.learning.trust.evaluation import Evaluation, evaluate_learning
from mneme_server.features.learning.trust.reward_model import model_policy

MOST_STEPS = 10_000
"""Steps that are read, the newest; of algorithms that learn with torch, a fifth of them."""
_PART = 500


@dataclass(frozen=True, slots=True)
class SessionEvaluation:
    """An evaluation, and of how many steps it knows.

    Args:
        evaluation: see there.
        steps: that were read, the newest.
        truncated: whether there were more.
    """

    evaluation: Evaluation
    steps: int
    truncated: bool


class Evaluate:
    """The use case: evaluate what a session learns. Nothing is written.

    Args:
        tenants: where tenants are.
        sessions: lends those that are asked.
        algorithm: returns an algorithm by its name, or None.
    """

    def __init__(
        self,
        tenants: OpenTenants,
        sessions: SessionCopies,
        algorithm: Callable[[str], Algorithm | None],
    ) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._algorithm = algorithm

    def evaluate(self, tenant_id: str, session_id: str) -> SessionEvaluation:
        """Evaluate what a session learns.

        Raises:
            NotFound: there is no such session.
            FailedPrecondition: this server cannot run it.
        """
        with (
            self._tenants.open(tenant_id) as tenant,
            self._sessions.use(tenant, session_id) as live,
        ):
            algorithm = self._algorithm(live.session.definition.algorithm)
            assert algorithm is not None  # Or the session could not have been opened.
            most = MOST_STEPS // 5 if algorithm.needs_torch else MOST_STEPS
            total = live.tally.counts.transitions
            steps = newest_steps(tenant, live, total, most)
            with deadline.holding(live.thinking):
                transitions = live.policy.transitions(steps)
            basis = basis_of(live.session.definition)
            episodes = episodes_to_judge(live.session.definition, transitions)
            if isinstance(live.session.definition.actions, Box):
                with deadline.holding(live.thinking):
                    found = model_policy(basis, episodes, live.policy.learner)
            else:
                learner = fresh(algorithm, live.session.definition)
                try:
                    found = evaluate_learning(basis, episodes, learner)
                finally:
                    if isinstance(learner, Closes):
                        learner.close()
            return SessionEvaluation(found, len(steps), total > len(steps))


def episodes_to_judge(definition: Definition, transitions: Sequence[Transition]) -> list[Episode]:
    """Return the episodes of a session that ended. To algorithms that look at nothing but an
    action's own reward each step is one."""
    if "discount_factor" in definition.config:
        return episodes_of(transitions)
    return [
        [replace(one, next_state=None, terminated=True, truncated=False)] for one in transitions
    ]


def newest_steps(tenant: Tenant, live: LiveSession, total: int, most: int) -> list[RecordedStep]:
    """Return the newest of a session's `total` steps, in their order, without those of episodes
    that had begun before."""
    cut = max(0, total - most)
    found: list[RecordedStep] = []
    place = max(0, cut - _PART)  # Before the cut, to see which episodes are under way.
    while place < total:
        with tenant.read() as unit:
            part = unit.get(SqlLearningSteps).after(live.session.number, place, _PART)
        if not part:
            break
        found += part
        place = part[-1].number
    begun = max((step.episode for step in found if step.number <= cut), default=0)
    return [step for step in found if step.number > cut and step.episode > begun]


def basis_of(definition: Definition) -> Basis:
    """Return what is the same for all evaluations of a session."""
    return Basis(definition.states, float(definition.config.get("discount_factor", 1.0)))


def fresh(algorithm: Algorithm, definition: Definition) -> Learner:
    """Return a learner that has learned nothing."""
    task = LearningTask(definition.states, definition.actions, definition.config, definition.seed)
    return algorithm.make(task)
