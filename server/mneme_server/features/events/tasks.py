"""The task of a session, as far as its record names one."""

from __future__ import annotations

import json
from collections.abc import Sequence

MAX_TASK = 200
_KEYS = ("task_id", "task")
_LABEL = "task:"


def task_named(metadata_json: str, tags: Sequence[str]) -> str:
    """Return the task that a session's record names: its metadata's "task_id" or "task", else its
    label "task:…"; at most 200 characters, "" where it names none."""
    if '"task' in metadata_json:
        metadata = json.loads(metadata_json)
        for key in _KEYS:
            said = metadata.get(key)
            if isinstance(said, str | int | float) and not isinstance(said, bool) and said != "":
                return str(said)[:MAX_TASK]
    return next((tag[len(_LABEL) :] for tag in tags if tag.startswith(_LABEL)), "")


def task_label(task: str) -> str:
    """Return the label of sessions at a task."""
    return f"{_LABEL}{task}"
