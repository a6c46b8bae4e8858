"""Who has lost the name of a user, a project, an agent or a session asks for nobody: a blank filter
is refused on every surface, and none is taken for "everybody's"."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from mneme import AsyncMnemeClient, MnemeClient
from mneme.errors import InvalidArgumentError
from mneme.v1.auth_pb2 import KeyScope
from support.api import Api
from support.bad_fields import BLANK
from support.hosts import stdio_host, text_of
from support.http import Http
from support.server import LocalServer
from unit.cli.command import mneme

pytestmark = pytest.mark.anyio
every_blank = pytest.mark.parametrize("blank", BLANK.values(), ids=list(BLANK))
SAID = "must not be blank"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def tenant(server: LocalServer) -> Api:
    """Return a tenant with a memory of each of two users; nothing below may change it."""
    api = server.keys.tenant("blank-filters", *(one for one in KeyScope.values() if one))
    with MnemeClient(server.address, api_key=api.secret) as client:
        for user in ("ann", "bob"):
            client.remember(f"{user} keeps the key under the pot", user_id=user, tags=["tmp"])
    return api


@pytest.fixture
def client(server: LocalServer, tenant: Api) -> Iterator[MnemeClient]:
    with MnemeClient(server.address, api_key=tenant.secret) as client:
        yield client


Ask = Callable[[MnemeClient, str], object]
ASKED: dict[str, Ask] = {
    "recall": lambda c, name: c.recall("where is the key", user_id=name),
    "recall of a project": lambda c, name: c.recall("where is the key", project=name),
    "search": lambda c, name: c.search_memories("the key", filter={"agent_id": name}),
    "list": lambda c, name: c.list_memories(filter={"user_id": name}),
    "context": lambda c, name: c.get_context("the key", user_id=name),
    "wake up": lambda c, name: c.wake_up(user_id=name),
    "episodes": lambda c, name: c.search_episodes("the key", filter={"session_id": name}),
    "verify": lambda c, name: c.verify_events(session_id=name),
    "delete": lambda c, name: c.delete_memories(filter={"user_id": name, "tags": ["tmp"]}),
    "forget": lambda c, name: c.forget(user_id=name),
    "forget what matches": lambda c, name: c.forget(filter={"user_id": name, "tags": ["tmp"]}),
}


@every_blank
@pytest.mark.parametrize("ask", ASKED.values(), ids=list(ASKED))
def test_the_python_client_tells_a_blank_name_from_none(
    ask: Ask, blank: str, client: MnemeClient
) -> None:
    with pytest.raises(InvalidArgumentError, match=SAID):
        ask(client, blank)
    assert client.list_memories().total_size == 2


async def test_so_does_the_asynchronous_one(server: LocalServer, tenant: Api) -> None:
    async with AsyncMnemeClient(server.address, api_key=tenant.secret) as client:
        with pytest.raises(InvalidArgumentError, match=SAID):
            await client.recall("where is the key", user_id="")
        assert (await client.recall("where is the key", user_id=None)).total_results == 2


@every_blank
def test_rest_refuses_one_in_a_query_and_in_a_body(
    server: LocalServer, tenant: Api, blank: str
) -> None:
    http = Http(server.http_address, tenant.secret)
    query = http.error("GET", "/api/recall", params={"query": "key", "userId": blank})
    body = http.error("POST", "/api/recall", {"query": "key", "userId": blank})
    for error in (query, body):
        assert (error.http_status, error.reason) == (400, "INVALID_FILTER")
        assert list(error.fields) == ["user_id"]
    answer = http.connect("RecallService/Recall", {"query": "key", "userId": blank})
    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid_argument"
    http.close()


@pytest.mark.parametrize(
    "command",
    [
        ("recall", "where is the key", "--user", ""),
        ("recall", "where is the key", "--project", " "),
        ("memories", "list", "--user", ""),
        ("memories", "delete", "--user", "", "--tag", "tmp", "--yes"),
        ("memories", "delete", "--user", "", "--yes"),
        ("reflections", "list", "--project", ""),
        ("wake-up", "--user", ""),
        ("context", "the key", "--user", ""),
        ("forget", "--user", "", "--tag", "tmp", "--yes"),
        ("call", "Recall", "query=key", "user_id="),
        ("call", "DeleteMemories", "filter.user_id=", "filter.tags=tmp"),
        ("call", "DeleteMemories", 'filter:={"user_id": "", "tags": ["tmp"]}'),
    ],
    ids=" ".join,
)
def test_the_command_line_passes_one_on(
    command: tuple[str, ...],
    server: LocalServer,
    tenant: Api,
    monkeypatch: pytest.MonkeyPatch,
    client: MnemeClient,
) -> None:
    monkeypatch.setenv("MNEME_ADDRESS", server.address)
    monkeypatch.setenv("MNEME_API_KEY", tenant.secret)
    result = mneme(*command)
    assert result.code, result.out
    assert SAID in result.err
    assert client.list_memories().total_size == 2


TOOLS: tuple[tuple[str, dict[str, str], str], ...] = (
    ("agentlens_recall", {"query": "key", "userId": " "}, "userId"),
    ("agentlens_recall", {"query": "key", "project": ""}, "project"),
    ("agentlens_context", {"topic": "key", "userId": ""}, "userId"),
    ("agentlens_learn", {"action": "list", "agentId": ""}, "agentId"),
    ("agentdb_search", {"query": "key", "user_id": ""}, "user_id"),
    ("reflexion_retrieve", {"task": "key", "session_id": ""}, "session_id"),
    ("wake_up", {"user_id": ""}, "user_id"),
    ("skill_search", {"task": "key", "project": ""}, "project"),
)


async def test_a_model_is_told_which_argument_it_left_blank(
    server: LocalServer, tenant: Api
) -> None:
    async with stdio_host(
        "--toolsets", "all", address=server.address, api_key=tenant.secret
    ) as host:
        for tool, arguments, argument in TOOLS:
            refused = await host.call_tool(tool, arguments)
            assert refused.is_error, tool
            assert argument in text_of(refused)
            assert SAID in text_of(refused)
            without = {name: value for name, value in arguments.items() if name != argument}
            assert not (await host.call_tool(tool, {**without, argument: None})).is_error, tool


def test_what_is_not_filtered_is_of_all(client: MnemeClient) -> None:
    assert client.recall("where is the key").total_results == 2
    told = client.delete_memories(filter={"tags": ["tmp"]}, dry_run=True)
    assert told.deleted_count == 2
