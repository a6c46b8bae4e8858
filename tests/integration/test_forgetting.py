"""Forgetting: what is named goes with all that follows from it, and nothing is left of it."""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from mneme.proof import open_checkpoint, verify_certificate, verify_consistency
from mneme.proof.notes import VerifierKey
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2, learning_pb2, learning_service_pb2
from mneme.v1 import certificate_pb2 as cert_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from mneme.v1 import skill_service_pb2 as skill_pb
from mneme_server.admin.store.backups import BackupFiles
from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.context.summary_schedule import SUMMARY_JOB
from mneme_server.forgetting.store.catalog import SqlForgettingCatalog
from mneme_server.learning import transferring
from support.api import Api, grpc, refused
from support.contexts import eventually
from support.forgetting import (
    as_version_1,
    counts,
    end_session,
    forget,
    plant,
    preview,
    spellings,
    start_session,
    traces,
    vectors_of,
)
from support.learning import Session, discrete, step
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
from support.operations import ended, response
from support.server import LocalServer, local_server

GONE, KEPT = "Zyxquörl", "Plimberwock"
STEMS = ("zyxquörl", "zyxquorl")
USER = "user-of-violins-4711"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server for the tests of this file: they look at all of its files."""
    with local_server(tmp_path_factory.mktemp("forgetting") / "data") as running:
        yield running


@pytest.fixture
def api(own: LocalServer) -> Api:
    """A tenant of the test's own, called by its administrator."""
    return own.keys.tenant("forgetting", *auth_pb2.KeyScope.values()[1:])


def folder_of(server: LocalServer, api: Api) -> Path:
    return Path(server.data_dir) / "tenants" / api.tenant_id


def insert(api: Api, text: str, **fields: Any) -> memory_pb.InsertMemoryResponse:
    return api.memory.InsertMemory(memory_pb.InsertMemoryRequest(text=text, **fields))


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
    known = api.proof.GetLogKeys(proof_pb.GetLogKeysRequest()).keys
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
    (key,) = api.proof.GetLogKeys(proof_pb.GetLogKeysRequest()).keys
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


def test_a_policy_that_learned_from_somebody_begins_anew(own: LocalServer, api: Api) -> None:
    labels = learning_pb2.Space(open_labels=learning_pb2.OpenLabelsSpace())
    session = Session(api, "q_learning", "policy", action_space=labels)
    session.record(
        step({"who": "bob"}, "wait", 1.0, terminated=True),
        step({"who": GONE}, f"ask-{GONE}", 5.0, actor_id=USER, terminated=True),
        step({"who": "bob"}, "wait", 1.0, terminated=True),
        trajectory_id="first",
    )
    session.end(min_performance=0.0)
    made = [skill.id for skill in _skills(api)]
    assert made
    session = Session(api, "q_learning", "policy", action_space=labels)  # Resumed.
    own.close_tenant(api.tenant_id)  # Then it is saved.
    needles = [*spellings(GONE[:6]), *spellings(USER)]
    exported = session.download()[1]
    assert any(one in exported for one in needles)
    told = preview(api, user_id=USER)
    receipt = forget(api, user_id=USER)
    assert list(told.policies) == list(receipt.policies) == ["policy"]
    assert counts(receipt) == {"learning_step": 1, "policy": 1, "skill": len(made)}
    assert not _skills(api)
    assert session.stored().transitions == 2
    assert session.values({"who": "bob"}).keys() == {"wait"}
    assert session.metrics().total_reward == pytest.approx(2.0)
    session.record(step({"who": "bob"}, "wait", 1.0, terminated=True), trajectory_id="second")
    own.close_tenant(api.tenant_id)
    assert not traces(folder_of(own, api), needles)
    assert session.values({"who": "bob"})["wait"] > 0


@pytest.mark.on_sqlite("it reads the tenant's files")
def test_a_policy_that_took_over_what_was_learned_from_somebody_begins_anew(
    own: LocalServer, api: Api
) -> None:
    labels = learning_pb2.Space(open_labels=learning_pb2.OpenLabelsSpace())
    names = ("source", "target", "third", "apart")
    source, target, third, apart = (
        Session(api, "q_learning", name, action_space=labels) for name in names
    )
    for session in (source, target, third, apart):
        session.record(step({"who": "bob"}, "wait", 1.0, terminated=True))
    source.record(step({"who": GONE}, "wait", 5.0, actor_id=USER, terminated=True))
    for taken, by in (("source", "target"), ("target", "third")):
        api.learning.Transfer(
            learning_service_pb2.TransferRequest(source_session_id=taken, target_session_id=by)
        )
    own.close_tenant(api.tenant_id)
    receipt = forget(api, user_id=USER)
    assert sorted(receipt.policies) == ["source", "target", "third"]
    own.close_tenant(api.tenant_id)
    assert not traces(folder_of(own, api), [*spellings(GONE[:6]), *spellings(USER)])
    assert target.values({"who": "bob"})["wait"] > 0
    assert third.stored().learned == 1


