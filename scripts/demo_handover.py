"""The demo's part about sessions that hand over to the next."""

from __future__ import annotations

from demo_support import Report, Server
from mneme import MnemeClient


def pick_up_where_it_left_off(report: Report, server: Server) -> None:
    """Hand two sessions over, and wake up in the next one."""
    report.chapter("Sleep and wake up: one session hands over to the next")
    with MnemeClient(server.address, api_key="") as client:
        client.sleep(
            "inv-20-keys",
            project="shop",
            progress=["Stored idempotency keys before the first capture"],
            files=["payments/gateway.py"],
        )
        client.sleep(
            "inv-21-refunds",
            project="shop",
            progress=["Refunds carry the key of their capture"],
            open_todos=[{"content": "Expire idempotency keys after a week", "priority": 1}],
            files=["payments/gateway.py", "tests/test_refunds.py"],
        )
        woken = client.wake_up(project="shop")
    for line in woken.text.splitlines():
        report.say(f"  {line}".rstrip())
    report.check(
        woken.last_handover.session_id == "inv-21-refunds"
        and [related.session_id for related in woken.related] == ["inv-20-keys"],
        "the last handover is there, and the session that it goes back to",
    )
