"""What can be remembered can be changed and deleted, whatever its kind, and nothing old is left."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from mneme.proof import verify_certificate
from mneme.v1 import certificate_pb2 as cert_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import METHODS, Api, grpc, refused
from support.making import ids_of, recall

OLD, NEW = "penguins", "compilers"
WORDS = recall_pb.RECALL_MODE_LEXICAL
DELETED = cert_pb.CERTIFIED_STATE_KIND_REMOVED
CHANGED = cert_pb.CERTIFIED_STATE_KIND_CHANGED


@dataclass(frozen=True)
class Kind:
    """How the API says things of one kind; the id of the one in question is "it".

    Attributes:
        service: serves it.
        name: of the kind, in the names of RPCs.
        part: the field of requests and answers that holds one.
        key: the field of requests that names one.
        made: what one is made of, which says OLD.
        says: the field that is changed.
        new: what it holds then, which says NEW.
        list: the RPC that lists them.
        many: the field of its answer that holds them.
        scope: what Recall calls the kind.
    """

    service: str
    name: str
    part: str
    key: str
    made: dict[str, Any]
    says: str
    new: Any
    list: str
    many: str
    scope: str


KINDS = {
    "lesson": Kind(
        service="LearnService", name="Lesson", part="lesson", key="lesson_id",
        made={"title": "Animals", "content": OLD}, says="content", new=NEW,
        list="ListLessons", many="lessons", scope="lesson",
    ),
    "reflection": Kind(
        service="LearnService", name="Reflection", part="reflection", key="reflection_id",
        made={
            "session_id": "s", "task_description": "Name animals", "outcome": "OUTCOME_FAILURE",
            "what_did_not_work": [OLD],
        },
        says="what_did_not_work", new=[NEW],
        list="ListReflections", many="reflections", scope="reflection",
    ),
    "knowledge": Kind(
        service="LearnService", name="Knowledge", part="entry", key="entry_id",
        made={
            "project": "zoo", "type": "KNOWLEDGE_TYPE_ERROR", "context": "Feeding", "lesson": OLD,
        },
        says="lesson", new=NEW,
        list="ListKnowledge", many="entries", scope="knowledge",
    ),
}  # fmt: skip

each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def to_camel_case(name: str) -> str:
    return re.sub("_(.)", lambda found: found[1].upper(), name)


def send(api: Api, kind: Kind, rpc: str, **fields: Any) -> Any:
    name = f"mneme.v1.{kind.service}/{rpc}"
    request = ParseDict(fields, GetMessageClass(METHODS[name].input_type)())
    return api.call(name, request)[0]


def create(api: Api, kind: Kind) -> Any:
    return getattr(
        send(api, kind, f"Create{kind.name}", **{kind.key: "it"}, **kind.made), kind.part
    )


def get(api: Api, kind: Kind) -> Any:
    return getattr(send(api, kind, f"Get{kind.name}", **{kind.key: "it"}), kind.part)


def update(api: Api, kind: Kind, etag: str = "") -> Any:
    thing = {"id": "it", "etag": etag, kind.says: kind.new}
    mask = to_camel_case(kind.says)
    answer = send(api, kind, f"Update{kind.name}", **{kind.part: thing, "update_mask": mask})
    return getattr(answer, kind.part)


def delete(api: Api, kind: Kind, etag: str = "") -> Any:
    return getattr(send(api, kind, f"Delete{kind.name}", **{kind.key: "it"}, etag=etag), kind.part)


def listed(api: Api, kind: Kind) -> list[str]:
    return [one.id for one in getattr(send(api, kind, kind.list), kind.many)]


def recalled(api: Api, kind: Kind, words: str) -> list[str]:
    return ids_of(recall(api, words, mode=WORDS, scopes=[kind.scope]))


def leaf(api: Api, kind: Kind) -> Any:
    request = proof_pb.GetInclusionProofRequest(source_type=kind.scope, source_id="it")
    return api.proof.GetInclusionProof(request)


def certify(api: Api, kind: Kind) -> str:
    request = cert_pb.RecallWithCertificateRequest(query=OLD, scopes=[kind.scope])
    text: str = api.recall.RecallWithCertificate(request).certificate.json
    key = api.proof.ListLogKeys(proof_pb.ListLogKeysRequest()).keys[-1].verifier_key
    assert [item.source_id for item in verify_certificate(text, key).items] == ["it"]
    return text


def states(api: Api, certificate: str) -> dict[str, int]:
    found = api.recall.VerifyCertificate(cert_pb.VerifyCertificateRequest(json=certificate))
    assert found.valid, found.problems
    return {one.source_id: one.state for one in found.results}


@each_kind
def test_it_is_got_and_listed_as_it_was_made(kind: Kind, api: Api) -> None:
    made = create(api, kind)
    assert made.etag
    assert get(api, kind).etag == made.etag
    assert listed(api, kind) == ["it"]


@each_kind
def test_what_was_changed_is_found_by_what_it_says_now_and_not_by_what_it_said(
    kind: Kind, api: Api
) -> None:
    before = create(api, kind)
    assert (recalled(api, kind, OLD), recalled(api, kind, NEW)) == (["it"], [])
    after = update(api, kind)
    assert (recalled(api, kind, OLD), recalled(api, kind, NEW)) == ([], ["it"])
    assert after.etag not in ("", before.etag)
    assert get(api, kind).etag == after.etag


@each_kind
def test_what_was_deleted_is_nowhere(kind: Kind, api: Api) -> None:
    made = create(api, kind)
    assert delete(api, kind).etag == made.etag, "it is answered as it was"
    assert recalled(api, kind, OLD) == listed(api, kind) == []
    for call in (get, delete, update):
        with refused() as failure:
            call(api, kind)
        assert failure.code == grpc.StatusCode.NOT_FOUND
    assert create(api, kind).id == "it", "and its id is free"
    assert recalled(api, kind, OLD) == ["it"]


@each_kind
def test_a_certificate_says_that_it_was_changed_and_that_it_was_deleted(
    kind: Kind, api: Api
) -> None:
    create(api, kind)
    certificate, old = certify(api, kind), leaf(api, kind)
    assert states(api, certificate) != {"it": CHANGED}
    update(api, kind)
    new = leaf(api, kind)
    assert new.leaf_index > old.leaf_index
    assert new.leaf_hash != old.leaf_hash
    assert states(api, certificate) == {"it": CHANGED}
    delete(api, kind)
    assert states(api, certificate) == {"it": DELETED}


@each_kind
def test_with_an_etag_only_what_was_read_is_changed_or_deleted(kind: Kind, api: Api) -> None:
    read = create(api, kind)
    now = update(api, kind, read.etag)
    for change in (update, delete):
        with refused() as failure:
            change(api, kind, read.etag)
        assert (failure.code, failure.reason) == (grpc.StatusCode.ABORTED, "ETAG_MISMATCH")
    assert get(api, kind).etag == now.etag, "nothing was changed"
    assert update(api, kind, now.etag).etag == now.etag, "it says so already"
    delete(api, kind, now.etag)
