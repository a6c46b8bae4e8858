"""The example of an agent's whole way through a task does what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from mneme import MnemeClient
from mneme.v1 import auth_pb2
from support.server import LocalServer

EXAMPLE = Path(__file__).parents[2] / "examples/agent_workflow.py"
ALL = (auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_LEARN)


def test_the_agent_finds_the_strategy_that_works_and_makes_a_skill_of_it(
    server: LocalServer, capsys: pytest.CaptureFixture[str]
) -> None:
    api = server.keys.tenant("workflow", *ALL)
    example = runpy.run_path(str(EXAMPLE))
    with MnemeClient(server.address, api_key=api.secret) as client:
        example["run"](client, attempts=30)
        *_, skills, best, learned, figures, certificate, stats = (
            capsys.readouterr().out.splitlines()
        )
        assert skills.endswith("skills from 30 episodes")
        assert best.startswith("best now: oauth2_pkce")
        assert client.get_skill(learned.removeprefix("learned skill: ")).skill.name
        assert figures.startswith("30 episodes")
        assert certificate.startswith("certificate verifies: 5 results, signed over ")
        assert stats.startswith("30 episodes, ")
        assert client.get_memory_stats().counts.certificates == 1
