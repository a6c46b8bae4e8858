"""Skills of two hundred real runs of an agent: what they say, counted again from the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import skill_service_pb2 as pb
from support.api import Api
from support.server import LocalServer
from unit.cli.command import mneme

_VARIABLE = "TAU_BENCH_FILE"
_FILE = Path(os.environ.get(_VARIABLE) or "tests/data/tau-bench/gpt-4o-airline.json")
"""A file of tau-bench's historical trajectories, as its repository publishes them."""


@pytest.fixture(scope="module")
def runs() -> dict[str, dict[str, Any]]:
    if not _FILE.exists():
        pytest.skip(f"set {_VARIABLE} to tau-bench's trajectories: {_FILE} does not exist")
    found: list[dict[str, Any]] = json.loads(_FILE.read_text())
    return {f"{run['task_id']} {run['trial']}": run for run in found}


@pytest.fixture(scope="module")
def run_of(runs: dict[str, dict[str, Any]], api: Api) -> dict[str, dict[str, Any]]:
    """The runs by their episodes' ids."""
    found = {}
    asked = events_pb.ListSessionsRequest(page_size=1000)
    for session in api.events.ListSessions(asked).sessions:
        request = episode_pb.CreateEpisodeRequest(session_id=session.id)
        stored = api.skill.CreateEpisode(request).episode
        tags = dict(tag.split(":", 1) for tag in session.tags)
        run = found[stored.id] = runs[f"{tags['task']} {tags['trial']}"]
        assert stored.success == (run["reward"] >= 0.5)
        assert list(stored.tools) == tools_of(run)
    assert len(found) == len(runs)
    return found


@pytest.fixture(scope="module")
def api(runs: dict[str, dict[str, Any]], server: LocalServer) -> Api:
    api = server.keys.tenant("tau-bench")
    result = mneme(
        *["import", str(_FILE), "--agent", "gpt-4o", "--address", server.address],
        *["--api-key", str(api.secret)],
    )
    assert result.code == 0, result.err
    return api


def tools_of(run: dict[str, Any]) -> list[str]:
    return [
        call["function"]["name"]
        for message in run["traj"]
        for call in message.get("tool_calls") or ()
    ]


def test_skills_say_of_their_episodes_what_the_file_says(
    api: Api, run_of: dict[str, dict[str, Any]]
) -> None:
    answer = api.skill.ConsolidateSkills(pb.ConsolidateSkillsRequest())
    assert answer.episode_count == len(run_of)
    assert answer.created_count >= 5
    differing = []
    for made in answer.skills:
        mine = [run_of[one] for one in made.skill.source_episode_ids]
        won = [run for run in mine if run["reward"] >= 0.7]
        lost = [run for run in mine if run["reward"] < 0.7]
        found = made.skill.findings
        assert (found.attempt_count, found.success_count) == (len(mine), len(won))
        for one in [*found.shared, *found.differences]:
            assert one.success_count == sum(one.name in tools_of(run) for run in won)
            assert one.failure_count == sum(one.name in tools_of(run) for run in lost)
        differing += [one.name for one in found.differences]
    # An agent that cancels at once, without a look at the policy, has failed most often.
    assert "cancel_reservation" in differing
    request = pb.SearchSkillsRequest(task="A customer wants to cancel because of a change of plans")
    best = api.skill.SearchSkills(request).results[0].skill
    assert "Failures called cancel_reservation more often" in best.description
    again = api.skill.ConsolidateSkills(pb.ConsolidateSkillsRequest())
    assert again.unchanged_count == len(answer.skills) == len(again.skills)
