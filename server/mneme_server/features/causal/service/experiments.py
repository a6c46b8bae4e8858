"""The calls that concern experiments."""

from __future__ import annotations

from mneme.v1 import experiment_pb2 as pb

from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.conversions import to_timestamp
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import Pages
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.causal.experiment_model import Status
from mneme_server.features.causal.experiments import Experiments
from mneme_server.features.causal.messages import experiments as convert
from mneme_server.features.causal.messages.edges import edge as edge_message


class ExperimentCalls:
    """Serves what `mneme.v1.CausalService` says of experiments."""

    _experiments: Experiments
    _foreground: Foreground

    def CreateExperiment(
        self, request: pb.CreateExperimentRequest, call: Call
    ) -> pb.CreateExperimentResponse:
        """Create an experiment."""
        with fields(id="experiment_id"):
            made = self._experiments.create(call.tenant, convert.new_experiment(request))
        return pb.CreateExperimentResponse(experiment=convert.experiment(made))

    def GetExperiment(
        self, request: pb.GetExperimentRequest, call: Call
    ) -> pb.GetExperimentResponse:
        """Return an experiment."""
        with fields(id="experiment_id"):
            found = self._experiments.get(call.tenant, request.experiment_id)
        return pb.GetExperimentResponse(experiment=convert.experiment(found))

    def ListExperiments(
        self, request: pb.ListExperimentsRequest, call: Call
    ) -> pb.ListExperimentsResponse:
        """List experiments."""
        pages = Pages(request)
        found, total = self._experiments.page(
            call.tenant,
            Status(request.status) if request.status else None,
            pages.after(int, str),
            pages.size + 1,
        )
        page, token = pages.fit(
            found, convert.experiment, lambda last: (last.created_us, last.id), self._foreground
        )
        return pb.ListExperimentsResponse(experiments=page, next_page_token=token, total_size=total)

    def AssignTreatment(
        self, request: pb.AssignTreatmentRequest, call: Call
    ) -> pb.AssignTreatmentResponse:
        """Assign a subject by chance."""
        with fields(id="experiment_id"):
            made, before = self._experiments.assign(
                call.tenant, request.experiment_id, request.subject, request.stratum
            )
        return pb.AssignTreatmentResponse(
            treatment=made.treatment,
            already_assigned=before,
            assigned_at=to_timestamp(made.assigned_us),
        )

    def RecordObservation(
        self, request: pb.RecordObservationRequest, call: Call
    ) -> pb.RecordObservationResponse:
        """Record an observation."""
        with fields(id="experiment_id"):
            made, count = self._experiments.record(
                call.tenant, request.experiment_id, convert.new_observation(request)
            )
        return pb.RecordObservationResponse(
            observation_id=made.id, treatment=bool(made.treatment), observation_count=count
        )

    def AnalyzeExperiment(
        self, request: pb.AnalyzeExperimentRequest, call: Call
    ) -> pb.AnalyzeExperimentResponse:
        """Say what an experiment's observations say."""
        with fields(id="experiment_id"):
            found, result = self._experiments.analyze(call.tenant, request.experiment_id)
        return pb.AnalyzeExperimentResponse(
            experiment=convert.experiment(found), result=convert.result(result)
        )

    def ConcludeExperiment(
        self, request: pb.ConcludeExperimentRequest, call: Call
    ) -> pb.ConcludeExperimentResponse:
        """End an experiment."""
        with fields(id="experiment_id", effect="experiment_id"):
            done, edge = self._experiments.conclude(
                call.tenant, request.experiment_id, with_edge=not request.without_edge
            )
        return pb.ConcludeExperimentResponse(
            experiment=convert.experiment(done), edge=None if edge is None else edge_message(edge)
        )

    def DeleteExperiment(
        self, request: pb.DeleteExperimentRequest, call: Call
    ) -> pb.DeleteExperimentResponse:
        """Delete an experiment."""
        with fields(id="experiment_id"):
            gone = self._experiments.delete(call.tenant, request.experiment_id)
        return pb.DeleteExperimentResponse(experiment=convert.experiment(gone))
