"""Forgetting: what is named goes with all that follows from it, and nothing is left of it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from mneme.proof import open_checkpoint, verify_certificate, verify_consistency
from mneme.proof.notes import VerifierKey
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2
from mneme.v1 import certificate_pb2 as cert_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.features.admin.forgetting.store import SqlForgettingCatalog
from mneme_server.features.admin.store.tenant_files import BackupFiles
from mneme_server.features.context.summaries import SUMMARY_JOB
from support.api import Api, grpc, refused
from support.contexts import eventually
from support.forgetting import (
    GONE,
    USER,
    counts,
    end_session,
    folder_of,
    forget,
    plant,
    preview,
    spellings,
    start_session,
    traces,
    vectors_of,
)
from support.making import (
    at,
    episode,
    event,
    ids_of,
    lesson,
    list_events,
    list_lessons,
    recall,
    record,
    session_of,
    struct,
    verify,
)
from support.operations import ended, finished, response
from support.server import LocalServer, local_server

KEPT = "Plimberwock"
STEMS = ("zyxquörl", "zyxquorl")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server for the tests of this file: they look at all of its files."""
    with local_server(tmp_path_factory.mktemp("forgetting") / "data") as running:
        yield running


@pytest.fixture
def api(own: LocalServer) -> Api:
    """A tenant of the test's own, called by its administrator."""
    return own.keys.tenant("forgetting", *auth_pb2.KeyScope.values()[1:])


def insert(api: Api, text: str, **fields: Any) -> memory_pb.CreateMemoryResponse:
    return api.memory.CreateMemory(memory_pb.CreateMemoryRequest(text=text, **fields))


@pytest.mark.on_sqlite("it reads the tenant's files")
def test_of_a_user_nothing_is_left_in_any_file(own: LocalServer, api: Api) -> None:
    plant(api, USER, GONE, "s-gone")
    plant(api, "bob", KEPT, "s-kept")
    folder = folder_of(own, api)
    vectors = vectors_of(folder, "memory", "memory-s-gone")
    needles = [*spellings(GONE[:6]), *spellings(USER), *vectors]
    own.close_tenant(api.tenant_id)  # Then the files hold all of it.
    before = "\n".join(traces(folder, needles, STEMS))
    assert all(one in before for one in ("mneme.db", "index/names", "index/tail", "the term"))

    told = preview(api, user_id=USER)
    receipt = forget(api, user_id=USER)
    assert counts(told) == counts(receipt)
    assert set(counts(receipt)) == {
        "episode", "event", "handover", "lesson", "memory", "reflection", "session", "skill",
        "summary",
    }  # fmt: skip
    for word in (GONE, f"The {GONE} is kept in the attic"):
        assert not [found for found in recall(api, word).results if GONE in found.text]
    assert not traces(folder, needles, STEMS), "in use"
    own.close_tenant(api.tenant_id)
    assert not traces(folder, needles, STEMS), "closed"
    assert not traces(Path(own.data_dir), spellings(USER)), "in the catalog, or elsewhere"

    checked = verify(api)
    assert (checked.valid, checked.events_forgotten) == (True, 5)
    assert checked.sessions_checked == 2
    assert ids_of(recall(api, f"The {KEPT} is kept in the attic"))[0] == "memory-s-kept"
    assert len(list_events(api)) == 5


def test_a_receipt_says_what_was_forgotten_and_when(api: Api) -> None:
    insert(api, "The lantern is lit", user_id="ann", memory_id="lit")
    receipt = forget(api, user_id="ann")
    said = json.loads(receipt.statement)
    assert said["counts"] == counts(receipt) == {"memory": 1}
    assert [(run.first, run.last) for run in receipt.leaves] == [(0, 0)]
    assert said["leaves"] == [["0", "0"]]
    assert said["hidden_at"] == str(receipt.hidden_at.ToMicroseconds())
    assert receipt.hidden_at.ToMicroseconds() <= receipt.erased_at.ToMicroseconds()
    assert said["id"] == receipt.id
    assert "ann" not in receipt.statement
    key = Ed25519PublicKey.from_public_bytes(receipt.public_key)
    key.verify(receipt.signature, receipt.statement.encode())
    with pytest.raises(InvalidSignature):
        key.verify(receipt.signature, receipt.statement.replace("1", "2").encode())
    known = api.proof.ListLogKeys(proof_pb.ListLogKeysRequest()).keys
    assert VerifierKey.parse(known[0].verifier_key).public == receipt.public_key


