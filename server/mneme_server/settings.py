"""Every setting of the server, with its meaning and its default.

A setting's flag, its variable and its key in the configuration file follow from its name here:
`max_streams` is `--max-streams`, `MNEME_MAX_STREAMS` and `max_streams = …`. A flag wins over the
environment, the environment over the file, the file over the default.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mneme_server.engine.settings import ENV_PREFIX, ServerSettings
from mneme_server.features.alerts.settings import AlertSettings
from mneme_server.features.events.settings import SessionSettings
from mneme_server.features.learn.settings import ReflectionSettings
from mneme_server.features.learning.settings import LearningSettings
from mneme_server.features.otlp.settings import TelemetrySettings
from mneme_server.features.proof.settings import ProofSettings
from mneme_server.features.recall.settings import RecallSettings
from mneme_server.features.reflect.settings import AnalysisSettings


class SettingsError(Exception):
    """The settings cannot be used; the message has a line for each that is wrong."""


class Settings(
    AlertSettings,
    AnalysisSettings,
    LearningSettings,
    ProofSettings,
    RecallSettings,
    ReflectionSettings,
    SessionSettings,
    TelemetrySettings,
    ServerSettings,
):
    """The server's settings and those of its capabilities.

    They are joined here and not where the capabilities are listed: the command line reads them
    before it loads what would serve.
    """


def load_settings(flags: Mapping[str, str], file: Path | None) -> Settings:
    """Return the settings from flags, environment and file.

    Args:
        flags: values by setting, as text.
        file: the configuration file (TOML, one `name = value` a line); None for none.

    Raises:
        SettingsError: a value, a name or the file is wrong.
    """
    from_file = {} if file is None else _read(file)
    variables = {name: variable_of(name) for name in Settings.model_fields}
    from_environment = {
        name: os.environ[variable] for name, variable in variables.items() if variable in os.environ
    }
    try:
        return Settings.model_validate({**from_file, **from_environment, **flags})
    except ValidationError as error:
        lines = [_explain(dict(e), flags, from_file, file) for e in error.errors()]
        raise SettingsError("\n".join(lines)) from None


def _read(file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(file.read_text())
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: not valid TOML: {error}") from None
    unknown = [name for name in values if name not in Settings.model_fields]
    if unknown:
        raise SettingsError("\n".join(f"{file}: {_unknown(name)}" for name in unknown))
    return values


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, Settings.model_fields, n=1)
    hint = f"did you mean {close[0]}?" if close else "mneme-server --help lists all"
    return f"unknown setting {name}; {hint}"


def _explain(
    error: Mapping[str, Any],
    flags: Mapping[str, str],
    from_file: Mapping[str, Any],
    file: Path | None,
) -> str:
    message = str(error["msg"]).removeprefix("Value error, ")
    if not error["loc"]:
        return message
    name = str(error["loc"][0])
    if name in flags:
        where = flag_of(name)
    elif variable_of(name) in os.environ or name not in from_file:
        where = variable_of(name)
    else:
        where = f"{file}: {name}"
    is_secret = "Secret" in str(Settings.model_fields[name].annotation)
    shown = "" if is_secret else f" is {error['input']!r}"
    return f"{where}{shown}: {message}"


def flag_of(name: str) -> str:
    """Return the flag of a setting."""
    return "--" + name.replace("_", "-")


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return ENV_PREFIX + name.upper()
