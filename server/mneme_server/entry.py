"""The command `mneme-server`: `__main__`, where its libraries are installed."""

from __future__ import annotations

from collections.abc import Sequence

from mneme._extras import start


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server's command line; name the extra where it is not installed."""
    return start(
        "mneme-server", extra="server", module="mneme_server.__main__", arguments=arguments
    )
