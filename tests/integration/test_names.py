"""Names in code, paths and codes, on real servers with the real model."""

from __future__ import annotations

from pathlib import Path

import pytest
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme_server.engine.index.words import lexical
from support.api import Api
from support.making import event, recall, record
from support.server import LocalServer, local_server

LEXICAL = recall_pb.RECALL_MODE_LEXICAL
HYBRID = recall_pb.RECALL_MODE_HYBRID

TEXTS = {
    "generate": "generate_relationships() leaves out the parents of a node",
    "report": "We generate a report of all relationships, one for each team",
    "error": "there was an error with the relationships between the tables",
    "timeout": "PaymentTimeout is raised when the bank does not answer in time",
    "path": "the rounding is done in src/billing/tax.py, line 40",
    "tax": "billing: a tax is rounded once for each line, python does it half to even",
    "version": "version 1.23 broke the export",
    "other-version": "version 12.3 repaired the import",
    "chinese": "支付服务抛出RefundRejected异常",
}


def filled(server: LocalServer) -> Api:
    api = server.keys.tenant("names")
    record(api, *(event(text, name, id=name) for name, text in TEXTS.items()), wait=True)
    return api


@pytest.fixture(scope="module")
def stock(server: LocalServer) -> Api:
    return filled(server)


def first(api: Api, question: str, mode: int) -> str:
    results = recall(api, question, mode=mode, limit=1).results
    return results[0].source_id if results else ""


@pytest.mark.parametrize("mode", [LEXICAL, HYBRID])
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("error with generate_relationships", "generate"),
        ("what does generateRelationships do?", "generate"),
        ("what is in src/billing/tax.py", "path"),
        ("the payment timeout", "timeout"),
        ("what broke in 1.23", "version"),
        ("the refund was rejected", "chinese"),
    ],
)
def test_a_name_is_found_first_however_it_is_spelled(
    question: str, answer: str, mode: int, stock: Api
) -> None:
    assert first(stock, question, mode) == answer


@pytest.mark.on_sqlite("it opens a data folder again")
def test_words_of_another_layout_are_built_again_when_their_tenant_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(lexical, "LAYOUT", "7:another")
        with local_server(tmp_path) as old:
            tenant = filled(old).tenant_id
    with local_server(tmp_path) as new:
        api = new.keys.key(tenant)
        assert first(api, "refund", LEXICAL) == "chinese"
        assert not recall(api, "report", mode=LEXICAL).partial
    manifest = tmp_path / "tenants" / tenant / "index" / "lexical" / "manifest.json"
    assert lexical.LAYOUT in manifest.read_text()
