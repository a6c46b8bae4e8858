"""What a record comes to, as the database adds it up."""

from __future__ import annotations

from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.history import HistoryFilter
from mneme_server.features.events.store.history import SqlRecordMeasures
from mneme_server.features.events.store.tables import events
from sqlalchemy import create_engine, insert

LONGEST_US = 315_359_999_999_999
"""Ten years: what an event may have taken."""
COUNT = 30_000


def test_durations_are_added_up_whatever_they_come_to() -> None:
    engine = create_engine("sqlite://")
    events.create(engine)
    with engine.begin() as connection:
        texts = dict.fromkeys(
            ("agent_id", "text", "name", "call_id", "error", "model", "prev_hash", "hash"), ""
        )
        row = texts | {
            "tenant_id": "t", "session_id": "s", "event_type": EventType.MESSAGE, "severity": 1,
            "input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration": LONGEST_US,
            "payload": "{}", "metadata": "{}", "searchable": False, "recorded_at": 1,
        }  # fmt: skip
        rows = [
            row | {"id": f"e{number}", "sequence": number, "timestamp": number}
            for number in range(COUNT)
        ]
        connection.execute(insert(events), rows)
        totals = SqlRecordMeasures(connection, "t").totals(HistoryFilter())
    assert totals.timed == COUNT
    assert abs(totals.duration_us / totals.timed - LONGEST_US) < 1
    engine.dispose()
