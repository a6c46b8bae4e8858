"""What goes wrong when an address is to be listened on."""

from __future__ import annotations


class ListenError(Exception):
    """The server cannot listen as it is set up. The message names the setting and says why."""

    def __init__(self, setting: str, value: str, why: str) -> None:
        super().__init__(f"{setting}={value} cannot be used: {why}")
