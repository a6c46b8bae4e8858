"""What a tenant may have the server keep for it has an end in bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mneme.proof import verify_certificate
from mneme.v1 import auth_pb2
from mneme.v1 import certificate_pb2 as cert_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from support.api import Api, failure_of, grpc, refused
from support.behind import Behind
from support.server import LocalServer, local_server
from support.telemetry import Exporter, span


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server that keeps few bytes, and whose telemetry waits."""
    data = tmp_path_factory.mktemp("small") / "data"
    limits = {"certificates_bytes": 20_000, "otlp_inbox_bytes": 1024 * 1024}
    with local_server(data, otlp_wait_seconds=3600, **limits) as server:
        yield server


@pytest.fixture
def api(small: LocalServer) -> Api:
    made = small.keys.tenant("small")
    text = "Ann wants her invoices by post " * 10
    made.memory.CreateMemory(memory_pb.CreateMemoryRequest(memory_id="m", text=text))
    return made


def certify(api: Api, query: str) -> Any:
    request = cert_pb.RecallWithCertificateRequest(query=query)
    return api.recall.RecallWithCertificate(request).certificate


def get(api: Api, certificate: Any) -> Any:
    request = cert_pb.GetCertificateRequest(certificate_id=certificate.id)
    return api.recall.GetCertificate(request).certificate


def test_the_oldest_certificates_go_once_they_take_as_many_bytes_as_a_tenant_may_keep(
    small: LocalServer, api: Api
) -> None:
    made = [certify(api, f"invoice {number}") for number in range(20)]
    ((kept, size),) = Behind(small, api.tenant_id).tenant(
        "SELECT count(*), sum(bytes) FROM certificates WHERE tenant_id = ?", api.tenant_id
    )
    assert 0 < kept < 20
    assert size <= 20_000 < size + len(made[-1].json) + 100
    assert get(api, made[-1]) == made[-1]
    with refused() as failure:
        get(api, made[0])
    assert failure.code == grpc.StatusCode.NOT_FOUND


def test_a_key_that_may_not_write_has_no_certificate_kept_and_gets_one_that_holds(
    small: LocalServer, api: Api
) -> None:
    before = certify(api, "whose invoices")
    reader = small.keys.key(api.tenant_id, auth_pb2.KEY_SCOPE_READ)
    made = certify(reader, "by which way")
    key = reader.proof.ListLogKeys(proof_pb.ListLogKeysRequest()).keys[-1].verifier_key
    assert verify_certificate(made.json, key).id == made.id
    with refused() as failure:
        get(api, made)
    assert failure.code == grpc.StatusCode.NOT_FOUND
    assert get(reader, before) == before


def test_telemetry_that_waits_takes_as_many_bytes_as_it_may_and_no_more(
    small: LocalServer, api: Api
) -> None:
    exporter = Exporter(small.address, api.secret)
    try:
        # Each waits for the root of its trace.
        for number in range(2, 6):
            exporter.spans(span(number, {"gen_ai.prompt": "a" * 400_000}, parent=1))
    except grpc.RpcError as error:
        failure = failure_of(error)
    else:
        pytest.fail("all of them were taken")
    finally:
        exporter.close()
    assert (failure.code, failure.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL")
    assert "MNEME_OTLP_INBOX_BYTES" in failure.message
    assert number == 5
