"""ProofService, and what RecallService says of certificates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mneme.v1 import certificate_pb2
from mneme.v1 import proof_service_pb2 as pb

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.common.identity import KeyScope
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.engine.corpus.document import MemoryKind
from mneme_server.features.events.model import GRADE
from mneme_server.features.proof import messages as convert
from mneme_server.features.proof.certification import RecallWithCertificate
from mneme_server.features.proof.keys import KeyRing
from mneme_server.features.proof.verification import Proofs


class CertificateServicer:
    """Serves what `mneme.v1.RecallService` says of certificates."""

    def __init__(
        self, recall: RecallWithCertificate, proofs: Proofs, kinds: Mapping[str, MemoryKind]
    ) -> None:
        self._recall = recall
        self._proofs = proofs
        self._kinds = kinds

    def RecallWithCertificate(
        self, request: certificate_pb2.RecallWithCertificateRequest, call: Call
    ) -> certificate_pb2.RecallWithCertificateResponse:
        """Recall, prove and sign."""
        query = convert.certified_query(request, self._kinds)
        keep = KeyScope.WRITE in call.caller.scopes
        return convert.certified(self._recall.certify(call.tenant, query, keep=keep))

    def GetCertificate(
        self, request: certificate_pb2.GetCertificateRequest, call: Call
    ) -> certificate_pb2.GetCertificateResponse:
        """Return a certificate that was made before."""
        with fields(id="certificate_id"):
            stored = self._recall.stored(call.tenant, request.certificate_id)
        return certificate_pb2.GetCertificateResponse(certificate=convert.certificate(stored))

    def VerifyCertificate(
        self, request: certificate_pb2.VerifyCertificateRequest, call: Call
    ) -> certificate_pb2.VerifyCertificateResponse:
        """Check a certificate, and tell what became of its results."""
        return convert.verdict(self._proofs.verify(call.tenant, request.json))


class ProofServicer:
    """Serves `mneme.v1.ProofService`."""

    def __init__(
        self,
        proofs: Proofs,
        keys: KeyRing,
        kinds: Mapping[str, MemoryKind],
        require_tenant: Callable[[str], object],
    ) -> None:
        self._proofs = proofs
        self._keys = keys
        self._kinds = kinds
        self._require_tenant = require_tenant

    def GetCheckpoint(
        self, request: pb.GetCheckpointRequest, call: Call
    ) -> pb.GetCheckpointResponse:
        """Return the signed head of the log."""
        return convert.checkpoint(self._proofs.checkpoint(call.tenant))

    def GetConsistencyProof(
        self, request: pb.GetConsistencyProofRequest, call: Call
    ) -> pb.GetConsistencyProofResponse:
        """Return what joins two heads."""
        return convert.consistency(
            self._proofs.consistency(call.tenant, request.old_size, request.new_size)
        )

    def GetInclusionProof(
        self, request: pb.GetInclusionProofRequest, call: Call
    ) -> pb.GetInclusionProofResponse:
        """Return what joins a leaf to a head."""
        if not (request.source_type or request.source_id):
            with fields(of="leaf_index"):
                found = self._proofs.inclusion(call.tenant, request.leaf_index, request.size)
            return convert.inclusion(found)
        for name in ("source_type", "source_id"):
            if not getattr(request, name):
                raise InvalidArgument(
                    f"{name} is required: an item is named by both",
                    reason=Reason.MISSING_REQUIRED_FIELD,
                    field=name,
                )
        kind = request.source_type.lower()
        if kind != GRADE:  # Grades have leaves, and are not recalled.
            kind = convert.kind_named(request.source_type, self._kinds, "source_type").name
        with fields(of="source_id"):
            item = (kind, request.source_id)
            found = self._proofs.inclusion(call.tenant, item, request.size)
        return convert.inclusion(found)

    def ListLogKeys(self, request: pb.ListLogKeysRequest, call: Call) -> pb.ListLogKeysResponse:
        """List the keys of the log."""
        return pb.ListLogKeysResponse(keys=map(convert.log_key, self._keys.all(call.tenant)))

    def RotateLogKey(self, request: pb.RotateLogKeyRequest, call: Call) -> pb.RotateLogKeyResponse:
        """Make a new key."""
        tenant_id = request.tenant_id or call.tenant
        with fields(id="tenant_id"):
            self._require_tenant(tenant_id)
        return pb.RotateLogKeyResponse(key=convert.log_key(self._keys.rotate(tenant_id)))