def test_a_certificate_from_before_says_what_was_and_the_server_what_was_forgotten(
    own: LocalServer, api: Api
) -> None:
    insert(api, f"The {GONE} is lit", user_id="ann", memory_id="anns")
    insert(api, "The lantern is lit", user_id="bob", memory_id="bobs")
    made = api.recall.RecallWithCertificate(
        cert_pb.RecallWithCertificateRequest(query=f"lantern {GONE} lit")
    ).certificate
    before = api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest()).note
    receipt = forget(api, user_id="ann")
    assert counts(receipt) == {"certificate": 1, "memory": 1}
    (key,) = api.proof.ListLogKeys(proof_pb.ListLogKeysRequest()).keys
    verify_certificate(made.json, key.verifier_key)
    told = api.recall.VerifyCertificate(cert_pb.VerifyCertificateRequest(json=made.json))
    assert told.valid
    assert {one.source_id: one.state for one in told.results} == {
        "anns": cert_pb.CERTIFIED_STATE_KIND_FORGOTTEN,
        "bobs": cert_pb.CERTIFIED_STATE_KIND_UNCHANGED,
    }
    after = api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest()).note
    old, new = (
        open_checkpoint(one, [VerifierKey.parse(key.verifier_key)]) for one in (before, after)
    )
    joined = api.proof.GetConsistencyProof(
        proof_pb.GetConsistencyProofRequest(old_size=old.size, new_size=new.size)
    )
    verify_consistency(old.size, old.root, new.size, new.root, list(joined.hashes))
    own.close_tenant(api.tenant_id)
    assert not traces(folder_of(own, api), spellings(GONE[:6]), STEMS)


def test_what_a_dry_run_tells_stays(api: Api) -> None:
    insert(api, "The lantern is lit", user_id="ann", memory_id="lit")
    told = preview(api, user_id="ann")
    assert counts(told) == {"memory": 1}
    assert not told.statement
    assert not told.HasField("hidden_at")
    assert ids_of(recall(api, "lantern")) == ["lit"]


def summarised(server: LocalServer, api: Api) -> None:
    """Wait until no summary is written any more: one that comes in between goes, too."""
    worker = server.application.runtime._workers[SUMMARY_JOB]

    def is_busy() -> bool:
        due_us = worker.due_of(api.tenant_id)
        soon = due_us is None or due_us < now_us() + 60 * MICROSECONDS
        return worker.is_waiting(api.tenant_id) and soon

    eventually(is_busy, lambda busy: not busy)


@pytest.mark.parametrize("seed", range(3))
def test_a_dry_run_tells_exactly_what_then_goes(own: LocalServer, api: Api, seed: int) -> None:
    chance = random.Random(seed)
    for session in ("a", "b", "c"):
        plant(api, f"user-{chance.randrange(2)}", KEPT, session)
        for n in range(4):
            agent = f"agent-{chance.randrange(3)}"
            record(api, event(f"{KEPT} {n}", session=session, id=f"{session}+{n}", agent_id=agent))
    ways: list[dict[str, Any]] = [
        {"items": [("event", "a+1"), ("memory", "memory-b"), ("episode", "episode-c-0")]},
        {"agent_id": f"agent-{chance.randrange(3)}"},
        {"filter": {"kinds": chance.sample(["event", "lesson", "skill", "session"], 2),
                    "tags": [f"{KEPT}-tag"] * chance.randrange(2), "project": "attic"}},
        {"session_id": chance.choice("abc")},
        {"user_id": f"user-{chance.randrange(2)}"},
    ]  # fmt: skip
    for what in chance.sample(ways, len(ways)):
        summarised(own, api)
        told = counts(preview(api, **deepcopy(what)))
        assert counts(forget(api, **what)) == told
        assert verify(api).valid


