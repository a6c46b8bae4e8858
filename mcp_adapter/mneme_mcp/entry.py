"""The command `mneme-mcp`: `__main__`, where its libraries are installed."""

from __future__ import annotations

from collections.abc import Sequence

from mneme._extras import start


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the adapter; name the extra where it is not installed."""
    return start("mneme-mcp", extra="mcp", module="mneme_mcp.__main__", arguments=arguments)
