"""A peer that opens streams and resets them at once takes nothing from other callers."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from support.making import event, list_events, record
from support.resetting import Resetting
from support.server import server_process

ATTACKERS, CALLS = 3, 60


def test_no_call_of_others_fails_while_streams_are_reset(tmp_path: Path) -> None:
    with server_process(tmp_path / "data") as server, ExitStack() as attackers:
        hostile, calm = server.keys.tenant("hostile"), server.keys.tenant("calm")
        record(hostile, event("x"))
        record(calm, event("kept", id="e"), wait=True)
        attacks = [
            attackers.enter_context(
                Resetting(server.address, "mneme.v1.EventService/ListEvents", str(hostile.secret))
            )
            for _ in range(ATTACKERS)
        ]
        for _ in range(CALLS):  # Each would raise: the tests' connections try nothing again.
            assert [found.id for found in list_events(calm)] == ["e"]
        assert sum(attack.opened for attack in attacks) > 10 * CALLS
        assert "internal error" not in server.log
