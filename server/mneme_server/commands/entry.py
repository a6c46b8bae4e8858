"""The command `mneme-server`: where the process begins."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from mneme_server.common.shutdown import hold_signals


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server's command line; name the extra where its libraries are not installed."""
    if arguments is None and sys.argv[1:2] == ["serve"]:
        hold_signals()  # What is imported next takes a while, and then comes the start.
        gc.disable()  # Until it is loaded: nearly all of it stays, and looking takes a tenth.
        _log_without_rich()
    from mneme._extras import start

    return start(
        "mneme-server",
        extra="server",
        module="mneme_server.commands.command_line",
        arguments=arguments,
    )


def _log_without_rich() -> None:
    """Load structlog without Rich, which would draw tracebacks: the server's log has them plain.

    structlog imports it where it is there, as it is beside the command line. Rich and what comes
    with it take a twentieth of the start.
    """
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # As if it were not installed.
    try:
        import structlog  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "structlog":  # Else it is said below which extra brings it.
            raise
    finally:
        del sys.modules["rich"]
