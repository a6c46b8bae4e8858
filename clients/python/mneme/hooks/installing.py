"""Writes our hooks into a host's settings, and takes them out again; nothing else there changes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mneme._files import replacing
from mneme.errors import ConfigurationError
from mneme.hooks.hosts import Host

_MARK = "hooks run"
"""By this our commands are known: `… -m mneme hooks run wake-up …`."""
_LIMIT_S = 60
"""How long a host waits for one of them."""


def install(host: Host, file: Path, command: Sequence[str]) -> bool:
    """Add our hooks to a file of settings; those of an earlier installation are replaced.

    Args:
        host: whose settings they are.
        file: the settings; made when missing.
        command: what runs our command line; "hooks run …" is added.

    Returns:
        Whether anything changed.

    Raises:
        ConfigurationError: the file holds something else than settings; it stays as it is.
        OSError: it cannot be read or written.
    """
    before = _read(file)
    after = _without(before)
    hooks = after.setdefault("hooks", {})
    for event, moment in host.moments.items():
        line = shlex.join([*command, "hooks", "run", moment, "--host", host.name])
        entry = {"hooks": [{"type": "command", "command": line, "timeout": _LIMIT_S}]}
        hooks.setdefault(event, []).append(entry)
    return _write(file, before, after)


def uninstall(file: Path) -> bool:
    """Take our hooks out of a file of settings; returns whether there were any.

    Raises:
        ConfigurationError: the file holds something else than settings; it stays as it is.
        OSError: it cannot be read or written.
    """
    before = _read(file)
    return bool(installed(file)) and _write(file, before, _without(before))


def installed(file: Path) -> Mapping[str, str]:
    """Our commands in a file of settings, by the host's event.

    Raises:
        ConfigurationError: the file holds something else than settings.
        OSError: it cannot be read.
    """
    return {
        event: hook["command"]
        for event, entries in _read(file).get("hooks", {}).items()
        for entry in entries
        for hook in entry.get("hooks", [])
        if _is_ours(hook)
    }


def _read(file: Path) -> dict[str, Any]:
    try:
        settings = json.loads(file.read_text(encoding="utf-8") or "{}")
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ConfigurationError(f"{file} is not JSON; mend it first") from error
    if not _is_well_formed(settings):
        raise ConfigurationError(f"{file}: its hooks are not as its host writes them")
    return dict(settings)


def _is_well_formed(settings: Any) -> bool:
    if not isinstance(settings, dict) or not isinstance(settings.get("hooks", {}), dict):
        return False
    return all(
        isinstance(entries, list)
        and all(isinstance(e, dict) and isinstance(e.get("hooks", []), list) for e in entries)
        for entries in settings.get("hooks", {}).values()
    )


def _without(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The same without our hooks, and without what only they had filled."""
    rest = dict(settings)
    hooks = {event: _others(entries) for event, entries in settings.get("hooks", {}).items()}
    rest["hooks"] = {event: kept for event, kept in hooks.items() if kept}
    if not rest["hooks"]:
        del rest["hooks"]
    return rest


def _others(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    kept = []
    for entry in entries:
        hooks = [hook for hook in entry.get("hooks", []) if not _is_ours(hook)]
        if hooks or not entry.get("hooks"):
            kept.append({**entry, **({"hooks": hooks} if "hooks" in entry else {})})
    return kept


def _is_ours(hook: Any) -> bool:
    command = hook.get("command") if isinstance(hook, Mapping) else None
    return isinstance(command, str) and _MARK in command and "mneme" in command


def _write(file: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Write settings whole or not at all: a host may read them at any moment."""
    if after == before:
        return False
    file.resolve().parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as written:
        json.dump(after, written, indent=2, ensure_ascii=False)
        written.write("\n")
    return True