@pytest.mark.on_sqlite("it reads the tenant's files")
@pytest.mark.parametrize("by", ["user", "session"])
def test_a_policy_that_took_over_from_a_session_deleted_since_begins_anew(
    own: LocalServer, api: Api, by: str
) -> None:
    labels = learning_pb2.Space(open_labels=learning_pb2.OpenLabelsSpace())
    start_session(api, "s", "bob")
    source, target, apart = (
        Session(api, "q_learning", name, action_space=labels)
        for name in ("source", "target", "apart")
    )
    for session in (source, target, apart):
        session.record(step({"who": "bob"}, "wait", 1.0, terminated=True))
    source.record(
        step({"who": GONE}, "wait", 5.0, actor_id=USER, terminated=True), trajectory_id="s"
    )
    api.learning.Transfer(
        learning_service_pb2.TransferRequest(source_session_id="source", target_session_id="target")
    )
    request = learning_service_pb2.DeleteLearningSessionRequest(session_id="source")
    api.learning.DeleteLearningSession(request)
    what = {"user_id": USER} if by == "user" else {"session_id": "s"}
    assert list(preview(api, **what).policies) == ["target"]
    assert list(forget(api, **what).policies) == ["target"]
    own.close_tenant(api.tenant_id)
    assert not traces(folder_of(own, api), spellings(GONE[:6]))
    assert target.values({"who": "bob"})["wait"] > 0
    assert not list(forget(api, user_id="somebody").policies)  # It rests on its own steps now.


@pytest.mark.on_sqlite("it damages a row")
def test_a_policy_begins_anew_of_which_nobody_can_tell_any_more_what_it_took_over(
    own: LocalServer, api: Api
) -> None:
    for name in ("damaged", "whole"):
        session = Session(api, "q_learning", name, action_space=discrete(3))
        session.record(step({"who": "bob"}, 1, 1.0, terminated=True))
    own.close_tenant(api.tenant_id)
    with closing(sqlite3.connect(folder_of(own, api) / "mneme.db")) as database, database:
        database.execute(
            "UPDATE learning_checkpoints SET data = substr(data, 1, length(data) - 9)"
            " WHERE session = (SELECT number FROM learning_sessions WHERE id = 'damaged')"
        )
    assert list(forget(api, user_id="somebody").policies) == ["damaged"]
    assert not list(forget(api, user_id="somebody").policies)


@pytest.mark.on_sqlite("it makes or restores a backup")
@pytest.mark.parametrize("by", ["user", "session", "item"])
def test_a_restored_policy_begins_anew_though_all_that_is_left_of_somebody_is_what_it_took_over(
    api: Api, by: str
) -> None:
    source, target = (Session(api, "q_learning", name) for name in ("source", "target"))
    for session in (source, target):
        session.record(step({"who": "bob"}, "wait", 1.0, terminated=True))
    source.record(
        step({"who": GONE}, "wait", 5.0, actor_id=USER, terminated=True), trajectory_id="s"
    )
    api.learning.Transfer(
        learning_service_pb2.TransferRequest(source_session_id="source", target_session_id="target")
    )
    request = learning_service_pb2.DeleteLearningSessionRequest(session_id="source")
    api.learning.DeleteLearningSession(request)
    backup = Path(api.admin.Backup(admin_pb.BackupRequest()).path)
    what: dict[str, Any] = {
        "user": {"user_id": USER},
        "session": {"session_id": "s"},
        "item": {"items": [("episode", "s")]},
    }[by]
    assert list(forget(api, **what).policies) == ["target"]
    api.admin.Restore(admin_pb.RestoreRequest(backup=backup.name))
    assert not list(preview(api, **what).policies)  # It rests on its own steps again.
    assert target.values({"who": "bob"})["wait"] > 0


def test_nothing_is_taken_over_that_was_forgotten_meanwhile(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = (
        Session(api, "q_learning", name, action_space=discrete(2)) for name in ("source", "target")
    )
    source.record(step({"who": GONE}, 1, 5.0, actor_id=USER, terminated=True))
    taken = transferring._taken

    def taken_and_forgotten(*of: Any) -> Any:
        found = taken(*of)
        monkeypatch.undo()
        api.admin.StartForget(admin_pb.StartForgetRequest(user_id=USER))
        return found

    monkeypatch.setattr(transferring, "_taken", taken_and_forgotten)
    request = learning_service_pb2.TransferRequest(
        source_session_id="source", target_session_id="target", similarity_threshold=0
    )
    with refused() as failure:
        api.learning.Transfer(request)
    # Of the call, or of the next attempt, to which the source knows nothing.
    assert failure.code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.FAILED_PRECONDITION}
    assert not target.predict({"who": GONE}).trained


