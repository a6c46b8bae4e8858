"""Forgetting: policies begin anew that learned of somebody, or took over what others learned."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2, learning_pb2, learning_service_pb2
from mneme.v1 import skill_service_pb2 as skill_pb
from mneme_server.features.learning.transfer import transfer
from support.api import Api, grpc, refused
from support.forgetting import (
    GONE,
    USER,
    counts,
    folder_of,
    forget,
    preview,
    spellings,
    start_session,
    traces,
)
from support.learning import Session, discrete, step
from support.making import episode
from support.operations import finished
from support.server import LocalServer, local_server


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server for the tests of this file: they look at all of its files."""
    with local_server(tmp_path_factory.mktemp("forgetting") / "data") as running:
        yield running


@pytest.fixture
def api(own: LocalServer) -> Api:
    """A tenant of the test's own, called by its administrator."""
    return own.keys.tenant("forgetting", *auth_pb2.KeyScope.values()[1:])


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
    with own.database(api.tenant_id) as database:
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
    backup = Path(finished(api, admin_pb.BackupRequest()).path)
    what: dict[str, Any] = {
        "user": {"user_id": USER},
        "session": {"session_id": "s"},
        "item": {"items": [("episode", "s")]},
    }[by]
    assert list(forget(api, **what).policies) == ["target"]
    finished(api, admin_pb.RestoreRequest(backup=backup.name))
    assert not list(preview(api, **what).policies)  # It rests on its own steps again.
    assert target.values({"who": "bob"})["wait"] > 0


def test_nothing_is_taken_over_that_was_forgotten_meanwhile(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = (
        Session(api, "q_learning", name, action_space=discrete(2)) for name in ("source", "target")
    )
    source.record(step({"who": GONE}, 1, 5.0, actor_id=USER, terminated=True))
    taken = transfer._taken

    def taken_and_forgotten(*of: Any) -> Any:
        found = taken(*of)
        monkeypatch.undo()
        api.admin.Forget(admin_pb.ForgetRequest(user_id=USER))
        return found

    monkeypatch.setattr(transfer, "_taken", taken_and_forgotten)
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


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_restored_backup_forgets_who_is_named_in_states_alone(own: LocalServer, api: Api) -> None:
    session = Session(api, "q_learning", "policy")
    session.record(
        step({"who": "bob"}, "wait", 1.0, terminated=True),
        step({"who": "a" * 300, "and": [f'{USER} "\\']}, "ask", 5.0, terminated=True),
        trajectory_id="first",
    )
    backup = Path(finished(api, admin_pb.BackupRequest()).path)
    receipt = forget(api, user_id=f'{USER} "\\')
    assert counts(receipt) == {"learning_step": 1, "policy": 1}  # Nothing of it was saved yet.
    finished(api, admin_pb.RestoreRequest(backup=backup.name))
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
    backup = Path(finished(api, admin_pb.BackupRequest()).path)
    start_session(api, "s", "bob")
    episode(api, "Ask somebody", success=True, reward=1.0, episode_id="s")
    assert counts(forget(api, **what))["learning_step"] == 1
    finished(api, admin_pb.RestoreRequest(backup=backup.name))
    assert session.stored().transitions == 1
    own.close_tenant(api.tenant_id)
    assert not traces(folder_of(own, api), spellings(GONE[:6]))


def _skills(api: Api) -> Any:
    return api.skill.ListSkills(skill_pb.ListSkillsRequest()).skills
