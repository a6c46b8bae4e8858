"""Proof: the log of everything that can be recalled, and certificates of what was."""

from __future__ import annotations

import math
from pathlib import Path

from mneme.v1 import proof_service_pb2, recall_service_pb2

from mneme_server.capability import Capability, Figure, Gauge, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.settings import ServerSettings
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.unit import Unit
from mneme_server.features.admin.forgetting.erasure import Signing
from mneme_server.features.admin.forgetting.ports import ForgettableLog
from mneme_server.features.admin.ports import ServerInfo
from mneme_server.features.admin.tenants import Tenants
from mneme_server.features.events.grading import GradeLog
from mneme_server.features.events.verification import RecordLog, VerifyEvents
from mneme_server.features.proof.certification import RecallWithCertificate
from mneme_server.features.proof.heads import Heads
from mneme_server.features.proof.keys import KeyRing
from mneme_server.features.proof.model import CertificateLimits
from mneme_server.features.proof.private_keys import KeyFiles, SealedKeys
from mneme_server.features.proof.service import CertificateServicer, ProofServicer
from mneme_server.features.proof.settings import ProofSettings
from mneme_server.features.proof.store.catalog import SqlKeyPlaces, SqlLogCatalog
from mneme_server.features.proof.store.certificates import SqlCertificates
from mneme_server.features.proof.store.forgetting import FORGETS
from mneme_server.features.proof.store.log import SqlLog
from mneme_server.features.proof.verification import Proofs
from mneme_server.features.proof.witness import LogWitness
from mneme_server.features.recall.search import Recall

_SHARED_FOR_S = 1.0
"""How long a key is used after another server destroyed it, at most, in seconds."""


def _build(host: Host) -> Parts:
    settings, tenants = host.settings(ProofSettings), host.get(Tenants)
    database = host.get(Database)
    catalog = SqlLogCatalog(database)
    folder = host.settings(ServerSettings).data_dir / "keys"
    places = SqlKeyPlaces(database) if database.shared else KeyFiles(folder)
    known_for_s = _SHARED_FOR_S if database.shared else math.inf
    signers = SealedKeys(places, settings.key_file, known_for_s)
    if database.shared and not settings.plain_keys:
        signers.require_secret()
    signers.check_secret()
    keys = KeyRing(signers, catalog, known_for_s)
    tenants.also_make(keys.current)
    tenants.also_delete(keys.forget)
    heads = Heads(keys, catalog)
    host.get(VerifyEvents).witness = LogWitness(heads)
    proofs = Proofs(host.tenants, heads, host.kinds.by_name)
    model = host.runtime.model
    recall = RecallWithCertificate(
        host.tenants,
        host.get(Recall),
        heads,
        keys,
        server=host.get(ServerInfo).version,
        model={"id": model.model_id, "dimensions": model.dimensions},
        kept=CertificateLimits(settings.certificates_kept, settings.certificates_bytes),
    )
    recalling = recall_service_pb2.DESCRIPTOR.services_by_name["RecallService"]
    proving = proof_service_pb2.DESCRIPTOR.services_by_name["ProofService"]
    kinds = host.kinds.by_name
    return Parts(
        services=[Service(proving, ProofServicer(proofs, keys, kinds, tenants.get))],
        calls=[Service(recalling, CertificateServicer(recall, proofs, kinds))],
        offers=[keys, heads, proofs, recall, Signing(keys.sign_statement)],
        gauges=[
            Gauge(
                "mneme_certificates_dropped",
                "Certificates that were removed since the start, or not kept, because a tenant had"
                " as many as it may, or as many bytes of them.",
                lambda: recall.dropped.count,
            ),
            Gauge(
                "mneme_logs_not_signed",
                "Refusals since the start to sign or prove something of a tenant's log, because the"
                " log, its head or its key was changed where it is stored.",
                lambda: heads.refusals.count,
            ),
        ],
        figures=[Figure("certificates", lambda unit: unit.get(SqlCertificates).total())],
    )


def _seal(unit: Unit) -> None:
    log: SqlLog = unit.get(SqlLog)
    log.seal(unit.documents.changes, unit.memories)


CAPABILITY = Capability(
    name="proof",
    build=_build,
    implements={ForgettableLog: SqlLog, GradeLog: SqlLog, RecordLog: SqlLog},
    seals=_seal,
    forgets=FORGETS,
    migrations=Path(__file__).parent / "migrations",
    catalog_migrations=Path(__file__).parent / "catalog_migrations",
)