def test_feedback_again_does_not_tell_a_reward_that_was_forgotten(api: Api) -> None:
    session = Session(api, "q_learning", "policy")
    session.tell({"who": GONE}, "ask", 5.0, next_state={"who": "bob"}, feedback_id="first")
    last: dict[str, Any] = {"of": {"who": "bob"}, "done": "ask", "reward": 1.0}
    assert session.tell(**last, feedback_id="second").episode_reward == 6.0
    forget(api, user_id=GONE)
    again = session.tell(**last, feedback_id="second")
    assert again.duplicate
    assert again.episode_reward < 5.0


def test_what_is_left_of_a_session_is_numbered_and_counted_anew(own: LocalServer, api: Api) -> None:
    session = Session(api, "sarsa", "policy")
    for name, rewards in (("small", (1.0, 2.0, 4.0)), ("large", (1.7e308, 1.0, 1.7e308))):
        session.record(
            *(
                step(
                    {"n": n},
                    "wait",
                    reward,
                    actor_id="ann" if n == 1 else "bob",
                    probability=0.5,
                    terminated=True,
                )
                for n, reward in enumerate(rewards)
            ),
            trajectory_id=name,
        )
    before = session.stored().experience_bytes
    assert counts(forget(api, user_id="ann")) == {"learning_step": 2, "policy": 1}
    # Six steps of one size, and for each of both trajectories "{}" is noted.
    assert session.stored().experience_bytes - 4 == pytest.approx((before - 4) * 4 / 6)
    request = learning_service_pb2.ListTrajectoriesRequest(session_id="policy")
    large, small = api.learning.ListTrajectories(request).trajectories
    assert (small.first_transition, small.steps, small.total_reward) == (1, 2, 5.0)
    assert (large.first_transition, large.steps) == (3, 2)
    assert large.total_reward == sys.float_info.max
    own.close_tenant(api.tenant_id)
    session.record(step({"n": 1}, "wait", 1.0, probability=0.5), trajectory_id="next")
    assert session.stored().transitions == session.stored().learned == 5


def test_whoever_is_called_the_same_but_for_capitals_is_not_forgotten_with_somebody(
    api: Api,
) -> None:
    labels = learning_pb2.Space(open_labels=learning_pb2.OpenLabelsSpace())
    session = Session(api, "q_learning", "policy", action_space=labels)
    session.record(
        step({"who": "ann"}, "wait", 1.0, terminated=True),
        step({"who": "Ann"}, "wait", 5.0, terminated=True),
    )
    assert counts(forget(api, user_id="Ann")) == {"learning_step": 1, "policy": 1}
    assert session.metrics().total_reward == pytest.approx(1.0)


@pytest.mark.parametrize("name", [",", ":", "},{", "],["])
def test_whoever_is_called_like_what_stands_between_names_is_not_named_by_it(
    api: Api, name: str
) -> None:
    labels = learning_pb2.Space(open_labels=learning_pb2.OpenLabelsSpace())
    session = Session(api, "q_learning", "policy", action_space=labels)
    session.record(
        step({"a": [{"b": "c"}, {"d": "e"}], "f": [["g"], ["h"], "i", "j"]}, "wait", 1.0)
    )
    session.record(step({"a": ["b", name]}, "wait", 1.0, terminated=True))
    assert counts(forget(api, user_id=name)) == {"learning_step": 1, "policy": 1}


def _skills(api: Api) -> Any:
    return api.skill.ListSkills(skill_pb.ListSkillsRequest()).skills


