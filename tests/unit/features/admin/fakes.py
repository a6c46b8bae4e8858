"""Stand-ins at the ports of the administration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mneme_server.common.errors import Unavailable
from mneme_server.features.admin.model import ApiKey
from mneme_server.features.admin.store.catalog import SqlKeys


class Folders:
    """Remembers which tenants' folders were removed; may be told to fail."""

    def __init__(self) -> None:
        self.removed: list[str] = []
        self.failure: Exception | None = None

    def remove(self, tenant_id: str, require: Callable[[], object]) -> None:
        require()
        if self.failure is not None:
            raise self.failure
        self.removed.append(tenant_id)


class Clock:
    def __init__(self) -> None:
        self.now_us = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now_us

    def pass_seconds(self, seconds: float) -> None:
        self.now_us += round(seconds * 1_000_000)


class FlakyKeys(SqlKeys):
    """Keys of a real catalog whose `find` and `touch` can be made to misbehave."""

    def __init__(self, real: SqlKeys) -> None:
        super().__init__(real._database)
        self.broken = False
        self.overtake: Callable[[], object] = lambda: None

    def find(self, key_hash: bytes) -> ApiKey | None:
        found = super().find(key_hash)
        self.overtake()
        return found

    def touch(self, used_at_us: Mapping[str, int]) -> None:
        if self.broken:
            raise Unavailable("the catalog is locked")
        super().touch(used_at_us)
