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
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.sources import InitSettingsSource

from mneme_server.common.address import is_loopback, is_unix, split_host_port
from mneme_server.reflect.prices import read_prices

ENV_PREFIX = "MNEME_"

_OTHER_WORKERS = 4


class SettingsError(Exception):
    """The settings cannot be used; the message has a line for each that is wrong."""


def _none_if_empty(value: object) -> object:
    return None if value == "" else value


def _check_listen(address: str) -> str:
    if not is_unix(address):
        split_host_port(address)
    return address


def _check_metrics_listen(address: str) -> str:
    if address:
        split_host_port(address)
    return address


def _check_prices(prices: str | None) -> str | None:
    read_prices(prices)
    return prices


OptionalPath = Annotated[Path | None, BeforeValidator(_none_if_empty)]
OptionalSecret = Annotated[SecretStr | None, BeforeValidator(_none_if_empty)]


class Settings(BaseSettings):
    """The settings of one server. Times are in seconds, sizes in bytes."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="forbid", frozen=True)

    listen: Annotated[str, AfterValidator(_check_listen)] = Field(
        "127.0.0.1:50051",
        description="gRPC address, host:port or unix:path; port 0 picks a free one",
    )
    metrics_listen: Annotated[str, AfterValidator(_check_metrics_listen)] = Field(
        "127.0.0.1:9464",
        description="Prometheus metrics over HTTP at /metrics, host:port; empty turns them off",
    )
    data_dir: Path = Field(
        Path("mneme-data"), description="folder of the catalog and of the tenants' folders"
    )
    auth: Literal["required", "disabled"] = Field(
        "required",
        description="disabled: calls without a key act as tenant default with all scopes; only"
        " where the server listens on loopback",
    )
    admin_key: OptionalSecret = Field(
        None,
        description="the bootstrap admin key, at least 16 characters; without it one is made at"
        " the first start and printed once (a flag is visible to other users: prefer the variable)",
    )

    tls_cert: OptionalPath = Field(None, description="certificate chain, PEM; turns TLS on")
    tls_key: OptionalPath = Field(None, description="the certificate's private key, PEM")
    tls_client_ca: OptionalPath = Field(
        None, description="certificate authority, PEM; clients must show a certificate of it"
    )

    workers: int = Field(
        32,
        ge=6,
        le=1024,
        description="threads; each serves one call at a time, and a tenant's calls get no more than"
        " they leave free",
    )
    max_streams: int = Field(
        8,
        ge=1,
        description="streams that stay open (WatchEvents) served at once; one tenant gets half",
    )
    max_uploads: int = Field(
        8,
        ge=1,
        description="streams of requests (StreamEvents) served at once; one tenant gets half",
    )
    max_message_bytes: int = Field(
        16 * 1024 * 1024, ge=64 * 1024, le=2**31 - 1, description="largest message, in and out"
    )
    max_connection_streams: int = Field(
        32,
        ge=1,
        le=65_536,
        description="calls in flight on one connection; its client keeps the next ones back",
    )
    drain_seconds: float = Field(
        10.0, ge=0, description="how long a shutdown waits for calls in flight"
    )
    linger_seconds: float = Field(
        5.0,
        ge=1,
        description="how long the server of a local folder runs on after its last participant has"
        " gone",
    )

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="info logs every call"
    )
    log_format: Literal["console", "json"] = Field(
        "console", description="console for people, json for machines; both on stderr"
    )

    embedder: str = Field(
        "local",
        description="local (all-MiniLM-L6-v2), sentence-transformers:NAME, openai:MODEL or"
        " ollama:MODEL",
    )
    model_dir: OptionalPath = Field(
        None,
        description="folder of exported local models; default: the package mneme-minilm, which the"
        " server is installed with",
    )
    embed_threads: int = Field(2, ge=1, description="threads that one embedding batch computes on")
    embed_batch: int = Field(64, ge=1, le=1024, description="most texts embedded in one batch")
    embed_queue_limit: int = Field(
        500_000,
        ge=1,
        description="texts of a tenant that may wait for embedding; beyond it writes are refused"
        " with a retry delay. The queue is a table on disk, so a long one costs no memory",
    )
    openai_api_key: OptionalSecret = Field(
        default_factory=lambda: _secret_from("OPENAI_API_KEY"),
        description="key for openai:MODEL; default: the variable OPENAI_API_KEY",
    )
    openai_base_url: str = Field(
        "https://api.openai.com/v1", description="where openai:MODEL is served"
    )
    ollama_base_url: str = Field(
        "http://127.0.0.1:11434", description="where ollama:MODEL is served"
    )

    max_open_tenants: int = Field(
        64, ge=1, description="tenants whose files and indexes stay open while idle"
    )
    tenant_idle_seconds: float = Field(
        300.0, gt=0, description="after this long without a call a tenant is closed"
    )
    exact_search_limit: int = Field(
        20_000,
        ge=0,
        description="vectors of a tenant that are searched exactly; beyond it a graph (HNSW) is"
        " built",
    )

    session_idle_seconds: float = Field(
        1800.0,
        ge=1,
        description="after this long without an event a session that was not ended is summarised"
        " as it is",
    )
    reflections_per_session: int = Field(
        20, ge=1, description="reflections kept of a session; beyond it the oldest leave"
    )
    reflections_per_project: int = Field(
        100, ge=1, description="reflections kept of a project; beyond it the oldest leave"
    )

    model_prices: Annotated[
        str | None, BeforeValidator(_none_if_empty), AfterValidator(_check_prices)
    ] = Field(
        None,
        description="what tokens cost, for events that carry no cost: the path of a TOML or JSON"
        ' file, or JSON itself, {"MODEL": {"input": 2.5, "output": 10}} in US dollars a million'
        " tokens",
    )

    @property
    def max_slow_embeddings(self) -> int:
        """Calls that may wait for a slow embedder: a quarter of the workers that watches and
        uploads leave. Exports and streams without a key may take a quarter each, so that another
        is left for what needs no embedding.
        """
        return max(1, (self.workers - self.max_streams - self.max_uploads) // 4)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.auth == "disabled" and not is_loopback(self.listen):
            raise ValueError(
                f"MNEME_AUTH=disabled lets everyone in and MNEME_LISTEN={self.listen} is not"
                " loopback: listen on 127.0.0.1, ::1, localhost or unix:, or leave MNEME_AUTH at"
                " required"
            )
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("MNEME_TLS_CERT and MNEME_TLS_KEY go together; only one is set")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise ValueError("MNEME_TLS_CLIENT_CA needs MNEME_TLS_CERT and MNEME_TLS_KEY")
        if self.max_streams + self.max_uploads + _OTHER_WORKERS > self.workers:
            raise ValueError(
                f"MNEME_MAX_STREAMS={self.max_streams} and MNEME_MAX_UPLOADS={self.max_uploads}"
                f" would leave less than {_OTHER_WORKERS} of MNEME_WORKERS={self.workers}: exports,"
                " reflection, calls that wait for the embedder and other calls need one each"
            )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags come in as arguments; then the environment; `load_settings` adds the file."""
        return init_settings, env_settings


