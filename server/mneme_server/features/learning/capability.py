"""Learning a policy from rewards: which action works in which situation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from mneme.v1 import learning_service_pb2

from mneme_server.capability import Capability, Figure, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.corpus.forgetting import Items
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.settings import ServerSettings
from mneme_server.engine.store.database import Database
from mneme_server.features.admin.tenant_operations import Moving
from mneme_server.features.learning.acting import Act
from mneme_server.features.learning.asking import AskedSessions
from mneme_server.features.learning.catalogue import algorithms, find_algorithm
from mneme_server.features.learning.ending import EndSession
from mneme_server.features.learning.evaluating import Evaluate
from mneme_server.features.learning.explaining_choices import Explain
from mneme_server.features.learning.exporting import DownloadModel, KeepModel
from mneme_server.features.learning.gating import Gating
from mneme_server.features.learning.importing.importing import ImportExperience
from mneme_server.features.learning.measuring import Measure
from mneme_server.features.learning.model_files import TenantModelFiles
from mneme_server.features.learning.open_sessions import OpenSessions
from mneme_server.features.learning.predicting import Predict
from mneme_server.features.learning.quota import TrainingQuota
from mneme_server.features.learning.recording import Record
from mneme_server.features.learning.service import LearningServicer
from mneme_server.features.learning.sessions import Sessions, StartSession
from mneme_server.features.learning.settings import LearningSettings
from mneme_server.features.learning.shaping_rewards import ShapeReward
from mneme_server.features.learning.skill_shelf import SkillShelf
from mneme_server.features.learning.store.exports import SqlLearningExports
from mneme_server.features.learning.store.forgetting import FORGETS, LEARNING_SESSION, POLICY, STEP
from mneme_server.features.learning.store.sessions import SqlLearningSessions
from mneme_server.features.learning.store.steps import SqlLearningSteps
from mneme_server.features.learning.trainer import Trainer
from mneme_server.features.learning.training import Train
from mneme_server.features.learning.trajectories import Trajectories
from mneme_server.features.learning.transferring import Transfer
from mneme_server.features.learning.worker import LEARNING_JOB, LearningWorker
from mneme_server.features.skills.skills import Skills

_PATIENCE_S = 30.0
"""How long forgetting waits for another server to hand sessions over: as long as for calls."""


class _Forget:
    """Forgets the sessions of tenants that are removed; see `TenantListener`."""

    def __init__(self, sessions: OpenSessions, asked: AskedSessions) -> None:
        self._sessions = sessions
        self._asked = asked

    def committed(self, tenant_id: str) -> None:
        """Nothing follows from a commit."""

    def removed(self, tenant_id: str, *, replaced: bool) -> None:
        """What is in memory is not what will be stored."""
        self._sessions.forget(tenant_id)
        self._asked.forget(tenant_id)


class _WhileForgetting:
    """See `engine.corpus.forgetting.WhileForgetting`."""

    def __init__(
        self,
        sessions: OpenSessions,
        asked: AskedSessions,
        files: TenantModelFiles,
        wake: Callable[[str], object],
    ) -> None:
        self._sessions = sessions
        self._asked = asked
        self._files = files
        self._wake = wake

    @contextmanager
    def __call__(self, tenant: OpenTenant[Any]) -> Iterator[Callable[[Items], None]]:
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


def _let_go(tenants: OpenTenants[Any], sessions: OpenSessions, tenant_id: str) -> None:
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
    cluster, most = runtime.cluster, settings.learning_open_sessions
    trainer = Trainer(None if cluster is None else cluster.training)
    open_sessions = OpenSessions(find_algorithm, most, trainer)
    asked = AskedSessions(open_sessions, find_algorithm, most)
    runtime.before_closing(open_sessions.park_all)
    runtime.before_closing(lambda tenant: asked.forget(tenant.tenant_id))
    runtime.listen(_Forget(open_sessions, asked))
    if cluster is not None:
        cluster.on_claim(partial(_let_go, tenants, open_sessions))
    sessions = Sessions(tenants, open_sessions, files)
    measure = Measure(tenants, sessions)
    predict = Predict(tenants, asked, open_sessions, Gating(find_algorithm))
    wake = partial(runtime.wake, LEARNING_JOB)
    quota = TrainingQuota(open_sessions, settings.learning_seconds)
    record = Record(tenants, open_sessions, settings.learning_bytes, quota, wake)
    while_forgetting = _WhileForgetting(open_sessions, asked, files, wake)
    servicer = LearningServicer(
        algorithms=algorithms,
        start_session=StartSession(tenants, open_sessions, settings.learning_sessions),
        end_session=EndSession(
            tenants,
            open_sessions,
            measure,
            KeepModel(files, settings.learning_bytes),
            SkillShelf(host.get(Skills)),
        ),
        download_model=DownloadModel(tenants),
        sessions=sessions,
        predict=predict,
        record=record,
        trajectories=Trajectories(tenants),
        import_experience=ImportExperience(tenants, record),
        measure=measure,
        evaluate=Evaluate(tenants, asked, find_algorithm),
        explain=Explain(tenants, asked),
        transfer=Transfer(tenants, open_sessions, find_algorithm),
        shape_reward=ShapeReward(tenants, open_sessions, wake),
        act=Act(predict, record),
        train=Train(tenants, open_sessions, quota, wake),
        watchdog=runtime.watchdog,
        foreground=runtime.foreground,
    )
    descriptor = learning_service_pb2.DESCRIPTOR.services_by_name["LearningService"]
    return Parts(
        services=[Service(descriptor, servicer)],
        figures=[
            Figure("learning_sessions", lambda unit: unit.learning_sessions.count()),
            Figure("experiences", lambda unit: unit.learning_sessions.transitions()),
        ],
        jobs={LEARNING_JOB: LearningWorker(tenants.open, open_sessions, quota, runtime.foreground)},
        forgetting=while_forgetting,
        purge=while_forgetting.purge,
    )


CAPABILITY = Capability(
    name="learning",
    build=_build,
    repositories={
        "learning_sessions": SqlLearningSessions,
        "learning_steps": SqlLearningSteps,
        "learning_exports": SqlLearningExports,
    },
    migrations=Path(__file__).parent / "migrations",
    forgets=FORGETS,
)
