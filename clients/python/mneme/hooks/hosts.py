"""The hosts that have hooks: where they look for them, and what they call their moments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Moment = Literal["wake-up", "remember", "end"]
"""What a hook does: tell the agent what was, or bring in what is new, for now or for good."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host with hooks.

    Args:
        name: what people type.
        title: what people call it.
        variable: the environment variable that names its folder.
        folder: its folder under the home, where the variable is not set.
        file: the file of its settings there.
        moments: its events, and what is done at each.
        after: what its user must know or do once the hooks are there.
    """

    name: str
    title: str
    variable: str
    folder: str
    file: str
    moments: Mapping[str, Moment]
    after: str

    def settings(self, project: Path | None = None) -> Path:
        """The settings of one project, or those of this user."""
        if project is not None:
            return project / self.folder / self.file
        return Path(os.environ.get(self.variable) or Path.home() / self.folder) / self.file


# https://code.claude.com/docs/en/hooks
CLAUDE_CODE = Host(
    name="claude-code",
    title="Claude Code",
    variable="CLAUDE_CONFIG_DIR",
    folder=".claude",
    file="settings.json",
    moments={"SessionStart": "wake-up", "PreCompact": "remember", "SessionEnd": "end"},
    after="Sessions that run already do not know them; new ones do.",
)
# https://developers.openai.com/codex/hooks. Codex has no hook for a session's end: each turn's end
# brings in what is new, and the last turn's is the session's.
CODEX = Host(
    name="codex",
    title="Codex",
    variable="CODEX_HOME",
    folder=".codex",
    file="hooks.json",
    moments={"SessionStart": "wake-up", "PreCompact": "remember", "Stop": "remember"},
    after="Codex runs them once you have trusted them: /hooks.",
)
HOSTS: Mapping[str, Host] = {host.name: host for host in (CLAUDE_CODE, CODEX)}
