"""Certificates of events from before there was a log, whose chains were put together anew since."""

from __future__ import annotations

import json

import pytest
from mneme.proof import verify_certificate
from mneme.v1 import auth_pb2
from mneme.v1 import certificate_pb2 as cert_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from support.api import Api
from support.forgetting import as_version_1, forget
from support.making import event, record, verify
from support.server import LocalServer


def certified(api: Api) -> dict[str, str]:
    """Return the contents of a certificate's results by their ids, and see that it verifies."""
    made = api.recall.RecallWithCertificate(
        cert_pb.RecallWithCertificateRequest(query="the word of the day", scopes=["event"])
    ).certificate
    told = api.recall.VerifyCertificate(cert_pb.VerifyCertificateRequest(json=made.json))
    assert told.valid, told.problems
    key = api.proof.GetLogKeys(proof_pb.GetLogKeysRequest()).keys[-1].verifier_key
    found = verify_certificate(made.json, key)
    return {item.source_id: item.content for item in found.items}


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_what_was_logged_as_a_document_stays_proved_when_its_chain_is_made_anew(
    server: LocalServer,
) -> None:
    api = server.keys.tenant("older", *auth_pb2.KeyScope.values()[1:])
    events = (event(f"the word of the day is number {n}", "old", id=f"e{n}") for n in range(3))
    record(api, *events, wait=True)
    as_version_1(server, api)
    before = certified(api)
    assert set(before) == {"e0", "e1", "e2"}
    assert all(isinstance(json.loads(content), dict) for content in before.values())
    forget(api, items=[("event", "e1")])  # Then the chain is one of commitments.
    assert verify(api).valid
    assert certified(api) == {name: before[name] for name in ("e0", "e2")}
    record(api, event("the word of the day is number 3", "old", id="e3"), wait=True)
    assert isinstance(json.loads(certified(api)["e3"]), list)
