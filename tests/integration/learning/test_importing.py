"""Filling a session from what was recorded before."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mneme.v1 import auth_pb2
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learning_import_pb2 as pb
from mneme.v1 import learning_service_pb2 as service_pb
from support import making
from support.api import Api, grpc, refused
from support.forgetting import forget
from support.learning import Session, discrete, plain
from support.making import TOOL_CALL, TOOL_ERROR, event
from support.server import LocalServer
from unit.cli.command import mneme

ALL = (auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_LEARN)
_VARIABLE = "TAU_BENCH_FILE"
_FILE = Path(os.environ.get(_VARIABLE) or "tests/data/tau-bench/gpt-4o-airline.json")
"""A file of tau-bench's historical trajectories, as its repository publishes them."""


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("importing", *ALL)


def run(session: Session, *paths: str, **fields: Any) -> pb.ImportExperienceResponse:
    """Import; return the last message."""
    request = pb.ImportExperienceRequest(
        session_id=session.id, state_fields=[pb.StateField(path=one) for one in paths], **fields
    )
    *_, last = session.api.learning.ImportExperience(request)
    return last


def recorded(
    api: Api, name: str, calls: str = "", *, failed: int = -1, tags: Any = (), **metadata: Any
) -> None:
    """Record a session that calls tools, of which the one at the place `failed` fails."""
    begun = events_pb.StartSessionRequest(session_id=name, project="shop", tags=tags)
    begun.metadata.update(metadata)
    api.events.StartSession(begun)
    events = []
    for place, tool in enumerate(calls.split()):
        events.append(event(session=name, kind=TOOL_CALL, name=tool, call_id=f"c{place}"))
        if place == failed:
            events.append(event(session=name, kind=TOOL_ERROR, call_id=f"c{place}", error="no"))
    if events:
        making.record(api, *events)


def reasons(answer: pb.ImportExperienceResponse) -> dict[str, int]:
    return {one.reason: one.count for one in answer.skipped}


def test_the_tools_of_a_session_are_its_steps_and_its_outcome_the_reward_of_the_last(
    api: Api,
) -> None:
    recorded(api, "one", "search book pay", failed=1, reward=1.0, kind="flight")
    session = Session(api, "q_learning")
    answer = run(
        session, "metadata.kind", "step", "previous_tool", "previous_failed",
        failed_call_reward=-0.25,
    )  # fmt: skip
    (example,) = answer.examples
    assert [plain(one.action) for one in example.steps] == ["search", "book", "pay"]
    assert [one.reward for one in example.steps] == [0, -0.25, 1]
    assert [one.terminated for one in example.steps] == [False, False, True]
    last = example.steps[2].state.json
    assert dict(last) == {
        "kind": "flight", "step": 2, "previous_tool": "book", "previous_failed": True,
    }  # fmt: skip
    assert example.steps[1].next_state.json == last
    assert (answer.imported, answer.steps, answer.transitions) == (1, 3, 3)
    assert session.stored().episodes_completed == 1


def test_a_label_or_a_field_of_a_session_is_the_only_action_of_it(api: Api) -> None:
    for number in range(6):
        plan = ("ask", "test")[number % 2]
        recorded(
            api, f"s{number}", tags=[f"plan:{plan}", "nightly"], kind="auth",
            reward=float(plan == "test"), score=number, way={"of": plan},
        )  # fmt: skip
    by_label = Session(api, "linucb", "by-label")
    answer = run(by_label, "metadata.kind", action_source=pb.ACTION_SOURCE_TAG, action_name="plan:")
    counted = {plain(one.action): (one.count, one.mean_reward) for one in answer.actions}
    assert counted == {"ask": (3, 0.0), "test": (3, 1.0)}
    assert plain(by_label.predict({"kind": "auth"}).action) == "test"
    by_field = Session(api, "linucb", "by-field")
    answer = run(
        by_field, "tags", reward_field="metadata.score",
        action_source=pb.ACTION_SOURCE_FIELD, action_name="metadata.way.of",
    )  # fmt: skip
    assert [one.total_reward for one in answer.examples] == [0, 1, 2]
    assert dict(answer.examples[0].steps[0].state.json)["tags"]["nightly"] is True


def test_importing_again_changes_nothing_and_takes_what_is_new(api: Api) -> None:
    recorded(api, "one", "search", reward=1.0)
    recorded(api, "two", "search pay", reward=0.0)
    session = Session(api, "q_learning")
    assert run(session, "step").imported == 2
    before = session.values({"step": 0})
    again = run(session, "step")
    assert (again.imported, again.known, again.transitions) == (0, 2, 3)
    assert session.values({"step": 0}) == before
    recorded(api, "three", "pay", reward=1.0)
    again = run(session, "step")
    assert (again.imported, again.known, again.transitions) == (1, 2, 4)
    otherwise = run(session, "step", "project")
    assert reasons(otherwise) == {
        "it was imported before, with other fields or before it changed": 3
    }
    assert session.stored().transitions == 4


