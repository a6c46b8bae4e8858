"""A server whose indexes fail on demand: what `benchmarks.cases.faults` measures.

`python -m benchmarks.faulty` serves as `mneme-server serve` does. Who connects to the socket that
FAULTS_SOCKET names sends the name of a fault and is answered, once an index has met it, with the
time of the clock that all processes share.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Listener
from typing import Any
from unittest import mock

from mneme_server.commands.entry import main
from mneme_server.engine.corpus.live_index import LiveIndex
from mneme_server.engine.index.tenant_index import TenantIndex
from mneme_server.engine.index.words.lexical import LexicalIndex

SOCKET = "FAULTS_SOCKET"
ADD, ADD_AGAIN, SEGMENT, NOT_TOLD = (
    "an add that fails",
    "an add that fails, and fails again",
    "a damaged segment",
    "a commit that is not passed on",
)
FAULTS = (ADD, NOT_TOLD, ADD_AGAIN, SEGMENT)


def serve() -> None:
    """Serve until the process is told to stop."""
    listener = Listener(os.environ.pop(SOCKET), "AF_UNIX")
    threading.Thread(target=_obey, args=(listener,), daemon=True).start()
    main(["serve"])


def _obey(listener: Listener) -> None:
    while True:
        with listener.accept() as connection:
            while True:
                try:
                    connection.send(_INJECTED[connection.recv()]())
                except EOFError:
                    break


def _once(owner: type, name: str, behave: Callable[..., Any]) -> Callable[[], float]:
    """Have the next call of a method do something else; the function returned waits for it."""
    real, met, when = getattr(owner, name), threading.Event(), [0.0]
    taken = threading.Lock()

    def instead(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not taken.acquire(blocking=False):
            return real(self, *args, **kwargs)
        when[0] = time.monotonic()
        met.set()
        return behave(self)

    patch = mock.patch.object(owner, name, instead)
    patch.start()

    def wait() -> float:
        met.wait()
        patch.stop()
        return when[0]

    return wait


def _fail(_self: Any) -> Any:
    raise OSError("no space left on the device")


def _damage(words: LexicalIndex) -> Any:
    """Turn every bit of the segments over, as they are mapped, and fail as tantivy then may."""
    for file in words._folder.iterdir():
        if file.suffix in (".idx", ".term"):
            with file.open("r+b") as open_file:  # To cut a mapped file off ends the process.
                turned = bytes(byte ^ 0xFF for byte in open_file.read())
                open_file.seek(0)
                open_file.write(turned)
    raise ValueError("a segment is damaged")


def _add_again() -> float:
    last = _once(TenantIndex, "read_again", _fail)
    first = _once(TenantIndex, "add_documents", _fail)()
    last()
    return first


def _at_next(owner: type, name: str, behave: Callable[..., Any]) -> float:
    return _once(owner, name, behave)()


_INJECTED: dict[str, Callable[[], float]] = {
    ADD: partial(_at_next, TenantIndex, "add_documents", _fail),
    ADD_AGAIN: _add_again,
    SEGMENT: partial(_at_next, LexicalIndex, "search", _damage),
    NOT_TOLD: partial(_at_next, LiveIndex, "apply", lambda _self: None),
}

if __name__ == "__main__":
    serve()
