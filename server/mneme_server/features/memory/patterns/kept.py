"""Patterns as they were compiled, so that using one again does not compile it again."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from mneme_server.features.memory.patterns.model import Regex, Structural
from mneme_server.features.memory.patterns.ports import Matcher
from mneme_server.features.memory.patterns.regex import RegexMatcher
from mneme_server.features.memory.patterns.structural import StructuralMatcher

_MOST = 32
"""Matchers kept, each of some MiB at most."""


def matcher_of(definition: Regex | Structural) -> Matcher:
    """Return what finds a pattern.

    Raises:
        InvalidArgument: it cannot be used.
    """
    if isinstance(definition, Regex):
        return RegexMatcher(definition.expression)
    return StructuralMatcher(json.loads(definition.schema_json), definition.of)


class KeptMatchers:
    """The matchers that tenants used last. Thread-safe, and so are they."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, Regex | Structural], tuple[Matcher, float]] = (
            OrderedDict()
        )

    def of(self, tenant_id: str, definition: Regex | Structural) -> Matcher:
        """Return a tenant's matcher."""
        key = (tenant_id, definition)
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept[0]
        made = matcher_of(definition)
        with self._lock:
            self._kept[key] = (made, self._clock())
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return made

    def clear(self, tenant_id: str, older_s: float = 0.0) -> int:
        """Forget a tenant's matchers made at least so many seconds ago; return how many."""
        latest = self._clock() - older_s
        with self._lock:
            gone = [
                key
                for key, (_, made) in self._kept.items()
                if key[0] == tenant_id and made <= latest
            ]
            for key in gone:
                del self._kept[key]
        return len(gone)
