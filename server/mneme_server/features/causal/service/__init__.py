"""CausalService, told by what its calls concern."""

from __future__ import annotations

from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.engine.scheduling.jobs.jobs import Jobs
from mneme_server.features.causal.chains import QueryEffects
from mneme_server.features.causal.discovering import Discover
from mneme_server.features.causal.edges import Edges
from mneme_server.features.causal.experiments import Experiments
from mneme_server.features.causal.nightly import Nightly
from mneme_server.features.causal.service.discovery import DiscoveryCalls
from mneme_server.features.causal.service.discovery_schedule import DiscoveryScheduleCalls
from mneme_server.features.causal.service.edges import EdgeCalls
from mneme_server.features.causal.service.experiments import ExperimentCalls
from mneme_server.features.operations.messages import OperationKinds


class CausalServicer(EdgeCalls, ExperimentCalls, DiscoveryCalls, DiscoveryScheduleCalls):
    """Serves `mneme.v1.CausalService`."""

    def __init__(
        self,
        *,
        edges: Edges,
        query: QueryEffects,
        experiments: Experiments,
        discover: Discover,
        nightly: Nightly,
        jobs: Jobs,
        operations: OperationKinds,
        foreground: Foreground,
    ) -> None:
        self._edges = edges
        self._query = query
        self._experiments = experiments
        self._discover = discover
        self._nightly = nightly
        self._jobs = jobs
        self._operations = operations
        self._foreground = foreground
