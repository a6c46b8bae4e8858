"""CausalService."""

from __future__ import annotations

from mneme.v1 import causal_pb2, causal_service_pb2, discovery_pb2, experiment_pb2

from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.conversions import to_timestamp
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import Pages
from mneme_server.edge.grpc.updates import changes_of
from mneme_server.features.causal import messages as convert
from mneme_server.features.causal.chains import EffectChains
from mneme_server.features.causal.discovery import require_known_before
from mneme_server.features.causal.edges import Edges
from mneme_server.features.causal.experiments import Experiments
from mneme_server.features.causal.model import ExperimentStatus
from mneme_server.features.causal.nightly import NightlyDiscovery
from mneme_server.features.operations.messages import OperationKinds


class CausalServicer:
    """Serves `mneme.v1.CausalService`."""

    def __init__(
        self,
        *,
        edges: Edges,
        chains: EffectChains,
        experiments: Experiments,
        nightly: NightlyDiscovery,
        operations: OperationKinds,
    ) -> None:
        self._edges = edges
        self._chains = chains
        self._experiments = experiments
        self._nightly = nightly
        self._operations = operations

    def CreateEdge(
        self, request: causal_pb2.CreateEdgeRequest, call: Call
    ) -> causal_pb2.CreateEdgeResponse:
        """Add an edge."""
        with fields(id="edge_id"):
            edge = self._edges.add(call.tenant, convert.new_edge(request))
        return causal_pb2.CreateEdgeResponse(edge=convert.edge(edge))

    def GetEdge(self, request: causal_pb2.GetEdgeRequest, call: Call) -> causal_pb2.GetEdgeResponse:
        """Return an edge."""
        with fields(id="edge_id"):
            edge = self._edges.get(call.tenant, request.edge_id)
        return causal_pb2.GetEdgeResponse(edge=convert.edge(edge))

    def ListEdges(
        self, request: causal_pb2.ListEdgesRequest, call: Call
    ) -> causal_pb2.ListEdgesResponse:
        """List edges."""
        pages = Pages(request)
        found, total = self._edges.page(
            call.tenant,
            convert.edge_filter(request.filter),
            pages.after(int, str),
            pages.size + 1,
        )
        page, token = pages.fit(found, convert.edge, lambda last: (last.created_us, last.id))
        return causal_pb2.ListEdgesResponse(edges=page, next_page_token=token, total_size=total)

    def UpdateEdge(
        self, request: causal_service_pb2.UpdateEdgeRequest, call: Call
    ) -> causal_service_pb2.UpdateEdgeResponse:
        """Change an edge."""
        changes = changes_of(request, "edge", convert.read_edge)
        with fields(id="edge.id"):
            edge = self._edges.update(call.tenant, request.edge.id, changes, etag=request.edge.etag)
        return causal_service_pb2.UpdateEdgeResponse(edge=convert.edge(edge))

    def DeleteEdge(
        self, request: causal_pb2.DeleteEdgeRequest, call: Call
    ) -> causal_pb2.DeleteEdgeResponse:
        """Delete an edge."""
        with fields(id="edge_id"):
            edge = self._edges.delete(call.tenant, request.edge_id, etag=request.etag)
        return causal_pb2.DeleteEdgeResponse(edge=convert.edge(edge))

    def TraceEffects(
        self, request: causal_pb2.TraceEffectsRequest, call: Call
    ) -> causal_pb2.TraceEffectsResponse:
        """Find chains."""
        found = self._chains.find(call.tenant, convert.effect_query(request), request.limit)
        return convert.found_chains(found)

    def CreateExperiment(
        self, request: experiment_pb2.CreateExperimentRequest, call: Call
    ) -> experiment_pb2.CreateExperimentResponse:
        """Create an experiment."""
        with fields(id="experiment_id"):
            made = self._experiments.create(call.tenant, convert.new_experiment(request))
        return experiment_pb2.CreateExperimentResponse(experiment=convert.experiment(made))

    def GetExperiment(
        self, request: experiment_pb2.GetExperimentRequest, call: Call
    ) -> experiment_pb2.GetExperimentResponse:
        """Return an experiment."""
        with fields(id="experiment_id"):
            found = self._experiments.get(call.tenant, request.experiment_id)
        return experiment_pb2.GetExperimentResponse(experiment=convert.experiment(found))

    def ListExperiments(
        self, request: experiment_pb2.ListExperimentsRequest, call: Call
    ) -> experiment_pb2.ListExperimentsResponse:
        """List experiments."""
        pages = Pages(request)
        found, total = self._experiments.page(
            call.tenant,
            ExperimentStatus(request.status) if request.status else None,
            pages.after(int, str),
            pages.size + 1,
        )
        page, token = pages.fit(found, convert.experiment, lambda last: (last.created_us, last.id))
        return experiment_pb2.ListExperimentsResponse(
            experiments=page, next_page_token=token, total_size=total
        )

    def AssignTreatment(
        self, request: experiment_pb2.AssignTreatmentRequest, call: Call
    ) -> experiment_pb2.AssignTreatmentResponse:
        """Assign a subject by chance."""
        with fields(id="experiment_id"):
            made, before = self._experiments.assign(
                call.tenant, request.experiment_id, request.subject, request.stratum
            )
        return experiment_pb2.AssignTreatmentResponse(
            treatment=made.treatment,
            already_assigned=before,
            assigned_at=to_timestamp(made.assigned_us),
        )

    def RecordObservation(
        self, request: experiment_pb2.RecordObservationRequest, call: Call
    ) -> experiment_pb2.RecordObservationResponse:
        """Record an observation."""
        with fields(id="experiment_id"):
            made, count = self._experiments.record(
                call.tenant, request.experiment_id, convert.new_observation(request)
            )
        return experiment_pb2.RecordObservationResponse(
            observation_id=made.id, treatment=bool(made.treatment), observation_count=count
        )

    def AnalyzeExperiment(
        self, request: experiment_pb2.AnalyzeExperimentRequest, call: Call
    ) -> experiment_pb2.AnalyzeExperimentResponse:
        """Say what an experiment's observations say."""
        with fields(id="experiment_id"):
            found, result = self._experiments.analyze(call.tenant, request.experiment_id)
        return experiment_pb2.AnalyzeExperimentResponse(
            experiment=convert.experiment(found), result=convert.result(result)
        )

    def ConcludeExperiment(
        self, request: experiment_pb2.ConcludeExperimentRequest, call: Call
    ) -> experiment_pb2.ConcludeExperimentResponse:
        """End an experiment."""
        with fields(id="experiment_id", effect="experiment_id"):
            done, edge = self._experiments.conclude(
                call.tenant, request.experiment_id, with_edge=not request.without_edge
            )
        return experiment_pb2.ConcludeExperimentResponse(
            experiment=convert.experiment(done), edge=None if edge is None else convert.edge(edge)
        )

    def UpdateExperiment(
        self, request: causal_service_pb2.UpdateExperimentRequest, call: Call
    ) -> causal_service_pb2.UpdateExperimentResponse:
        """Change an experiment."""
        changes = changes_of(request, "experiment", convert.read_experiment, name="-")
        with fields(id="experiment.id"):
            experiment = self._experiments.update(
                call.tenant, request.experiment.id, changes, etag=request.experiment.etag
            )
        return causal_service_pb2.UpdateExperimentResponse(
            experiment=convert.experiment(experiment)
        )

    def DeleteExperiment(
        self, request: experiment_pb2.DeleteExperimentRequest, call: Call
    ) -> experiment_pb2.DeleteExperimentResponse:
        """Delete an experiment."""
        with fields(id="experiment_id"):
            gone = self._experiments.delete(call.tenant, request.experiment_id, etag=request.etag)
        return experiment_pb2.DeleteExperimentResponse(experiment=convert.experiment(gone))

    def Discover(
        self, request: discovery_pb2.DiscoverRequest, call: Call
    ) -> discovery_pb2.DiscoverResponse:
        """Discover."""
        question = convert.asked_in(request)
        require_known_before(question)
        started = self._operations.start(
            "discover",
            call.tenant,
            request.operation_id,
            {"question": question.as_json()},
            key_id=call.key_id,
        )
        return discovery_pb2.DiscoverResponse(operation=self._operations.answer(call, started))

    def GetDiscoverySchedule(
        self, request: discovery_pb2.GetDiscoveryScheduleRequest, call: Call
    ) -> discovery_pb2.GetDiscoveryScheduleResponse:
        """Return the schedule."""
        found = self._nightly.get(call.tenant)
        return discovery_pb2.GetDiscoveryScheduleResponse(schedule=convert.schedule(found))

    def UpdateDiscoverySchedule(
        self, request: discovery_pb2.UpdateDiscoveryScheduleRequest, call: Call
    ) -> discovery_pb2.UpdateDiscoveryScheduleResponse:
        """Set the schedule."""
        schedule = self._nightly.set(
            call.tenant,
            enabled=request.enabled,
            minute=convert.minute(request.time),
            question=convert.asked_in(request),
        )
        return discovery_pb2.UpdateDiscoveryScheduleResponse(schedule=convert.schedule(schedule))