def test_forgetting_nobody_comes_to_nothing(api: Api) -> None:
    insert(api, "The lantern is lit", user_id="ann")
    assert not counts(forget(api, user_id="bob"))
    assert len(recall(api, "lantern").results) == 1


def test_an_agent_goes_with_its_sessions_and_what_it_did_in_others(api: Api) -> None:
    record(api, event("A violin", session="mine", agent_id="coder", id="own"))
    record(api, event("A glacier", session="other", agent_id="tester", id="first"))
    record(api, event("A harbour", session="other", agent_id="coder", id="guest"))
    lesson(api, "Tune it", agent_id="coder")
    assert counts(forget(api, agent_id="coder"))["event"] == 2
    assert [one.id for one in list_events(api)] == ["first"]
    assert [one.id for one in _agents(api)] == ["tester"]
    assert not list_lessons(api)
    assert (verify(api).valid, verify(api).events_forgotten) == (True, 2)
    assert session_of(api, "other").event_count == 2  # The chain's length.


def _agents(api: Api) -> Any:
    return api.events.ListAgents(events_pb.ListAgentsRequest()).agents


def test_a_session_goes_whole_and_others_stay(api: Api) -> None:
    for session in ("one", "two"):
        record(api, *(event(f"{session} {n}", session=session, id=f"{session}-{n}")
                      for n in range(3)))  # fmt: skip
    assert counts(forget(api, session_id="one"))["event"] == 3
    with refused() as failure:
        session_of(api, "one")
    assert failure.code is grpc.StatusCode.NOT_FOUND
    checked = verify(api, "one")  # Who knows its id can still have its chain verified.
    assert (checked.valid, checked.events_checked, checked.events_forgotten) == (True, 3, 3)
    assert len(checked.head_hash) == 64


def test_what_is_of_a_session_goes_though_nothing_of_it_was_recorded(api: Api) -> None:
    lesson(api, "Mind the lantern", source_session_id="s", lesson_id="mine")
    episode(api, "Light the lantern", success=True, reward=1.0, session_id="s", episode_id="e")
    lesson(api, "Mind the harbour", source_session_id="other", lesson_id="others")
    assert counts(preview(api, session_id="s")) == {"episode": 1, "lesson": 1}
    assert counts(forget(api, session_id="s")) == {"episode": 1, "lesson": 1}
    assert [one.id for one in list_lessons(api)] == ["others"]


def test_single_things_are_forgotten_by_kind_and_id(api: Api) -> None:
    record(api, *(event(f"A violin {n}", id=f"e{n}") for n in range(3)))
    kept = insert(api, "The lantern is lit", memory_id="m1").memory.id
    insert(api, "The lantern is out", memory_id="m2")
    items = [("event", "e1"), ("memory", "m2"), ("lesson", "no such thing")]
    told = counts(preview(api, items=items))
    assert told == counts(forget(api, items=items))
    assert (told["event"], told["memory"]) == (1, 1)
    assert "session" not in told
    assert [one.id for one in list_events(api)] == ["e0", "e2"]
    assert kept in ids_of(recall(api, "lantern"))
    assert verify(api, "s").valid


def test_a_filter_forgets_what_it_lets_through(api: Api) -> None:
    insert(api, "An old violin", project="shop", tags=["old"], memory_id="old", since=at(1_000))
    insert(api, "A new violin", project="shop", tags=["new"], memory_id="new", since=at(9_000))
    insert(api, "Another violin", project="farm", tags=["old"], memory_id="other", since=at(1_000))
    what = {"project": "shop", "tags": ["old"], "end_time": at(5_000), "kinds": ["memory"]}
    assert counts(forget(api, filter=what)) == {"memory": 1}
    assert sorted(ids_of(recall(api, "violin"))) == ["new", "other"]


