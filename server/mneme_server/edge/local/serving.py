"""A folder's own server: who it is, who takes part, and when it ends."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import structlog
from pydantic import SecretStr

from mneme_server.edge.local import detaching
from mneme_server.edge.local.certificate import Identity, new_identity
from mneme_server.edge.local.folder import LocalFolder
from mneme_server.edge.local.record import State
from mneme_server.engine.settings import ServerSettings

HOST = "127.0.0.1"
LOG = "server.log"
_DRAIN_S = 2.0
"""Nobody is left whose calls could be waited for, unless it is told to stop."""
_LOOK_S = 0.25

_log = structlog.get_logger(__name__)


class Presence(Protocol):
    """Knows whether anybody takes part: an open watch of the server's health is a participant."""

    def end_if_unwatched(self, seconds: float) -> bool:
        """Take no further watch, and return True, when there was none for so long."""


class LocalServing:
    """One run of a folder's server.

    Args:
        folder: the folder, taken.
        settings: as they are given; what a local server decides for itself is left aside.
        report: called once it serves.
    """

    def __init__(
        self, folder: LocalFolder, settings: ServerSettings, report: Callable[[int], None]
    ) -> None:
        self.identity: Identity = new_identity(HOST)
        self._folder = folder
        self._report = report
        self._linger_s = settings.linger_seconds
        self.settings = _own(settings, folder.path, folder.record.key)

    def serving(self, address: str, presence: Presence) -> None:
        """Tell participants where, and end when the last of them has gone."""
        certificate = self.identity.certificate.decode()
        serving = replace(
            self._folder.record, state=State.SERVING, address=address, certificate=certificate
        )
        self._folder.write(serving)
        self._report(0)
        threading.Thread(
            target=self._look_after, args=(presence,), name="participants", daemon=True
        ).start()

    def ending(self) -> None:
        """Tell those who come now to wait for the lock."""
        if self._folder.is_ours:
            self._folder.write(replace(self._folder.record, state=State.ENDING, address=""))

    def _look_after(self, presence: Presence) -> None:
        pause = threading.Event()
        while True:
            pause.wait(_LOOK_S)
            if not self._folder.is_ours:
                _log.warning("the folder was moved, removed or taken; the server ends")
                break
            if presence.end_if_unwatched(self._linger_s):
                _log.info("the last participant has gone; the server ends")
                break
            detaching.bound(self._folder.path / LOG)
        os.kill(os.getpid(), signal.SIGTERM)


def _own(settings: ServerSettings, folder: Path, key: str) -> ServerSettings:
    own = {
        "listen": f"{HOST}:0",
        "http_listen": "",
        "metrics_listen": "",
        "data_dir": folder,
        "database_url": None,
        "auth": "required",
        "admin_key": SecretStr(key),
        "tls_cert": None,
        "tls_key": None,
        "tls_client_ca": None,
        "drain_seconds": min(settings.drain_seconds, _DRAIN_S),
    }
    if "log_level" not in settings.model_fields_set:
        own["log_level"] = "warning"  # A line for each call would fill a file that nobody reads.
    return settings.model_copy(update=own)
