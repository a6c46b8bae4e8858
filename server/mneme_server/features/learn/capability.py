"""Learning from experience: lessons, reflections, the knowledge log."""

from __future__ import annotations

from mneme.v1 import learn_service_pb2

from mneme_server.capability import Capability, Figure, Gauge, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.features.learn.knowledge import Knowledge
from mneme_server.features.learn.lessons import Lessons
from mneme_server.features.learn.model import (
    KNOWLEDGE,
    LESSON,
    REFLECTION,
    ReflectionFilter,
    ReflectionLimits,
)
from mneme_server.features.learn.reflections import Reflections, ReflectionTotals
from mneme_server.features.learn.service import LearnServicer
from mneme_server.features.learn.settings import ReflectionSettings
from mneme_server.features.learn.store.forgetting import FORGETS
from mneme_server.features.learn.store.knowledge import KNOWLEDGE_DETAILS
from mneme_server.features.learn.store.lessons import LESSON_DETAILS, SqlLessons
from mneme_server.features.learn.store.reflections import (
    REFLECTION_DETAILS,
    SqlReflections,
)
from mneme_server.features.learn.usage import Usage
from mneme_server.features.recall.search import Recall


def _build(host: Host) -> Parts:
    recall, writing, tally = host.get(Recall), host.runtime.writing, ReflectionTotals()
    kept = host.settings(ReflectionSettings)
    limits = ReflectionLimits(
        per_session=kept.reflections_per_session,
        per_project=kept.reflections_per_project,
    )
    usage = Usage()
    host.runtime.before_closing(usage.write)
    reflections = Reflections(host.tenants, writing, recall, limits, tally, usage)
    servicer = LearnServicer(
        Lessons(host.tenants, writing, recall, usage),
        reflections,
        Knowledge(host.tenants, writing, recall),
    )
    return Parts(
        services=[
            Service(
                learn_service_pb2.DESCRIPTOR.services_by_name["LearnService"],
                servicer,
            )
        ],
        offers=[reflections, usage],
        figures=[
            Figure("lessons", lambda unit: unit.get(SqlLessons).total()),
            Figure("reflections", lambda unit: unit.get(SqlReflections).count(ReflectionFilter())),
        ],
        jobs={"usage": usage.writer(host.tenants)},
        gauges=[Gauge(f"mneme_{name}", meaning, value) for name, meaning, value in tally.gauges()],
    )


CAPABILITY = Capability(
    name="learn",
    build=_build,
    kinds={
        LESSON: LESSON_DETAILS,
        REFLECTION: REFLECTION_DETAILS,
        KNOWLEDGE: KNOWLEDGE_DETAILS,
    },
    forgets=FORGETS,
)
