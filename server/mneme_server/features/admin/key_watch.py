"""What goes on in the name of keys, and ends soon after a key is good no longer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import structlog

from mneme_server.common.errors import MnemeError
from mneme_server.common.identity import Caller
from mneme_server.engine.scheduling.repeating import Repeating
from mneme_server.features.admin.ports import KeyCatalog

LOOKED_EVERY_S = 0.25
"""How long a key that was revoked by way of another server is believed at most. Whatever it let in
is told then, and what does not end by itself is cut off `GRACE_S` after that: within a second."""

_log = structlog.get_logger(__name__)


class OnBehalf(Protocol):
    """Something that goes on after a key let it in."""

    def keys_in_use(self) -> Collection[str]:
        """Return the ids of the keys that let in what goes on now."""
        ...

    def judge(self, keys: Mapping[str, Caller | None]) -> None:
        """End what keys let in that are good no longer.

        Args:
            keys: by id, whom they let in now; None: nobody. Of others nothing is known.
        """
        ...


class KeyWatch:
    """Looks again and again whether the keys are still good that let in what goes on: one look in
    the catalog for all of it, and none while nothing does.

    Args:
        keys: the catalog's.
    """

    def __init__(self, keys: KeyCatalog) -> None:
        self._keys = keys
        self._over: list[OnBehalf] = []
        self._failing = False
        self._looking = Repeating(self.look, LOOKED_EVERY_S, "key-watching")

    def add(self, *over: OnBehalf) -> None:
        """Watch over these, too, once it is started."""
        self._over += over

    def start(self) -> None:
        """Watch from now on."""
        self._looking.start()

    def soon(self) -> None:
        """Look at once: a key was revoked here."""
        self._looking.soon()

    def stop(self) -> None:
        """Stop watching."""
        self._looking.stop()

    def callers(self, key_ids: Collection[str]) -> Mapping[str, Caller]:
        """Look at keys now; return whom they let in, by their ids: those that are revoked, or gone,
        let in nobody.

        Raises:
            Unavailable: the catalog cannot be read now.
        """
        return self._keys.callers(key_ids) if key_ids else {}

    def look(self) -> None:
        """Look once."""
        in_use = {key_id for one in self._over for key_id in one.keys_in_use()}
        if not in_use:
            return
        try:
            found = self._keys.callers(in_use)
        except MnemeError as error:  # New calls are not let in meanwhile, either.
            if not self._failing:
                _log.warning("keys cannot be looked at now", error=error.message)
            self._failing = True
            return
        self._failing = False
        keys = {key_id: found.get(key_id) for key_id in in_use}
        for one in self._over:
            one.judge(keys)
