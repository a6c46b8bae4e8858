"""The server's own settings. Capabilities declare theirs beside what reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    model_validator,
)

from mneme_server.common.address import is_loopback, is_unix, networks_in, split_host_port
from mneme_server.common.process_limits import usable_bytes

ENV_PREFIX = "MNEME_"

_OTHER_WORKERS = 4
_DATABASE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_POSTGRESQL = ("postgresql://", "postgres://")


def none_if_empty(value: object) -> object:
    """Return None for an empty text: a variable that is set to nothing is not set."""
    return None if value == "" else value


def _check_listen(address: str) -> str:
    if not is_unix(address):
        split_host_port(address)
    return address


def _check_optional_listen(address: str) -> str:
    if address:
        split_host_port(address)
    return address


def _check_networks(networks: str) -> str:
    networks_in(networks)
    return networks


def _check_origins(origins: str) -> str:
    for origin in split_origins(origins):
        parts = urlsplit(origin)
        if parts.scheme not in ("http", "https") or origin != f"{parts.scheme}://{parts.netloc}":
            raise ValueError(
                f"{origin!r} is no origin, as https://app.example or http://localhost:3000"
            )
    return origins


def _check_database_url(url: SecretStr | None) -> SecretStr | None:
    if url is not None and not url.get_secret_value().startswith(_POSTGRESQL):
        # Nothing of it is shown: it may hold a password, or be one.
        raise ValueError("it is no postgresql://user:password@host/database")
    return url


def _check_databases(databases: SecretStr | None) -> SecretStr | None:
    if databases is not None:
        _named(databases.get_secret_value())
    return databases


def _named(databases: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, one in enumerate(databases.split(), 1):
        name, _, url = one.partition("=")
        if not _DATABASE_NAME.fullmatch(name) or not url.startswith(_POSTGRESQL) or name in found:
            # Nothing of it is shown: without its name, what is there may be a password.
            raise ValueError(
                f"number {number} is no NAME=postgresql://…, with a name of its own of lower-case"
                " letters, digits, - and _"
            )
        found[name] = url
    return found


def split_origins(origins: str) -> tuple[str, ...]:
    """Return the origins of a list with commas."""
    return tuple(origin.strip() for origin in origins.split(",") if origin.strip())


OptionalPath = Annotated[Path | None, BeforeValidator(none_if_empty)]
OptionalSecret = Annotated[SecretStr | None, BeforeValidator(none_if_empty)]


class ServerSettings(BaseModel):
    """The settings of one server. Times are in seconds, sizes in bytes."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    listen: Annotated[str, AfterValidator(_check_listen)] = Field(
        "127.0.0.1:50051",
        description="gRPC address, host:port or unix:path; port 0 picks a free one",
    )
    http_listen: Annotated[str, AfterValidator(_check_optional_listen)] = Field(
        "127.0.0.1:8080",
        description="REST and Connect over HTTP, host:port; empty turns them off, port 0 picks a"
        " free one. If it is not set and the port is taken, the server serves gRPC only",
    )
    http_origins: Annotated[str, AfterValidator(_check_origins)] = Field(
        "",
        description="origins of web pages that may call over HTTP, e.g. https://app.example,"
        " separated by commas; by default only the server's own",
    )
    proxies: Annotated[str, AfterValidator(_check_networks)] = Field(
        "",
        description="addresses or networks of the proxies in front of the server, such as nginx or"
        " Envoy, separated by commas, e.g. 10.0.0.7,10.1.0.0/16. From any other place come at most"
        " half of the connections that HTTP has",
    )
    metrics_listen: Annotated[str, AfterValidator(_check_optional_listen)] = Field(
        "127.0.0.1:9464",
        description="Prometheus metrics over HTTP at /metrics, host:port; empty turns them off",
    )
    data_dir: Path = Field(
        Path("mneme-data"), description="folder for the catalog and the tenants' folders"
    )
    disk_reserve_bytes: int = Field(
        16 * 1024 * 1024,
        ge=0,
        description="room in the data folder that is let go when the disk is full, so that keys can"
        " be revoked, tenants deleted and things forgotten all the same; 0: none",
    )
    database_url: Annotated[OptionalSecret, AfterValidator(_check_database_url)] = Field(
        None,
        description="PostgreSQL, 15 or newer, that keeps the catalog and the tenants, as"
        " postgresql://user:password@host/database; the data folder then only holds what can be"
        " built from it again. Needs the extra `postgres`; by default SQLite keeps them in the"
        " data folder",
    )
    databases: Annotated[OptionalSecret, AfterValidator(_check_databases)] = Field(
        None,
        description="further PostgreSQL databases that tenants can be moved to while they are"
        " served, as NAME=postgresql://…, separated by spaces; not with MNEME_DATABASE_URL",
    )
    database_kept_days: Annotated[int | None, BeforeValidator(none_if_empty)] = Field(
        None,
        ge=1,
        description="for how many days at most backups of that PostgreSQL and its write-ahead log"
        " are kept, which receipts of what was forgotten state; unless this is set, nothing can be"
        " forgotten there",
    )
    auth: Literal["required", "disabled"] = Field(
        "required",
        description="disabled: calls without a key act as the tenant default with all scopes; only"
        " allowed if the server listens on loopback",
    )
    admin_key: OptionalSecret = Field(
        None,
        description="the bootstrap admin key, at least 16 characters; another value takes the place"
        " of the one before, which is revoked; without it, one is made on the first start and"
        " printed once (a flag is visible to other users: prefer the variable)",
    )

    tls_cert: OptionalPath = Field(None, description="certificate chain, PEM; turns TLS on")
    tls_key: OptionalPath = Field(None, description="the certificate's private key, PEM")
    tls_client_ca: OptionalPath = Field(
        None, description="certificate authority, PEM; clients must show a certificate issued by it"
    )

    workers: int = Field(
        32,
        ge=6,
        le=1024,
        description="threads; each serves one call at a time, and a tenant's calls get at most"
        " as many as they leave free for others",
    )
    max_streams: int = Field(
        1_000,
        ge=1,
        description="long-lived streams (WatchEvents) served at once; they hold no worker, and one"
        " tenant gets at most half",
    )
    max_tenant_streams: int = Field(
        100, ge=1, description="long-lived streams that one tenant may have at once"
    )
    max_uploads: int = Field(
        8,
        ge=1,
        description="uploads (StreamEvents, CreateMemories) at once; one tenant gets at most half",
    )
    max_message_bytes: int = Field(
        16 * 1024 * 1024, ge=64 * 1024, le=2**31 - 1, description="largest message, in and out"
    )
    max_connection_streams: int = Field(
        32,
        ge=1,
        le=65_536,
        description="calls in flight per connection; gRPC clients hold back further ones",
    )
    drain_seconds: float = Field(
        10.0, ge=0, description="how long a shutdown waits for calls in flight"
    )
    linger_seconds: float = Field(
        5.0,
        ge=1,
        description="how long a local folder's server keeps running after its last participant has"
        " left",
    )

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="the least severe messages that are logged; info logs every call"
    )
    log_format: Literal["console", "json"] = Field(
        "console", description="console for people, json for machines; both go to stderr"
    )

    embedder: str = Field(
        "local",
        description="local (all-MiniLM-L6-v2), e5 (multilingual-e5-small, for other languages),"
        " sentence-transformers:NAME, openai:MODEL or ollama:MODEL",
    )
    model_dir: OptionalPath = Field(
        None,
        description="folder of exported local models; default: the package mneme-minilm, which is"
        " installed with the server",
    )
    embed_threads: int = Field(2, ge=1, description="threads that compute one embedding batch")
    embed_batch: int = Field(
        64, ge=1, le=1024, description="maximum number of texts embedded in one batch"
    )
    embed_queue_limit: int = Field(
        500_000,
        ge=1,
        description="texts per tenant that may wait for embedding; beyond that, writes are refused"
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

    job_processes: int = Field(
        1,
        ge=1,
        le=64,
        description="worker processes that do heavy work at the same time, each on one processor"
        " while nothing else needs it",
    )
    job_memory_bytes: int = Field(
        1024**3,
        ge=64 * 1024**2,
        description="memory that a worker process may use; one that needs more is ended, and its"
        " work fails",
    )

    tenant_memory_bytes: Annotated[int | None, BeforeValidator(none_if_empty)] = Field(
        None,
        ge=1_000_000,
        description="memory for the open tenants' indexes and databases; beyond that, the least"
        " recently used tenants are closed. Default: a quarter of the memory that the process may"
        " use",
    )
    tenant_idle_seconds: float = Field(
        300.0, gt=0, description="a tenant is closed after this long without a call"
    )
    local_copies_bytes: Annotated[int | None, BeforeValidator(none_if_empty)] = Field(
        None,
        ge=1_000_000,
        description="with MNEME_DATABASE_URL: how much of this server's disk indexes and copies"
        " may take; beyond that, those of tenants that are not open are removed, least recently"
        " used first. Default: half of the disk",
    )
    exact_search_limit: int = Field(
        20_000,
        ge=0,
        description="vectors per tenant that are searched exactly; beyond that, a graph (HNSW) is"
        " built",
    )

    @property
    def open_tenants_bytes(self) -> int:
        """Memory for the open tenants."""
        return self.tenant_memory_bytes or usable_bytes() // 4

    @property
    def named_databases(self) -> Mapping[str, str]:
        """The URLs of further databases, by name."""
        return {} if self.databases is None else _named(self.databases.get_secret_value())

    @property
    def max_slow_embeddings(self) -> int:
        """Calls that may wait for a slow embedder: a quarter of the workers that uploads leave.
        Exports and streams without a key may take a quarter each, so that another is left for what
        needs no embedding.
        """
        return max(1, (self.workers - self.max_uploads) // 4)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.auth == "disabled" and not is_loopback(self.listen):
            raise ValueError(
                f"MNEME_AUTH=disabled lets everyone in, and MNEME_LISTEN={self.listen} is not"
                " loopback: listen on 127.0.0.1, ::1, localhost or unix:, or leave MNEME_AUTH at"
                " required"
            )
        if self.auth == "disabled" and self.http_listen and not is_loopback(self.http_listen):
            raise ValueError(
                "MNEME_AUTH=disabled lets everyone in, and"
                f" MNEME_HTTP_LISTEN={self.http_listen} is not loopback: listen on 127.0.0.1, ::1"
                " or localhost, or leave MNEME_AUTH at required"
            )
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("MNEME_TLS_CERT and MNEME_TLS_KEY go together; only one is set")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise ValueError("MNEME_TLS_CLIENT_CA needs MNEME_TLS_CERT and MNEME_TLS_KEY")
        if self.databases is not None and self.database_url is not None:
            raise ValueError(
                "MNEME_DATABASES is for a server whose catalog is in its data folder: leave it or"
                " MNEME_DATABASE_URL away"
            )
        if self.max_uploads + _OTHER_WORKERS > self.workers:
            raise ValueError(
                f"MNEME_MAX_UPLOADS={self.max_uploads} would leave fewer than {_OTHER_WORKERS} of"
                f" MNEME_WORKERS={self.workers}: exports, reflection, calls waiting for the"
                " embedder and others need one each"
            )
        return self


def _secret_from(variable: str) -> SecretStr | None:
    value = os.environ.get(variable)
    return SecretStr(value) if value else None
