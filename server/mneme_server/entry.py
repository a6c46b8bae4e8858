"""The command `mneme-server`: where the process begins."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from mneme_server.stopping import hold_signals


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server's command line; name the extra where its libraries are not installed."""
    if arguments is None and sys.argv[1:2] == ["serve"]:
        hold_signals()  # What is imported next takes a while, and then comes the start.
        gc.disable()  # Until it is loaded: nearly all of it stays, and looking takes a tenth.
    from mneme._extras import start

    return start(
        "mneme-server",
        extra="server",
        module="mneme_server.command_line",
        arguments=arguments,
    )
