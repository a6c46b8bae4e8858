"""A server that embeds nothing, and logs nothing of one tenant: for what the log alone costs.

Its threads bear their names in /proc, which tells the processor time of each.

    python -m benchmarks.recording_server serve
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from mneme_server.commands.entry import main
from mneme_server.engine.embedding.local import LocalEmbedder
from mneme_server.engine.embedding.port import EmbeddingError
from mneme_server.features.proof.store.log import SqlLog

from benchmarks.quick_server import name_threads

UNLOGGED = "unlogged"
"""The tenant of which nothing is logged."""
_seal = SqlLog.seal


def _down(*_given: Any) -> NoReturn:
    raise EmbeddingError("no text is embedded while recording is measured")


def _seal_others(log: SqlLog, *given: Any) -> None:
    if log._tenant_id != UNLOGGED:
        _seal(log, *given)


if __name__ == "__main__":
    name_threads()
    LocalEmbedder.embed = _down  # type: ignore[assignment, method-assign]
    LocalEmbedder.embed_quietly = _down  # type: ignore[assignment, method-assign]
    SqlLog.seal = _seal_others  # type: ignore[method-assign]
    sys.exit(main())