@pytest.mark.parametrize("selection", ["user_id", "session_id", "filter"])
def test_a_filter_reaches_events_that_cannot_be_recalled(api: Api, selection: str) -> None:
    start_session(api, "quiet", "ann")
    record(api, event("heard", session="quiet", id="heard"))
    record(api, event("unheard", session="quiet", searchable=False, id="unheard"))
    what = {
        "user_id": {"user_id": "ann"},
        "session_id": {"session_id": "quiet"},
        "filter": {"filter": {"project": "attic", "kinds": ["event"]}},
    }
    assert counts(forget(api, **what[selection]))["event"] == 2
    assert not list_events(api)


def test_a_user_who_is_named_in_an_events_metadata_is_forgotten_there(api: Api) -> None:
    start_session(api, "shared", "bob")
    record(api, event("of bob", session="shared", id="bobs"))
    record(api, event("of ann", session="shared", id="anns", metadata=struct(user_id="ann")))
    record(api, event("ann, unheard", session="shared", id="quiet", searchable=False,
                      metadata=struct(userId="ann")))  # fmt: skip
    assert counts(forget(api, user_id="ann"))["event"] == 2
    assert [one.id for one in list_events(api)] == ["bobs"]


def test_what_is_sent_again_stays_forgotten_and_the_session_goes_on(api: Api) -> None:
    record(api, event("one", session="s", id="e1"), event("two", session="s", id="e2"))
    head = session_of(api, "s").head_hash
    forget(api, session_id="s")
    (again,) = record(api, event("one", session="s", id="e1"))
    assert (again.duplicate, again.sequence) == (True, 1)
    assert not list_events(api)
    (next_,) = record(api, event("three", session="s", id="e3"))
    assert next_.sequence == 3
    (third,) = list_events(api)
    assert third.prev_hash == head
    checked = verify(api)
    assert (checked.valid, checked.events_checked, checked.events_forgotten) == (True, 3, 2)


def test_a_session_that_is_started_again_goes_on_in_its_chain(api: Api) -> None:
    record(api, event("one", session="s", id="e1"))
    forget(api, session_id="s")
    start_session(api, "s", "ann")
    record(api, event("two", session="s", id="e2"))
    end_session(api, "s")
    assert verify(api).valid
    assert counts(forget(api, user_id="ann"))["event"] == 1
    assert (verify(api).valid, verify(api).events_forgotten) == (True, 2)


def test_the_summary_of_a_session_that_lost_an_event_is_made_again(api: Api) -> None:
    start_session(api, "s", "bob")
    record(api, event(f"We spoke of {GONE}", session="s", id="e1"))
    record(api, event("We spoke of harbours", session="s", id="e2"))
    end_session(api, "s")
    _summary_with(api, GONE)
    assert counts(forget(api, items=[("event", "e1")]))["summary"] == 1
    assert GONE not in _summary_with(api, "harbours")


