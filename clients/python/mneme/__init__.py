"""The memory of AI agents: the client of a Mneme server."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mneme._version import __version__

if TYPE_CHECKING:
    from mneme._core.aio import AsyncStream
    from mneme._core.connection import TlsConfig
    from mneme._core.sync import Stream
    from mneme.aio import AsyncMnemeClient
    from mneme.client import MnemeClient
    from mneme.errors import ConfigurationError, MnemeError
    from mneme.folder import local, local_async
    from mneme.plain import to_dict, to_json

__all__ = [
    "AsyncMnemeClient",
    "AsyncStream",
    "ConfigurationError",
    "MnemeClient",
    "MnemeError",
    "Stream",
    "TlsConfig",
    "__version__",
    "local",
    "local_async",
    "to_dict",
    "to_json",
]

_HOMES = {
    "AsyncMnemeClient": "mneme.aio",
    "AsyncStream": "mneme._core.aio",
    "ConfigurationError": "mneme.errors",
    "MnemeClient": "mneme.client",
    "MnemeError": "mneme.errors",
    "Stream": "mneme._core.sync",
    "TlsConfig": "mneme._core.connection",
    "local": "mneme.folder",
    "local_async": "mneme.folder",
    "to_dict": "mneme.plain",
    "to_json": "mneme.plain",
}


def __getattr__(name: str) -> Any:
    """Import on first use: the command line must answer `--help` without loading gRPC."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is to use; the modules are `aio`, `errors`, `messages` and `types`."""
    return sorted([*__all__, "aio", "errors", "messages", "types"])
