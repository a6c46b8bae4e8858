"""Where the server is and how to reach it: address, key, TLS, channel options."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from mneme._version import __version__
from mneme.errors import ConfigurationError

DEFAULT_ADDRESS = "127.0.0.1:50051"
_DEFAULT_PORTS = {False: 50051, True: 443}
_SCHEMES = {"grpc": False, "http": False, "grpcs": True, "https": True}
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})
_MAX_MESSAGE_BYTES = 64 * 1024 * 1024
ROUTE = "x-mneme-tenant"
"""By this header balancers send the calls of a tenant to the same server. No server heeds it."""
APART = (("grpc.use_local_subchannel_pool", 1),)
"""Options of a channel that shares its connection with no other; those with equal options do."""


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """How to check the server's certificate, and what to show it.

    Args:
        ca: file of the certificates to trust; None: the system's.
        certificate: file of the client's own certificate chain (mutual TLS).
        key: file of its private key.
        server_name: the name that the server's certificate carries, where it is not the
            address's.
    """

    ca: str | os.PathLike[str] | None = None
    certificate: str | os.PathLike[str] | None = None
    key: str | os.PathLike[str] | None = None
    server_name: str | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """Everything that a channel is made from.

    Args:
        target: the address as gRPC takes it.
        metadata: what every call carries.
        credentials: TLS credentials; None: plaintext.
        options: the channel's options.
        timeout: seconds for a unary call by default; None: no deadline.
        retries: how often a call may be sent again; None: as often as its time allows.
        wait_for_ready: whether calls wait for the server until their deadline.
        read_own_writes: whether what is read shows what was written before by the same client.
    """

    target: str
    metadata: tuple[tuple[str, str], ...]
    credentials: grpc.ChannelCredentials | None
    options: tuple[tuple[str, Any], ...]
    timeout: float | None
    retries: int | None
    wait_for_ready: bool
    read_own_writes: bool = True

    def channel(self, more: tuple[tuple[str, Any], ...] = ()) -> grpc.Channel:
        """A channel to the server, with more options when given."""
        options = (*self.options, *more)
        if self.credentials is None:
            return grpc.insecure_channel(self.target, options)
        return grpc.secure_channel(self.target, self.credentials, options)

    def aio_channel(self, more: tuple[tuple[str, Any], ...] = ()) -> grpc.aio.Channel:
        """The same for asyncio; it belongs to the event loop that runs."""
        options = (*self.options, *more)
        if self.credentials is None:
            return grpc.aio.insecure_channel(self.target, options)
        return grpc.aio.secure_channel(self.target, self.credentials, options)


def connection_of(
    *,
    address: str | None,
    api_key: str | None,
    tls: bool | str | os.PathLike[str] | TlsConfig | None,
    insecure: bool | None,
    timeout: float | None,
    retries: int | None,
    wait_for_ready: bool,
    options: Iterable[tuple[str, Any]],
    read_own_writes: bool = True,
    tenant: str | None = None,
) -> Connection:
    """Join arguments and environment; ConfigurationError when they cannot be used."""
    endpoint = _Endpoint.parse(address or os.environ.get("MNEME_ADDRESS") or DEFAULT_ADDRESS)
    config = _tls(tls, endpoint)
    key = api_key if api_key is not None else os.environ.get("MNEME_API_KEY")
    metadata = _authorization(key.strip()) if key and key.strip() else ()
    if tenant is None:
        tenant = os.environ.get("MNEME_TENANT")
    if insecure is None:
        insecure = os.environ.get("MNEME_INSECURE", "").strip().lower() in _TRUE
    if metadata and config is None and not endpoint.is_local and not insecure:
        raise ConfigurationError(
            f"the API key would cross the network to {endpoint.target} in the clear: use TLS "
            "(tls=True or MNEME_TLS=1), or say that the network is trusted "
            "(insecure=True or MNEME_INSECURE=1)"
        )
    if retries is not None and retries < 0:
        raise ConfigurationError(f"retries must be at least 0, not {retries}")
    return Connection(
        target=endpoint.target,
        metadata=(*metadata, *_route((tenant or "").strip())),
        credentials=_credentials(config) if config else None,
        options=(*_channel_options(retries, config), *options),
        timeout=timeout,
        retries=retries,
        wait_for_ready=wait_for_ready,
        read_own_writes=read_own_writes,
    )


@dataclass(frozen=True, slots=True)
class _Endpoint:
    target: str
    host: str
    tls: bool | None

    @property
    def is_local(self) -> bool:
        """Whether what is sent stays on this machine."""
        return self.target.startswith(("unix:", "unix-abstract:")) or is_this_machine(self.host)

    @classmethod
    def parse(cls, address: str) -> _Endpoint:
        address = address.strip()
        scheme, separator, rest = address.partition("://")
        if separator and scheme.lower() in _SCHEMES:
            tls: bool | None = _SCHEMES[scheme.lower()]
            address = rest.rstrip("/")
        elif address.startswith(("unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:")):
            # A target in gRPC's own notation.
            return cls(address, _host_of(address.rpartition("/")[2]), None)
        else:
            tls = None
        host = _host_of(address)
        if not host or "/" in address or any(c.isspace() for c in address):
            raise ConfigurationError(f"{address!r} is not an address: give HOST or HOST:PORT")
        return cls(_with_port(address, host, _DEFAULT_PORTS[bool(tls)]), host, tls)


def is_this_machine(host: str) -> bool:
    """Tell whether a host's name or address leads nowhere but here."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(address: str) -> str:
    """Return the host of an address as `MnemeClient` takes it."""
    return _Endpoint.parse(address).host