def _summary_with(api: Api, word: str) -> str:
    """Return the session's summary once it says a word."""

    def told() -> str:
        found = recall(api, f"We spoke of {word}", scopes=["session"]).results
        return next((one.text for one in found if word in one.text), "")

    return eventually(told, bool)


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_restored_backup_forgets_again_what_was_forgotten_since(
    own: LocalServer, api: Api
) -> None:
    insert(api, f"The {GONE} is lit", user_id=USER, memory_id="anns")
    record(api, event(f"A {GONE}", session="s", metadata=struct(user_id=USER)))
    insert(api, "The harbour is open", user_id="bob", memory_id="bobs")
    backup = Path(finished(api, admin_pb.BackupRequest()).path)
    receipt = forget(api, user_id=USER)
    assert list(receipt.backups) == [backup.name]
    finished(api, admin_pb.RestoreRequest(backup=backup.name))
    assert ids_of(recall(api, "lit")) == ids_of(recall(api, "harbour")) == ["bobs"]
    assert verify(api).valid
    own.close_tenant(api.tenant_id)
    assert not traces(folder_of(own, api), [*spellings(GONE[:6]), *spellings(USER)], STEMS)


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_what_is_forgotten_while_a_backup_is_put_back_does_not_come_back(
    own: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(api, f"The {GONE} is lit", user_id=USER, memory_id="anns")
    insert(api, "The harbour is open", user_id="bob", memory_id="bobs")
    backup = Path(finished(api, admin_pb.BackupRequest()).path)
    stage = BackupFiles.stage

    def slowly(self: BackupFiles, *arguments: Any) -> None:
        stage(self, *arguments)
        api.admin.Forget(admin_pb.ForgetRequest(user_id=USER, operation_id="meanwhile"))
        assert ids_of(recall(api, "lit")) == ["bobs"]

    monkeypatch.setattr(BackupFiles, "stage", slowly)
    finished(api, admin_pb.RestoreRequest(backup=backup.name))
    assert counts(response(ended(api, "meanwhile"))) == {"memory": 1}
    assert ids_of(recall(api, "lit")) == ids_of(recall(api, "harbour")) == ["bobs"]
    own.close_tenant(api.tenant_id)
    assert not traces(folder_of(own, api), [*spellings(GONE[:6]), *spellings(USER)], STEMS)


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_backup_of_afterwards_keeps_what_came_since(api: Api) -> None:
    insert(api, "The lantern is lit", user_id="ann", memory_id="before")
    forget(api, user_id="ann")
    insert(api, "The lantern is lit again", user_id="ann", memory_id="since")
    backup = Path(finished(api, admin_pb.BackupRequest()).path)
    assert not forget(api, user_id="nobody").backups or backup.name
    finished(api, admin_pb.RestoreRequest(backup=backup.name))
    assert ids_of(recall(api, "lantern")) == ["since"]


def test_a_forgetting_is_started_and_followed_and_done_once(api: Api, own: LocalServer) -> None:
    insert(api, "The lantern is lit", user_id="ann", memory_id="lit")
    request = admin_pb.ForgetRequest(user_id="ann", operation_id="once-more")
    started = api.admin.Forget(request).operation
    assert not recall(api, "lantern").results, "hidden at once"
    assert started.kind == "forget"
    done = response(ended(api, started.id))
    assert counts(done) == {"memory": 1}
    insert(api, "The lantern is lit", user_id="ann", memory_id="lit")
    again = api.admin.Forget(request).operation
    assert response(again) == done
    assert ids_of(recall(api, "lantern")) == ["lit"]
    with refused() as failure:
        api.admin.Forget(admin_pb.ForgetRequest(user_id="bob", operation_id="once-more"))
    assert failure.code is grpc.StatusCode.ALREADY_EXISTS


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({}, "nothing is named"),
        ({"user_id": "ann", "session_id": "s"}, "not user_id and session_id together"),
        ({"filter": {}}, "lets everything through"),
        ({"items": [("dream", "d1")]}, "nothing of the kind 'dream'"),
        ({"filter": {"kinds": ["dream"]}}, "nothing of the kind 'dream'"),
    ],
)
def test_what_names_nothing_is_refused_and_nothing_goes(
    api: Api, what: dict[str, Any], said: str
) -> None:
    insert(api, "The lantern is lit", user_id="ann")
    with refused() as failure:
        forget(api, **what)
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert said in failure.message
    assert recall(api, "lantern").results


def test_another_tenants_user_of_the_same_name_stays(own: LocalServer, api: Api) -> None:
    other = own.keys.tenant("another", *auth_pb2.KeyScope.values()[1:])
    for one in (api, other):
        insert(one, "The lantern is lit", user_id="ann")
    forget(api, user_id="ann")
    assert not recall(api, "lantern").results
    assert recall(other, "lantern").results


def test_what_a_tenant_is_asked_to_forget_goes_with_the_tenant(own: LocalServer, api: Api) -> None:
    insert(api, "The lantern is lit", user_id="ann")
    forget(api, user_id="ann")
    finished(
        own.keys.admin,
        admin_pb.DeleteTenantRequest(tenant_id=api.tenant_id),
    )
    catalog = SqlForgettingCatalog(own.application._opened.catalog.database)
    assert not catalog.all_of(api.tenant_id)
