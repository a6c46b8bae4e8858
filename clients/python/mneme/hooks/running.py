"""What the hooks do: tell a session that starts what was, and bring in what one did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

from mneme.client import MnemeClient
from mneme.errors import ConfigurationError, NotFoundError
from mneme.importing import Defaults, Totals, import_file
from mneme.visible import QUOTED, visible


@dataclass(frozen=True, slots=True)
class Occasion:
    """What a host tells its hooks.

    Args:
        event: the host's name of the moment.
        folder: where the agent works; its last part is the project, as for imported sessions.
        transcript: the file of the session; None when the host keeps none.
    """

    event: str
    folder: str
    transcript: Path | None

    @classmethod
    def parse(cls, text: str) -> Occasion:
        """Read what a host writes to a hook's standard input.

        Raises:
            ConfigurationError: it is no such message; hosts call this command, people do not.
        """
        try:
            told = json.loads(text)
        except ValueError as error:
            raise ConfigurationError("a host gives JSON on the standard input") from error
        if not isinstance(told, dict):
            raise ConfigurationError("a host gives a JSON object on the standard input")
        path = _text(told, "transcript_path")
        return cls(
            event=_text(told, "hook_event_name"),
            folder=_text(told, "cwd"),
            transcript=Path(path).expanduser() if path else None,
        )

    @property
    def project(self) -> str:
        """The project; empty when the host does not say where the agent works."""
        return PureWindowsPath(self.folder).name  # It takes the slashes of both worlds.


def wake_up(client: MnemeClient, occasion: Occasion) -> str:
    """What the host puts before the agent: JSON with the narrative, marked as quoted."""
    woken = client.wake_up(project=occasion.project or None)
    told = {
        "hookEventName": occasion.event or "SessionStart",
        "additionalContext": f"{QUOTED}\n{visible(woken.text)}",
    }
    return json.dumps({"hookSpecificOutput": told}, ensure_ascii=False)


def remember(client: MnemeClient, occasion: Occasion, *, ended: bool) -> Totals | None:
    """Bring in what the session did since the last time, and leave a handover.

    Args:
        client: where to.
        occasion: what the host tells.
        ended: the session is over.

    Returns:
        What went in; None when the host keeps no transcript.

    Raises:
        OSError: the transcript cannot be read.
        MnemeError: the server cannot take it; the next time brings all of it.
    """
    if occasion.transcript is None or not occasion.transcript.exists():
        return None
    defaults = Defaults(project=occasion.project or None)
    totals = import_file(client, occasion.transcript, defaults=defaults, complete=ended)
    for session_id in sorted(totals.started):
        try:
            client.sleep(session_id)
        except NotFoundError:  # A transcript without a single event has made no session.
            continue
    return totals


def _text(told: Mapping[str, Any], name: str) -> str:
    value = told.get(name)
    return value if isinstance(value, str) else ""