@pytest.mark.on_sqlite("it reads the tenant's files")
def test_a_chain_of_unsalted_hashes_is_put_together_anew(own: LocalServer, api: Api) -> None:
    record(api, *(event(f"word {n}", session="old", id=f"e{n}") for n in range(3)))
    old = as_version_1(own, api)
    assert verify(api).valid
    forget(api, items=[("event", "e1")])
    checked = verify(api)
    assert (checked.valid, checked.events_checked, checked.events_forgotten) == (True, 3, 1)
    assert {one.hash_version for one in list_events(api)} == {2}
    own.close_tenant(api.tenant_id)
    assert not traces(folder_of(own, api), [one.encode() for one in old])


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_restored_backup_forgets_again_what_was_forgotten_since(
    own: LocalServer, api: Api
) -> None:
    insert(api, f"The {GONE} is lit", user_id=USER, memory_id="anns")
    record(api, event(f"A {GONE}", session="s", metadata=struct(user_id=USER)))
    insert(api, "The harbour is open", user_id="bob", memory_id="bobs")
    backup = Path(api.admin.Backup(admin_pb.BackupRequest()).path)
    receipt = forget(api, user_id=USER)
    assert list(receipt.backups) == [backup.name]
    api.admin.Restore(admin_pb.RestoreRequest(backup=backup.name))
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
    backup = Path(api.admin.Backup(admin_pb.BackupRequest()).path)
    stage = BackupFiles.stage

    def slowly(self: BackupFiles, *arguments: Any) -> None:
        stage(self, *arguments)
        assert counts(forget(api, user_id=USER)) == {"memory": 1}

    monkeypatch.setattr(BackupFiles, "stage", slowly)
    api.admin.Restore(admin_pb.RestoreRequest(backup=backup.name))
    assert ids_of(recall(api, "lit")) == ids_of(recall(api, "harbour")) == ["bobs"]
    own.close_tenant(api.tenant_id)
    assert not traces(folder_of(own, api), [*spellings(GONE[:6]), *spellings(USER)], STEMS)


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_restored_backup_forgets_who_is_named_in_states_alone(own: LocalServer, api: Api) -> None:
    session = Session(api, "q_learning", "policy")
    session.record(
        step({"who": "bob"}, "wait", 1.0, terminated=True),
        step({"who": "a" * 300, "and": [f'{USER} "\\']}, "ask", 5.0, terminated=True),
        trajectory_id="first",
    )
    backup = Path(api.admin.Backup(admin_pb.BackupRequest()).path)
    receipt = forget(api, user_id=f'{USER} "\\')
    assert counts(receipt) == {"learning_step": 1, "policy": 1}  # Nothing of it was saved yet.
    api.admin.Restore(admin_pb.RestoreRequest(backup=backup.name))
    assert session.stored().transitions == 1
    own.close_tenant(api.tenant_id)
    assert not traces(folder_of(own, api), spellings(USER))


@pytest.mark.on_sqlite("it makes or restores a backup")
@pytest.mark.parametrize(
    ("trajectory", "what"),
    [
        ("s", {"session_id": "s"}),
        ("session:s", {"items": [("session", "s")]}),
        ("episode:s", {"items": [("episode", "s")]}),
    ],
)
def test_a_restored_backup_forgets_steps_of_what_was_recorded_since(
    own: LocalServer, api: Api, trajectory: str, what: dict[str, Any]
) -> None:
    session = Session(api, "q_learning", "policy")
    session.record(step({"who": "bob"}, "wait", 1.0, terminated=True))
    session.record(step({"who": GONE}, "ask", 5.0, terminated=True), trajectory_id=trajectory)
    backup = Path(api.admin.Backup(admin_pb.BackupRequest()).path)
    start_session(api, "s", "bob")
    episode(api, "Ask somebody", success=True, reward=1.0, episode_id="s")
    assert counts(forget(api, **what))["learning_step"] == 1
    api.admin.Restore(admin_pb.RestoreRequest(backup=backup.name))
    assert session.stored().transitions == 1
    own.close_tenant(api.tenant_id)
    assert not traces(folder_of(own, api), spellings(GONE[:6]))


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_backup_of_afterwards_keeps_what_came_since(api: Api) -> None:
    insert(api, "The lantern is lit", user_id="ann", memory_id="before")
    forget(api, user_id="ann")
    insert(api, "The lantern is lit again", user_id="ann", memory_id="since")
    backup = Path(api.admin.Backup(admin_pb.BackupRequest()).path)
    assert not forget(api, user_id="nobody").backups or backup.name
    api.admin.Restore(admin_pb.RestoreRequest(backup=backup.name))
    assert ids_of(recall(api, "lantern")) == ["since"]


def test_a_forgetting_is_started_and_followed_and_done_once(api: Api, own: LocalServer) -> None:
    insert(api, "The lantern is lit", user_id="ann", memory_id="lit")
    request = admin_pb.StartForgetRequest(user_id="ann", operation_id="once-more")
    started = api.admin.StartForget(request).operation
    assert not recall(api, "lantern").results, "hidden at once"
    assert started.kind == "forget"
    done = response(ended(api, started.id))
    assert counts(done.receipt) == {"memory": 1}
    insert(api, "The lantern is lit", user_id="ann", memory_id="lit")
    again = api.admin.StartForget(request).operation
    assert response(again).receipt == done.receipt
    assert ids_of(recall(api, "lantern")) == ["lit"]
    with refused() as failure:
        api.admin.StartForget(admin_pb.StartForgetRequest(user_id="bob", operation_id="once-more"))
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
    own.keys.admin.admin.DeleteTenant(admin_pb.DeleteTenantRequest(tenant_id=api.tenant_id))
    catalog = SqlForgettingCatalog(own.application._opened.catalog.database)
    assert not catalog.all_of(api.tenant_id)
