"""Cause and effect: edges, the chains they make, experiments, and discovery."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mneme.v1 import causal_service_pb2

from mneme_server.capability import Capability, Figure, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.background.periodic import Repeating
from mneme_server.engine.store.connections import Database
from mneme_server.features.admin.tenants import Tenants
from mneme_server.features.causal.chains import EffectChains
from mneme_server.features.causal.discovery import Discovery, DiscoveryOperation
from mneme_server.features.causal.edges import DependentEdges, Edges
from mneme_server.features.causal.experiments import Experiments
from mneme_server.features.causal.model import EdgeFilter
from mneme_server.features.causal.nightly import LOOK_EVERY_S, NightlyDiscovery
from mneme_server.features.causal.service import CausalServicer
from mneme_server.features.causal.store.edges import SqlEdges
from mneme_server.features.causal.store.forgetting import FORGETS
from mneme_server.features.causal.store.schedules import SqlSchedules
from mneme_server.features.memory.search import UpliftReader
from mneme_server.features.operations.messages import OperationKinds


def _build(host: Host) -> Parts:
    edges = Edges(host.tenants)
    chains = EffectChains(host.tenants)
    experiments = Experiments(host.tenants)
    discovery = Discovery(host.tenants)
    operations, tenants = host.get(OperationKinds), host.get(Tenants)
    schedules = SqlSchedules(host.get(Database))
    tenants.also_delete(schedules.drop)
    nightly = NightlyDiscovery(schedules, operations, tenants.get)
    looking = Repeating(nightly.look, LOOK_EVERY_S, "nightly-discovery")
    servicer = CausalServicer(
        edges=edges,
        chains=chains,
        experiments=experiments,
        nightly=nightly,
        operations=operations,
    )
    descriptor = causal_service_pb2.DESCRIPTOR.services_by_name["CausalService"]
    operations.bring(descriptor, {"discover": DiscoveryOperation(discovery)})
    return Parts(
        services=[Service(descriptor, servicer)],
        offers=[edges, chains, experiments, nightly],
        dependents=[DependentEdges()],
        figures=[
            Figure("causal_edges", lambda unit: unit.get(SqlEdges).count(EdgeFilter())),
            Figure("average_causal_confidence", lambda unit: unit.get(SqlEdges).confidence()),
        ],
        resume=partial(_look_now_and_again, nightly, looking),
        close=looking.stop,
    )


def _look_now_and_again(nightly: NightlyDiscovery, looking: Repeating) -> None:
    nightly.look()
    looking.start()


CAPABILITY = Capability(
    name="causal",
    build=_build,
    implements={UpliftReader: SqlEdges},
    migrations=Path(__file__).parent / "migrations",
    catalog_migrations=Path(__file__).parent / "catalog_migrations",
    forgets=FORGETS,
)
