"""A text or a question in which nothing is to be seen says nothing: it is refused on every surface,
with its field, and nothing is stored of it. (test_bad_input asks every RPC that takes one.)"""

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
SAID = "must not be blank"
REFUSED = f"{SAID}|is required|at least 1 character"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def tenant(server: LocalServer) -> Api:
    """Return a tenant with one memory; nothing below may add to it."""
    api = server.keys.tenant("blank-texts", *(one for one in KeyScope.values() if one))
    with MnemeClient(server.address, api_key=api.secret) as client:
        client.remember("The key is under the pot.", memory_id="key")
    return api


@pytest.fixture
def client(server: LocalServer, tenant: Api) -> Iterator[MnemeClient]:
    with MnemeClient(server.address, api_key=tenant.secret) as client:
        yield client


Give = Callable[[MnemeClient, str], object]
GIVEN: dict[str, Give] = {
    "text": lambda c, text: c.remember(text),
    "memory.text": lambda c, text: list(c.create_memories([{"text": text}])),
    "memory.text: ": lambda c, text: c.update_memory("key", text=text),
    "title": lambda c, text: c.create_lesson(text, "Look under the pot."),
    "content": lambda c, text: c.create_lesson("Keys", text),
    "lesson": lambda c, text: c.create_knowledge("p", "pattern", context="a door", lesson=text),
    "task_description": lambda c, text: c.create_reflection("s", text, outcome="success"),
    "what_worked[0]": lambda c, text: c.create_reflection(
        "s", "open it", outcome="success", what_worked=[text]
    ),
    "query": lambda c, text: c.recall(text),
    "topic": lambda c, text: c.get_context(text),
    "open_todos[0].content": lambda c, text: c.sleep("s", open_todos=[{"content": text}]),
}
# Who somebody is may be left out, as an empty name says; one of spaces is a name that got lost.
WHOSE: dict[str, Give] = {
    "user_id": lambda c, name: c.remember("The bell is broken.", user_id=name),
    "project": lambda c, name: c.create_lesson("Keys", "Look under the pot.", project=name),
    "agent_id": lambda c, name: c.start_session(session_id="s", agent_id=name),
    "events[0].agent_id": lambda c, name: c.record_events(
        [{"session_id": "s", "event_type": "message", "text": "hello", "agent_id": name}]
    ),
}


@pytest.mark.parametrize("blank", BLANK.values(), ids=list(BLANK))
@pytest.mark.parametrize(("field", "give"), GIVEN.items(), ids=list(GIVEN))
def test_the_python_client_is_told_which_text_says_nothing(
    field: str, give: Give, blank: str, client: MnemeClient
) -> None:
    with pytest.raises(InvalidArgumentError, match=REFUSED) as refused:
        give(client, blank)
    assert field in str(refused.value)
    assert [memory.id for memory in client.list_memories().memories] == ["key"]


@pytest.mark.parametrize("blank", [one for one in BLANK.values() if one], ids=repr)
@pytest.mark.parametrize(("field", "give"), WHOSE.items(), ids=list(WHOSE))
def test_nothing_is_written_for_a_user_an_agent_or_a_project_whose_name_got_lost(
    field: str, give: Give, blank: str, client: MnemeClient
) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{SAID}|on one line") as refused:
        give(client, blank)
    assert field in str(refused.value)
    assert not client.list_sessions().sessions
    assert [memory.id for memory in client.list_memories().memories] == ["key"]


def test_a_text_of_a_skill_or_an_episode_may_be_left_out_but_not_be_blank(
    client: MnemeClient,
) -> None:
    for give in (
        lambda: client.create_skill("open doors", description=" \n"),
        lambda: client.create_episode(task="\u200b", session_id="s", reward=1.0),
        lambda: client.list_lessons(words=" "),
    ):
        with pytest.raises(InvalidArgumentError, match=SAID):
            give()


def test_what_is_in_no_alphabet_is_seen(server: LocalServer) -> None:
    api = server.keys.tenant("blank-texts-seen")
    with MnemeClient(server.address, api_key=api.secret) as client:
        # An emoji, one that Unicode got later, a private character, and one symbol.
        for text in ("👍\ufe0f", "\U0001fae8", "\ue000", "\u200b?"):
            assert client.get_memory(client.remember(text).memory.id).memory.text == text


async def test_so_is_the_asynchronous_client(server: LocalServer, tenant: Api) -> None:
    async with AsyncMnemeClient(server.address, api_key=tenant.secret) as client:
        for call in (client.remember("\u3000"), client.recall("\t")):
            with pytest.raises(InvalidArgumentError, match=SAID):
                await call


def test_rest_and_connect_name_the_field(server: LocalServer, tenant: Api) -> None:
    http = Http(server.http_address, tenant.secret)
    for error in (
        http.error("GET", "/api/recall", params={"query": " \n"}),
        http.error("POST", "/api/recall", {"query": "\u200b"}),
    ):
        assert (error.http_status, error.reason) == (400, "INVALID_PARAMETER")
        assert list(error.fields) == ["query"]
    answer = http.connect("MemoryService/CreateMemory", {"text": "\ufeff"})
    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid_argument"
    http.close()


@pytest.mark.parametrize(
    "command",
    [
        ("recall", " "),
        ("context", "\u00a0"),
        ("remember", " \t"),
        ("memories", "search", "\u200b"),
        ("call", "SearchLessons", "query= "),
    ],
    ids=repr,
)
def test_the_command_line_passes_one_on(
    command: tuple[str, ...], server: LocalServer, tenant: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_ADDRESS", server.address)
    monkeypatch.setenv("MNEME_API_KEY", tenant.secret)
    result = mneme(*command)
    assert result.code, result.out
    assert SAID in result.err


TOOLS: tuple[tuple[str, dict[str, object], str], ...] = (
    ("agentlens_recall", {"query": " "}, "query"),
    ("agentlens_context", {"query": "\u200b"}, "query"),
    ("agentdb_insert", {"text": "\n"}, "text"),
    ("agentdb_search", {"query": "\u3164"}, "query"),
    ("reflexion_retrieve", {"query": " "}, "query"),
    ("skill_search", {"query": " "}, "query"),
)


async def test_a_model_is_told_which_argument_says_nothing(
    server: LocalServer, tenant: Api
) -> None:
    async with stdio_host(
        "--toolsets", "all", address=server.address, api_key=tenant.secret
    ) as host:
        for tool, arguments, argument in TOOLS:
            refused = await host.call_tool(tool, arguments)
            assert refused.is_error, tool
            said = text_of(refused)
            assert f"{argument}:" in said
            assert SAID in said or "at least 1 character" in said
