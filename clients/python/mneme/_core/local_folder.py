"""A folder with a server of its own: what its record says, and how the server is started.

Who serves is decided by the server's lock; here nothing is decided, so that any number of
participants may try at once.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mneme._extras import from_wheels
from mneme._version import __version__
from mneme.errors import ConfigurationError, FailedPreconditionError, UnavailableError

HOST = "127.0.0.1"
LOG = "server.log"
_RECORD = "local.json"
_WRITABLE_BY_OTHERS = 0o022
_SERVING = "serving"
_FORMAT = 1
_API = "mneme.v1"
_VARIABLE = "MNEME_SERVER"
# One library of each kind that a server needs: the package itself is there with the client.
_NEEDED = ("mneme_server", "filelock", "onnxruntime", "sqlalchemy")
_WRONG_USAGE = 2
_DIED = 75
_STARTS = 3
"""How often a start is tried whose server was killed, or the like."""
_NOT_INSTALLED = (
    "the server is not installed here: say where its command is (server=… or MNEME_SERVER), or"
    f" install it {from_wheels('server')}"
)


@dataclass(frozen=True, slots=True)
class Record:
    """What the folder's server, or the last one, said of itself.

    Args:
        address: host:port.
        certificate: PEM; nobody but this server can show that it has its private key.
        key: the API key.
        version: the server's version of Mneme.
        format: how it is joined.
        api: the API packages that it serves.
    """

    address: str
    certificate: str
    key: str = field(repr=False)
    version: str
    format: int
    api: Sequence[str]

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What every call carries."""
        return (("authorization", f"Bearer {self.key}"),)


def _is_own(path: Path) -> bool:
    """Tell whether nobody else could have written it: whoever did would be told memories.

    Raises:
        OSError: it is not there.
    """
    status = path.stat()
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid in (os.getuid(), 0) and not status.st_mode & _WRITABLE_BY_OTHERS


class LocalFolder:
    """A folder, as participants see it.

    Args:
        path: the folder; made when the server is started.
        command: the server's command, with arguments before `serve`; None: the variable
            MNEME_SERVER, else the server of this Python, else `mneme-server` on the PATH.
    """

    def __init__(
        self, path: str | os.PathLike[str], command: str | Sequence[str] | None = None
    ) -> None:
        self.path = Path(path).expanduser().resolve()
        self._command = [command] if isinstance(command, str) else command

    @property
    def log(self) -> Path:
        """The file of what the server prints."""
        return self.path / LOG

    def record(self) -> Record | None:
        """The record of a server that serves, or did when it died; None without one.

        Raises:
            FailedPreconditionError: a server of another version wrote it, which cannot be joined.
        """
        try:
            if not (_is_own(self.path) and _is_own(self.path / _RECORD)):
                return None
            values: Any = json.loads((self.path / _RECORD).read_text())
            if values["state"] != _SERVING:
                return None
            record = Record(**{f.name: values[f.name] for f in fields(Record)})
        except (OSError, ValueError, TypeError, KeyError):
            return None  # Whoever starts the server is told what is wrong with the folder.
        if record.format != _FORMAT or _API not in record.api:
            raise FailedPreconditionError(
                f"{self.path} is served by Mneme {record.version}, which this client, Mneme"
                f" {__version__}, cannot join: let its participants end, or use one version for all"
            )
        return record

    def start(self, timeout: float) -> None:
        """Have a server serve the folder; return when it, or another one, does.

        Args:
            timeout: seconds.

        Raises:
            ConfigurationError: there is no server to start, or its settings are wrong.
            FailedPreconditionError: it did not start; the message is its own.
            UnavailableError: the time was not enough.
        """
        end = time.monotonic() + timeout
        for _ in range(_STARTS):
            code, said = self._run(max(0.0, end - time.monotonic()))
            if code != _DIED:
                break
        if code:
            words = "; ".join(_lines(said)) or f"exit code {code}; see {self.log}"
            kind = ConfigurationError if code == _WRONG_USAGE else FailedPreconditionError
            raise kind(f"the server of {self.path} did not start: {words}")

    def _run(self, timeout: float) -> tuple[int, str]:
        """Run the server's command until a server serves; return its exit code and its words."""
        command = [*self._server(), "serve", "--local", str(self.path), "--detach"]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # An interrupt at the terminal is not for it.
            )
        except OSError as error:
            raise ConfigurationError(
                f"the server cannot be started: {command[0]}: {error.strerror}"
            ) from error
        try:
            said = process.communicate(timeout=timeout)[1].decode(errors="replace")
        except BaseException as error:
            # It goes on without us, and what it starts serves the next call.
            threading.Thread(target=process.communicate, daemon=True).start()
            if isinstance(error, subprocess.TimeoutExpired):
                raise self.silent(timeout) from None
            raise
        return process.returncode, said

    def silent(self, timeout: float) -> UnavailableError:
        """The error of a server that does not come up in time."""
        return UnavailableError(
            f"the server of {self.path} did not answer within {timeout:.0f} s;"
            f" {self.log} may say why"
        )

    def _server(self) -> Sequence[str]:
        if self._command is not None:
            return self._command
        if given := os.environ.get(_VARIABLE, "").strip():
            return [given]
        if sys.executable and all(find_spec(name) for name in _NEEDED):
            # -P: a module of the folder that the agent works in must not take another's place.
            return [sys.executable, "-P", "-m", "mneme_server"]
        if found := shutil.which("mneme-server"):
            return [found]
        raise ConfigurationError(_NOT_INSTALLED)


def _lines(said: str) -> Iterator[str]:
    return (line.removeprefix("mneme-server: ") for line in said.splitlines() if line.strip())
