from __future__ import annotations

from typing import Any

import pytest
from mneme_mcp.clients import Clients, bearer_token

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class FakeClient:
    def __init__(self, key: str | None) -> None:
        self.key = key
        self.closed = False

    async def aclose(self) -> None:
        self.closed = True


def clients(limit: int) -> tuple[Clients, dict[str | None, FakeClient]]:
    made: dict[str | None, FakeClient] = {}

    def make(key: str | None) -> Any:
        assert key not in made or made[key].closed, "made twice"
        made[key] = FakeClient(key)
        return made[key]

    return Clients(make, limit), made


async def test_a_key_keeps_its_client() -> None:
    several, _ = clients(2)
    async with several.use("a") as first:
        pass
    async with several.use("a") as second:
        assert first is second


async def test_each_key_has_a_client_of_its_own() -> None:
    several, made = clients(2)
    async with several.use("a") as a, several.use("b") as b:
        assert (a, b) == (made["a"], made["b"])


async def test_the_client_that_was_not_used_for_longest_is_closed() -> None:
    several, made = clients(2)
    for key in ("a", "b", "a", "c"):
        async with several.use(key):
            pass
    assert made["b"].closed
    assert not made["a"].closed
    assert len(several) == 2


async def test_a_client_in_use_is_closed_only_afterwards() -> None:
    several, made = clients(1)
    async with several.use("a"):
        async with several.use("b"):
            pass
        assert len(several) == 1
        assert not made["a"].closed
    assert made["a"].closed


async def test_closing_closes_all() -> None:
    several, made = clients(5)
    for key in ("a", None):
        async with several.use(key):
            pass
    await several.aclose()
    assert all(client.closed for client in made.values())


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer mn_1", "mn_1"),
        ("bearer  mn_1 ", "mn_1"),
        ("Basic mn_1", ""),
        ("mn_1", ""),
    ],
)
async def test_a_bearer_token_is_read_and_nothing_else(header: str, token: str) -> None:
    assert bearer_token({"authorization": header}) == token
    assert bearer_token({}) == bearer_token(None) == ""
