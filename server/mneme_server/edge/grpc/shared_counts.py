"""Counts that limits go by, shared with the other servers that serve the same tenants.

With each sign of life a server says what it has counted, and hears what the others have: no call
waits for that. So what is done elsewhere counts here some seconds later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mneme_server.edge.grpc.interceptors.access import TokenBuckets
from mneme_server.edge.grpc.interceptors.streams import StreamSlots

_CALLS, _WATCHES = "calls", "watches"


class SharedCounts:
    """The counts of this server, and what they are together with the others'. For one thread.

    Args:
        buckets: the calls of keys.
        streams: the watches of tenants.
    """

    def __init__(self, buckets: TokenBuckets, streams: StreamSlots) -> None:
        self._buckets = buckets
        self._streams = streams
        self._known: dict[str, Mapping[str, int]] = {}

    def report(self) -> Mapping[str, Any]:
        """Return what this server has counted: calls of each key since it started, with the key's
        limit, and open watches of each tenant."""
        return {_CALLS: self._buckets.counted(), _WATCHES: self._streams.watches_of_tenants()}

    def heard(self, reports: Mapping[str, Mapping[str, Any]]) -> None:
        """Take note of what the other servers that live have reported, by their ids."""
        watches: Counter[str] = Counter()
        known: dict[str, Mapping[str, int]] = {}
        for node, report in reports.items():
            watches.update(report.get(_WATCHES, {}))
            calls = report.get(_CALLS, {})
            known[node] = {key: count for key, (count, _) in calls.items()}
            before = self._known.get(node)
            if before is None:
                continue  # What it counted before nobody knows when.
            for key, (count, per_minute) in calls.items():
                last = before.get(key, 0)
                if spent := count - last if count >= last else count:
                    self._buckets.spent_elsewhere(key, per_minute, spent)
        self._known = known
        self._streams.watched_elsewhere(watches)
