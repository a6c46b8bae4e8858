"""Context: what earlier sessions came to, and what they left to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from mneme.v1 import context_service_pb2

from mneme_server.capability import Capability, Host, Parts
from mneme_server.common.clock import MICROSECONDS
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.corpus.forgetting import Items
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.features.context.experience import Experience
from mneme_server.features.context.learned import Learned
from mneme_server.features.context.model import SESSION
from mneme_server.features.context.profile import GetProfile
from mneme_server.features.context.retrieval import GetContext, SearchSessions
from mneme_server.features.context.service import ContextServicer
from mneme_server.features.context.sessions import GetTimeline
from mneme_server.features.context.sleep import Sleep
from mneme_server.features.context.store.forgetting import FORGETS
from mneme_server.features.context.store.summaries import (
    SESSION_DETAILS,
)
from mneme_server.features.context.summaries import SUMMARY_JOB, SummarySchedule, SummaryWorker
from mneme_server.features.context.wake_up import WakeUp
from mneme_server.features.events.recording import SessionListeners
from mneme_server.features.events.settings import SessionSettings
from mneme_server.features.learn.reflections import Reflections
from mneme_server.features.learn.usage import Usage
from mneme_server.features.recall.search import Recall


def _build(host: Host) -> Parts:
    runtime, tenants, recall = host.runtime, host.tenants, host.get(Recall)
    schedule = SummarySchedule(
        idle_us=int(host.settings(SessionSettings).session_idle_seconds * MICROSECONDS),
        wake=partial(runtime.wake, SUMMARY_JOB),
    )
    host.get(SessionListeners).add(schedule)
    learned = Learned(tenants, recall, host.get(Reflections), host.get(Usage))
    experience = Experience()
    servicer = ContextServicer(
        get_context=GetContext(
            tenants, runtime.asking, recall, learned, host.kinds.by_name, experience
        ),
        get_profile=GetProfile(tenants),
        sleep=Sleep(tenants, runtime.writing, schedule),
        wake_up=WakeUp(tenants, runtime.comparing, learned, experience),
        search_sessions=SearchSessions(tenants, recall),
        get_timeline=GetTimeline(tenants, runtime.comparing),
    )
    worker = SummaryWorker(
        tenants.open,
        runtime.background_embedder,
        idle_us=schedule.idle_us,
    )
    return Parts(
        services=[
            Service(
                context_service_pb2.DESCRIPTOR.services_by_name["ContextService"],
                servicer,
            )
        ],
        offers=[experience],
        jobs={SUMMARY_JOB: worker},
        forgetting=partial(_summing_up_again, partial(runtime.wake, SUMMARY_JOB)),
    )


@contextmanager
def _summing_up_again(
    wake: Callable[[str], object], tenant: OpenTenant
) -> Iterator[Callable[[Items], object]]:
    """Have sessions summed up again that lost events; see
    `engine.corpus.forgetting.WhileForgetting`."""
    yield lambda _items: wake(tenant.tenant_id)


CAPABILITY = Capability(
    name="context",
    build=_build,
    kinds={SESSION: SESSION_DETAILS},
    forgets=FORGETS,
)
