"""`mneme-server serve --local FOLDER`: the server of one folder, for `mneme.local`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from mneme import __version__

from mneme_server.common.address import ListenError
from mneme_server.common.errors import MnemeError
from mneme_server.common.process_limits import spare_memory
from mneme_server.edge.local.detaching import Report, bound, detached
from mneme_server.edge.local.folder import make_folder, take
from mneme_server.engine.embedding.port import EmbeddingError
from mneme_server.settings import Settings

LOG = "server.log"
_OK, _FAILED = 0, 1

Complain = Callable[[str, int], int]
"""Shows words on stderr and returns the exit code that it is given."""


def serve_folder(settings: Settings, folder: Path, complain: Complain, *, detach: bool) -> int:
    """Serve the folder to its participants until the last has gone; return the exit code.

    A folder that has its server is as good as served.

    Args:
        settings: as they are given.
        folder: the data folder; made when missing.
        complain: shows what is wrong.
        detach: serve from a process of its own, and return once it serves.

    Raises:
        FailedPrecondition: the folder cannot be made or written to.
    """
    path = folder.expanduser().resolve()
    if not detach:
        return _serve(settings, path, complain, Report())
    make_folder(path)  # The log lies in it.
    log = path / LOG
    return detached(log, partial(_serve_detached, settings, path, complain), complain)


def _serve_detached(settings: Settings, path: Path, complain: Complain, report: Report) -> int:
    bound(path / LOG)
    return _serve(settings, path, complain, report)


def _serve(settings: Settings, path: Path, complain: Complain, report: Report) -> int:
    try:
        folder = take(path, __version__)
        if folder is None:
            if not report.is_awaited:
                print(f"{path} has its server already", flush=True)
            report(_OK)
            return _OK
        spare_memory(settings.workers)  # Before what follows starts threads.
        from mneme_server.app import serve
        from mneme_server.edge.local.serving import LocalServing

        try:
            return serve(settings, LocalServing(folder, settings, report))
        finally:
            folder.close()
    except (MnemeError, EmbeddingError, ListenError) as error:
        report(_FAILED, str(error))
        return complain(str(error), _FAILED)