def _host_of(address: str) -> str:
    if address.startswith("["):
        return address[1:].partition("]")[0]
    # More than one colon without brackets is an IPv6 address without a port.
    return address if address.count(":") > 1 else address.partition(":")[0]


def _with_port(address: str, host: str, default: int) -> str:
    name = f"[{host}]" if ":" in host else host
    port = address[len(name) :] if address.startswith(name) else ""
    if not port:
        return f"{name}:{default}"
    if not port[1:].isdecimal() or not 0 < int(port[1:]) < 65536:
        raise ConfigurationError(f"{address!r} is not an address: the port is a number up to 65535")
    return f"{name}{port}"


def _tls(
    tls: bool | str | os.PathLike[str] | TlsConfig | None, endpoint: _Endpoint
) -> TlsConfig | None:
    """The TLS settings; None for plaintext. The argument wins over the address, that over env."""
    if tls is None and endpoint.tls is not None:
        tls = endpoint.tls
    if tls is None:
        setting = os.environ.get("MNEME_TLS", "").strip()
        is_switch = setting.lower() in _TRUE | _FALSE
        tls = setting.lower() in _TRUE if is_switch else setting
    if isinstance(tls, TlsConfig):
        return tls
    if isinstance(tls, bool):
        return TlsConfig() if tls else None
    return TlsConfig(ca=tls)


def _route(tenant: str) -> tuple[tuple[str, str], ...]:
    if not tenant.isascii() or not tenant.isprintable() or " " in tenant:
        raise ConfigurationError(f"{tenant!r} holds characters that no tenant's id has")
    return ((ROUTE, tenant),) if tenant else ()


def _authorization(key: str) -> tuple[tuple[str, str], ...]:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigurationError("the API key holds characters that no key has; copy it again")
    return (("authorization", f"Bearer {key}"),)


def _credentials(config: TlsConfig) -> grpc.ChannelCredentials:
    if bool(config.certificate) != bool(config.key):
        raise ConfigurationError("mutual TLS needs both a certificate and its key")
    return grpc.ssl_channel_credentials(
        root_certificates=_read(config.ca),
        private_key=_read(config.key),
        certificate_chain=_read(config.certificate),
    )


def _read(path: str | os.PathLike[str] | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise ConfigurationError(f"TLS: cannot read {os.fspath(path)}: {error.strerror}") from error


def _channel_options(retries: int | None, config: TlsConfig | None) -> list[tuple[str, Any]]:
    options: list[tuple[str, Any]] = [
        ("grpc.primary_user_agent", f"mneme-python/{__version__}"),
        ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
        # Notices a peer that vanished while a stream waits. The server allows a ping every ten
        # seconds.
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        # A server that comes back is found within two seconds, not after gRPC's two minutes.
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 2_000),
        # What is sent twice is decided by `Attempts`, not by gRPC, nor by settings of the server's.
        ("grpc.service_config_disable_resolution", 1),
    ]
    if retries == 0:
        options.append(("grpc.enable_retries", 0))
    if config and config.server_name:
        options.append(("grpc.ssl_target_name_override", config.server_name))
    return options