def load_settings(flags: Mapping[str, str], file: Path | None) -> Settings:
    """Return the settings from flags, environment and file.

    Args:
        flags: values by setting, as text.
        file: the configuration file (TOML, one `name = value` a line); None for none.

    Raises:
        SettingsError: a value, a name or the file is wrong.
    """
    from_file = {} if file is None else _read(file)

    class Configured(Settings):
        @classmethod
        def settings_customise_sources(
            cls, settings_cls: type[BaseSettings], *sources: Any, **named: Any
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            """Put the file behind the environment."""
            usual = super().settings_customise_sources(settings_cls, *sources, **named)
            return *usual, InitSettingsSource(settings_cls, init_kwargs=from_file)

    try:
        return Configured(**dict(flags))  # type: ignore[arg-type]  # Text, for pydantic to read.
    except ValidationError as error:
        lines = [_explain(dict(e), flags, from_file, file) for e in error.errors()]
        raise SettingsError("\n".join(lines)) from None


def flag_of(name: str) -> str:
    """Return the flag of a setting."""
    return "--" + name.replace("_", "-")


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return ENV_PREFIX + name.upper()


def _read(file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(file.read_text())
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: no TOML: {error}") from None
    unknown = [name for name in values if name not in Settings.model_fields]
    if unknown:
        raise SettingsError("\n".join(f"{file}: {_unknown(name)}" for name in unknown))
    return values


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, Settings.model_fields, n=1)
    hint = f"did you mean {close[0]}?" if close else "mneme-server --help lists all"
    return f"there is no setting {name}; {hint}"


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


def _secret_from(variable: str) -> SecretStr | None:
    value = os.environ.get(variable)
    return SecretStr(value) if value else None
