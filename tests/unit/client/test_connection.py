"""Addresses, keys, TLS."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest
from mneme import AsyncMnemeClient, ConfigurationError, MnemeClient, TlsConfig, errors
from unit.client.scripted import ScriptedServer


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("127.0.0.1:50051", "127.0.0.1:50051"),
        ("localhost", "localhost:50051"),
        ("grpc://localhost", "localhost:50051"),
        ("http://localhost:8080/", "localhost:8080"),
        ("grpcs://mneme.example.com", "mneme.example.com:443"),
        ("https://mneme.example.com:8443", "mneme.example.com:8443"),
        ("::1", "[::1]:50051"),
        ("[::1]:9", "[::1]:9"),
        ("unix:/run/mneme.sock", "unix:/run/mneme.sock"),
        ("dns:///mneme.example.com:50051", "dns:///mneme.example.com:50051"),
    ],
)
def test_an_address_is_understood_in_the_ways_people_write_it(said: str, meant: str) -> None:
    with MnemeClient(said) as client:
        assert client.address == meant


@pytest.mark.parametrize(
    "said", ["host:port", "host:0", "host:70000", "a b", "host/path", ":50051"]
)
def test_what_is_no_address_is_refused_with_what_is_expected(said: str) -> None:
    with pytest.raises(ConfigurationError, match="is not an address"):
        MnemeClient(said)


def test_the_environment_fills_in_what_the_caller_leaves_open(
    monkeypatch: pytest.MonkeyPatch, served: ScriptedServer
) -> None:
    monkeypatch.setenv("MNEME_ADDRESS", served.address)
    monkeypatch.setenv("MNEME_API_KEY", " mn_from-the-environment\n")
    with MnemeClient() as client:
        client.recall("q")
    assert served.calls("Recall")[0].metadata["authorization"] == "Bearer mn_from-the-environment"
    with MnemeClient(api_key="mn_given") as client:
        assert client.metadata == (("authorization", "Bearer mn_given"),)
    with MnemeClient(api_key="") as client:
        assert client.metadata == ()


def test_the_tenant_that_is_given_is_sent_for_balancers(
    monkeypatch: pytest.MonkeyPatch, served: ScriptedServer
) -> None:
    monkeypatch.setenv("MNEME_TENANT", " of-the-environment\n")
    for given in (None, "acme", ""):
        with MnemeClient(served.address, tenant=given) as client:
            client.recall("q")

    async def ask() -> None:
        async with AsyncMnemeClient(served.address, tenant="acme") as client:
            await client.recall("q")

    asyncio.run(ask())
    sent = [call.metadata.get("x-mneme-tenant") for call in served.calls("Recall")]
    assert sent == ["of-the-environment", "acme", None, "acme"]


@pytest.mark.parametrize("tenant", ["ä", "a b", "a\nb"])
def test_a_tenant_that_no_header_can_hold_is_refused(tenant: str) -> None:
    with pytest.raises(ConfigurationError, match="characters that no tenant's id has"):
        MnemeClient(tenant=tenant)


def test_without_anything_said_the_server_is_on_this_machine() -> None:
    with MnemeClient() as client:
        assert client.address == "127.0.0.1:50051"
        assert client.metadata == ()


def test_a_key_is_not_sent_in_the_clear_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="in the clear: use TLS"):
        MnemeClient("mneme.example.com:50051", api_key="mn_k")
    MnemeClient("mneme.example.com:50051", api_key="mn_k", tls=True).close()
    MnemeClient("grpcs://mneme.example.com", api_key="mn_k").close()
    MnemeClient("mneme.example.com:50051", api_key="mn_k", insecure=True).close()
    MnemeClient("mneme.example.com:50051").close()
    monkeypatch.setenv("MNEME_INSECURE", "1")
    MnemeClient("mneme.example.com:50051", api_key="mn_k").close()


@pytest.mark.parametrize(
    "local", ["127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/tmp/x", "127.9.9.9"]
)
def test_a_key_may_be_sent_in_the_clear_on_this_machine(local: str) -> None:
    MnemeClient(local, api_key="mn_k").close()


@pytest.mark.parametrize("key", ["mn_ä", "mn_a b", "mn_a\nb"])
def test_a_key_that_cannot_be_one_is_refused(key: str) -> None:
    with pytest.raises(ConfigurationError, match="characters that no key has"):
        MnemeClient(api_key=key)


def test_a_missing_certificate_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read .*nowhere\.pem"):
        MnemeClient(tls=tmp_path / "nowhere.pem")


def test_mutual_tls_needs_both_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="both a certificate and its key"):
        MnemeClient(tls=TlsConfig(certificate=tmp_path / "c.pem"))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for the name `mneme.test`, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = [
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=mneme.test",
        "-addext", "subjectAltName=DNS:mneme.test",
    ]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"openssl cannot make a certificate here: {error}")
    return certificate, key


@pytest.fixture
def secure(certificate: tuple[Path, Path]) -> Any:
    chain, key = certificate
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), chain.read_bytes())])
    server = ScriptedServer().start(credentials)
    yield server
    server.stop()


def test_a_server_is_checked_against_the_certificates_that_are_given(
    secure: ScriptedServer, certificate: tuple[Path, Path], connect: Any
) -> None:
    tls = TlsConfig(ca=certificate[0], server_name="mneme.test")
    connect(secure.address, tls=tls, api_key="mn_k").call("recall", "q")
    assert secure.calls("Recall")[0].metadata["authorization"] == "Bearer mn_k"


def test_a_server_that_nobody_vouches_for_is_not_talked_to(
    secure: ScriptedServer, connect: Any
) -> None:
    with pytest.raises(errors.UnavailableError):
        connect(secure.address, tls=True, retries=0).call("recall", "q")
    assert secure.seen == []


def test_the_environment_may_ask_for_tls(
    secure: ScriptedServer, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_TLS", str(certificate[0]))
    override = [("grpc.ssl_target_name_override", "mneme.test")]
    with MnemeClient(secure.address, options=override) as client:
        client.recall("q")
    monkeypatch.setenv("MNEME_TLS", "0")
    with MnemeClient(secure.address, retries=0) as client, pytest.raises(errors.UnavailableError):
        client.recall("q")


@pytest.mark.parametrize("retries", [0, 3])
def test_a_server_that_was_away_for_long_is_looked_for_every_two_seconds(retries: int) -> None:
    with MnemeClient(retries=retries) as client:
        assert dict(client._connection.options)["grpc.max_reconnect_backoff_ms"] == 2_000


def test_waiting_for_ready_bridges_a_server_that_is_still_coming_up(
    served: ScriptedServer,
) -> None:
    served.stop()
    late = ScriptedServer()

    async def main() -> None:
        async with AsyncMnemeClient(served.address, wait_for_ready=True, timeout=30) as client:
            call = asyncio.create_task(client.recall("q"))
            await asyncio.sleep(0.2)
            assert not call.done()
            late.start(port=served.port)
            await call

    asyncio.run(main())
    late.stop()


def test_one_client_serves_many_threads(served: ScriptedServer) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with MnemeClient(served.address) as client, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: client.recall(str(number)), range(64)))
    assert {call.request.query for call in served.calls("Recall")} == {str(n) for n in range(64)}


def test_importing_the_package_loads_no_grpc() -> None:
    code = "import sys, mneme; assert 'grpc' not in sys.modules; from mneme import MnemeClient"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    subprocess.run([_python(), "-c", code], check=True, env=environment)


def _python() -> str:
    import sys

    return sys.executable