def test_a_dry_run_tells_the_same_and_records_nothing(api: Api) -> None:
    for number in range(120):
        recorded(api, f"s{number}", "search" if number % 2 else "", reward=1.0)
    recorded(api, "unfinished", "search")
    session = Session(api, "q_learning")
    told = run(session, "project", dry_run=True, example_count=2)
    assert told.dry_run
    assert (told.records_read, told.records, told.imported, told.steps) == (121, 121, 60, 60)
    assert reasons(told) == {"it called no tool": 60, "how it ended is not known": 1}
    assert [one.record_id for one in told.examples] == ["s1", "s3"]
    assert not session.stored().transitions
    done = run(session, "project", example_count=2)
    assert not done.dry_run
    done.dry_run, done.transitions = True, 0
    assert done == told
    assert session.stored().transitions == 60


def test_episodes_are_imported_by_what_they_keep(api: Api) -> None:
    for number in range(4):
        making.episode(
            api, f"Renew login {number}", reward=number / 3, episode_id=f"e{number}",
            tools=["search", "fix"], tags=["plan:ask"], occurred_at=making.at(number),
        )  # fmt: skip
    session = Session(api, "linucb")
    answer = run(
        session, "task", kind=pb.RECORD_KIND_EPISODES,
        action_source=pb.ACTION_SOURCE_TAG, action_name="plan:",
    )  # fmt: skip
    assert [one.record_id for one in answer.examples] == ["e0", "e1", "e2"]
    assert answer.imported == 4
    chosen = pb.RecordSelection(start_time=making.at(2))
    by_tool = Session(api, "q_learning", "by-tool")
    answer = run(by_tool, "step", kind=pb.RECORD_KIND_EPISODES, selection=chosen)
    assert (answer.records, answer.steps) == (2, 4)


def test_what_does_not_fit_the_session_is_refused_or_left_out_with_the_reason(api: Api) -> None:
    recorded(api, "one", "search", reward=1.0)
    for algorithm, fields, code, words in (
        ("sarsa", {}, grpc.StatusCode.FAILED_PRECONDITION, "only from its own behaviour"),
        (
            "linucb", {"action_source": pb.ACTION_SOURCE_TAG},
            grpc.StatusCode.INVALID_ARGUMENT, "say how the label begins",
        ),
        (
            "linucb", {"action_name": "x"},
            grpc.StatusCode.INVALID_ARGUMENT, "is not for actions that are tools",
        ),
    ):  # fmt: skip
        session = Session(api, algorithm, algorithm)
        with refused() as failure:
            run(session, "project", **fields)
        assert failure.code == code
        assert words in failure.message
    with refused() as failure:
        run(session, "metadata.kind", "user.kind")
    assert "called 'kind'" in failure.message
    closed = Session(api, "q_learning", "closed", action_space=discrete(labels=["pay"]))
    (reason,) = reasons(run(closed, "project"))
    assert "steps[0].action" in reason


def test_200_runs_of_an_agent_teach_which_tool_follows_which(server: LocalServer) -> None:
    if not _FILE.exists():
        pytest.skip(f"set {_VARIABLE} to tau-bench's trajectories: {_FILE} does not exist")
    api = server.keys.tenant("tau-bench", *ALL)
    made = mneme(
        *["import", str(_FILE), "--agent", "gpt-4o", "--address", server.address],
        *["--api-key", str(api.secret)],
    )
    assert made.code == 0, made.err
    runs = json.loads(_FILE.read_text())
    called = Counter(
        call["function"]["name"]
        for one in runs
        for message in one["traj"]
        for call in message.get("tool_calls") or ()
    )
    session = Session(api, "q_learning")
    answer = run(session, "previous_tool", "previous_failed")
    assert answer.records == len(runs) == 200
    assert answer.imported + sum(one.count for one in answer.skipped) == len(runs)
    assert {plain(one.action): one.count for one in answer.actions} == called
    assert answer.steps == session.stored().learned == sum(called.values())
    assert run(session, "previous_tool", "previous_failed").known == answer.imported
    # It begins as those runs do that succeed: by asking who the customer is.
    first = session.predict({"previous_tool": "", "previous_failed": False})
    assert plain(first.action) in {"get_user_details", "get_reservation_details"}


def test_what_was_imported_goes_with_the_session_that_it_came_from(server: LocalServer) -> None:
    api = server.keys.tenant("importing", *auth_pb2.KeyScope.values()[1:])
    recorded(api, "gone", "search pay", reward=1.0)
    recorded(api, "kept", "search", reward=0.0)
    session = Session(api, "q_learning")
    assert run(session, "step").imported == 2
    forget(api, session_id="gone")
    assert session.stored().transitions == 1
    (left,) = api.learning.ListTrajectories(
        service_pb.ListTrajectoriesRequest(session_id=session.id)
    ).trajectories
    assert (left.id, left.steps, left.first_transition) == ("session:kept", 1, 1)
    assert run(session, "step").known == 1
