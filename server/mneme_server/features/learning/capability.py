"""Learning a policy from rewards: which action works in which situation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from mneme.v1 import learning_service_pb2

from mneme_server.capability import Capability, Figure, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.corpus.forgetting import Items
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.settings import ServerSettings
from mneme_server.engine.store.connections import Database
from mneme_server.features.admin.tenant_operations import Moving
from mneme_server.features.learning.catalogue import algorithms, find_algorithm
from mneme_server.features.learning.explanation.explanation import Explain
from mneme_server.features.learning.export.exports import DownloadModel, KeepModel, TenantModelFiles
from mneme_server.features.learning.export.learned_skills import SkillShelf
from mneme_server.features.learning.export.session_end import EndLearningSession
from mneme_server.features.learning.forgetting import FORGETS, LEARNING_SESSION, POLICY, STEP
from mneme_server.features.learning.imports.experience_import import ImportExperience
from mneme_server.features.learning.service.experience import ExperienceCalls
from mneme_server.features.learning.service.policies import PolicyCalls
from mneme_server.features.learning.service.sessions import SessionCalls
from mneme_server.features.learning.service.trust import TrustCalls
from mneme_server.features.learning.sessions.evaluation import Evaluate
from mneme_server.features.learning.sessions.experience import RecordExperience
from mneme_server.features.learning.sessions.metrics import MeasureSession
from mneme_server.features.learning.sessions.open_sessions import OpenSessions, TrainingQuota
from mneme_server.features.learning.sessions.prediction import Act, Predict, SessionGates
from mneme_server.features.learning.sessions.session_copies import SessionCopies
from mneme_server.features.learning.sessions.sessions import (
    LearningSessions,
    StartLearningSession,
    Trajectories,
)
from mneme_server.features.learning.sessions.shaped_rewards import ShapeReward
from mneme_server.features.learning.sessions.train import Train
from mneme_server.features.learning.sessions.training_lease import TrainingLease
from mneme_server.features.learning.sessions.worker import LEARNING_JOB, LearningWorker
from mneme_server.features.learning.settings import LearningSettings
from mneme_server.features.learning.store.sessions import SqlLearningSessions
from mneme_server.features.learning.transfer.transfer import Transfer
from mneme_server.features.skills.skills import Skills

_PATIENCE_S = 30.0
"""How long forgetting waits for another server to hand sessions over: as long as for calls."""


class _SessionRemoval:
    """Forgets the sessions of tenants that are removed; see `TenantListener`."""

    def __init__(self, sessions: OpenSessions, asked: SessionCopies) -> None:
        self._sessions = sessions
        self._asked = asked

    def committed(self, tenant_id: str) -> None:
        """Nothing follows from a commit."""

    def removed(self, tenant_id: str, *, replaced: bool) -> None:
        """What is in memory is not what will be stored."""
        self._sessions.forget(tenant_id)
        self._asked.forget(tenant_id)


class _SessionHold:
    """See `engine.corpus.forgetting.WhileForgetting`."""

    def __init__(
        self,
        sessions: OpenSessions,
        asked: SessionCopies,
        files: TenantModelFiles,
        wake: Callable[[str], object],
    ) -> None:
        self._sessions = sessions
        self._asked = asked
        self._files = files
        self._wake = wake

    @contextmanager
    def hold(self, tenant: OpenTenant) -> Iterator[Callable[[Items], None]]:
        """Hold the sessions in memory; models that were learned of what went are removed."""
        with (
            self._sessions.leading(tenant.tenant_id, _PATIENCE_S),
            self._sessions.held(tenant.tenant_id) as erased,
        ):

            def told(items: Items) -> None:
                if any(items.get(kind) for kind in (STEP, POLICY, LEARNING_SESSION)):
                    erased()
                    self._wake(tenant.tenant_id)
                self.purge(tenant.tenant_id, items)

            yield told

    def purge(self, tenant_id: str, items: Items) -> None:
        """Remove the models of policies that began anew, and what is in memory to be asked."""
        self._asked.forget(tenant_id)
        for session_id in items.get(POLICY, ()):
            self._files.remove_of(tenant_id, session_id)


def _let_go(tenants: OpenTenants, sessions: OpenSessions, tenant_id: str) -> None:
    """Save what a tenant's sessions have learned, and have none in memory: another server is going
    to change them."""
    if sessions.all_of(tenant_id):
        with tenants.open(tenant_id) as tenant:
            sessions.park_all(tenant)


def _build(host: Host) -> Parts:
    runtime, tenants = host.runtime, host.tenants
    settings = host.settings(LearningSettings)
    shared, moving = host.get(Database).shared, host.get(Moving)
    files = TenantModelFiles(
        host.settings(ServerSettings).data_dir,
        lambda tenant: shared or bool(moving.place_of(tenant)),
    )
    servers, most = runtime.servers, settings.learning_open_sessions
    lease = TrainingLease(servers.training)
    open_sessions = OpenSessions(find_algorithm, most, lease)
    asked = SessionCopies(open_sessions, find_algorithm, most)
    runtime.before_closing(open_sessions.park_all)
    runtime.before_closing(lambda tenant: asked.forget(tenant.tenant_id))
    runtime.listen(_SessionRemoval(open_sessions, asked))
    servers.on_claim(partial(_let_go, tenants, open_sessions))
    sessions = LearningSessions(tenants, open_sessions, files)
    measure = MeasureSession(tenants, sessions, asked)
    predict = Predict(tenants, asked, open_sessions, SessionGates(find_algorithm))
    wake = partial(runtime.wake, LEARNING_JOB)
    quota = TrainingQuota(open_sessions, settings.learning_seconds)
    record = RecordExperience(tenants, open_sessions, settings.learning_bytes, quota, wake)
    while_forgetting = _SessionHold(open_sessions, asked, files, wake)
    keep = KeepModel(files, settings.learning_bytes)
    servicers = (
        SessionCalls(
            algorithms,
            StartLearningSession(tenants, open_sessions, settings.learning_sessions),
            sessions,
            EndLearningSession(tenants, open_sessions, measure, keep, SkillShelf(host.get(Skills))),
            DownloadModel(tenants),
        ),
        PolicyCalls(
            predict=predict,
            act=Act(predict, record),
            train=Train(tenants, open_sessions, quota, wake),
            transfer=Transfer(tenants, open_sessions, find_algorithm),
            shape=ShapeReward(tenants, open_sessions, wake),
            watchdog=runtime.watchdog,
        ),
        ExperienceCalls(
            record,
            Trajectories(tenants),
            ImportExperience(tenants, record),
            runtime.watchdog,
        ),
        TrustCalls(measure, Evaluate(tenants, asked, find_algorithm), Explain(tenants, asked)),
    )
    descriptor = learning_service_pb2.DESCRIPTOR.services_by_name["LearningService"]
    own, *more = (Service(descriptor, servicer) for servicer in servicers)
    return Parts(
        services=[own],
        calls=more,
        figures=[
            Figure("learning_sessions", lambda unit: unit.get(SqlLearningSessions).count()),
            Figure("experiences", lambda unit: unit.get(SqlLearningSessions).transitions()),
        ],
        jobs={LEARNING_JOB: LearningWorker(tenants.open, open_sessions, quota)},
        forgetting=while_forgetting.hold,
        purge=while_forgetting.purge,
    )


CAPABILITY = Capability(
    name="learning",
    build=_build,
    migrations=Path(__file__).parent / "migrations",
    forgets=FORGETS,
)
