"""Keys, tenants, servers that stop: what the agent reads, and that the adapter lives on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mneme.v1 import auth_pb2
from support.hosts import http_adapter, http_host, stdio_host, text_of
from support.server import ServerProcess

pytestmark = pytest.mark.anyio

RECALL = ("agentlens_recall", {"query": "what was learned"})
SAVE = ("agentlens_learn", {"action": "save", "title": "Kept", "content": "It was kept."})


async def refused(host: Client, name: str, arguments: dict[str, Any]) -> str:
    result = await host.call_tool(name, arguments)
    assert result.is_error
    error = (result.structured_content or {})["error"]
    assert error["code"].isupper()
    assert error["reason"].isupper()
    assert error["message"] == text_of(result)
    return text_of(result)


async def answered(host: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await host.call_tool(name, arguments)
    assert not result.is_error, text_of(result)
    return result.structured_content or {}


async def test_without_a_key_the_agent_reads_where_to_set_it(server: Any) -> None:
    async with stdio_host(address=server.address) as host:
        said = await refused(host, *RECALL)
        assert "needs an API key" in said
        assert "set MNEME_API_KEY" in said


async def test_with_a_wrong_key_the_agent_reads_that_it_is_wrong(server: Any) -> None:
    async with stdio_host(address=server.address, api_key="mn_wrong") as host:
        said = await refused(host, *RECALL)
        assert "unknown or was revoked" in said
        assert "set MNEME_API_KEY" in said


async def test_a_key_that_may_only_read_recalls_and_is_told_what_it_lacks(server: Any) -> None:
    tenant = server.keys.tenant("reader", auth_pb2.KEY_SCOPE_READ)
    async with stdio_host(address=server.address, api_key=tenant.secret) as host:
        await answered(host, *RECALL)
        said = await refused(host, *SAVE)
        assert "write" in said
        assert "mneme admin keys create" in said


async def test_settings_that_cannot_be_used_are_explained_by_every_tool() -> None:
    async with stdio_host(address="memory.example.com", api_key="mn_x") as host:
        said = await refused(host, *RECALL)
        assert "in the clear" in said
        assert "MNEME_TLS=1" in said


@pytest.mark.slow
async def test_the_adapter_outlives_a_server_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    listen = f"unix:{tmp_path / 'socket'}"  # A port could be another's by the time it is used.
    data = tmp_path / "data"
    server = ServerProcess(data, listen=listen, auth="disabled")
    try:
        async with stdio_host(address=listen) as host:
            await answered(host, *SAVE)
            server.kill()
            said = await refused(host, *RECALL)
            assert f"No Mneme server answers at {listen}" in said
            assert "mneme-server serve" in said
            server = ServerProcess(data, listen=listen, auth="disabled")
            found = await answered(host, *RECALL)
            assert [one["metadata"]["title"] for one in found["results"]] == ["Kept"]
    finally:
        if server.process.poll() is None:
            server.stop()


@pytest.mark.slow
async def test_a_host_may_start_before_the_server(tmp_path: Path) -> None:
    listen = f"unix:{tmp_path / 'socket'}"  # A port could be another's by the time it is used.
    async with stdio_host(address=listen) as host:
        assert (await host.list_tools()).tools
        await refused(host, *RECALL)
        server = ServerProcess(tmp_path / "data", listen=listen, auth="disabled")
        try:
            await answered(host, *RECALL)
        finally:
            server.stop()


@pytest.mark.slow
async def test_pages_and_prompts_of_a_server_that_is_down_say_what_to_do() -> None:
    async with stdio_host(address="127.0.0.1:9") as host:
        with pytest.raises(MCPError, match="mneme-server serve"):
            await host.read_resource("mneme://lessons")
        with pytest.raises(MCPError, match="mneme-server serve"):
            await host.get_prompt("start_of_session", {})


async def test_over_http_each_caller_sees_the_memory_of_its_own_key(
    server: Any, adapter: str
) -> None:
    keys = [server.keys.tenant("http").secret for _ in range(2)]
    for number, key in enumerate(keys):
        async with http_host(adapter, key) as host:
            lesson = {"action": "save", "title": f"Of caller {number}", "content": "Mine alone."}
            await answered(host, "agentlens_learn", lesson)
    for number, key in enumerate(keys):
        async with http_host(adapter, key) as host:
            found = await answered(host, *RECALL)
            assert [r["metadata"]["title"] for r in found["results"]] == [f"Of caller {number}"]
            page = (await host.read_resource("mneme://lessons")).contents[0]
            assert f"Of caller {number}" in page.text  # type: ignore[union-attr]
            assert f"Of caller {1 - number}" not in page.text  # type: ignore[union-attr]


async def test_over_http_the_adapters_own_key_is_never_used(server: Any) -> None:
    key = server.keys.tenant("own").secret
    with http_adapter(address=server.address, api_key=key) as url:
        async with http_host(url) as host:
            said = await refused(host, *RECALL)
            assert "Authorization: Bearer" in said
            assert "MNEME_API_KEY" not in said
        async with http_host(url, key) as host:
            await answered(host, *RECALL)


async def test_over_http_more_keys_than_connections_are_kept_all_work(server: Any) -> None:
    from mneme_mcp.access import Access
    from mneme_mcp.clients import Clients, connect

    access = Access(server.address, over_http=True)
    access.clients = Clients(lambda key: connect(server.address, key), limit=2)
    keys = [server.keys.tenant("many").secret for _ in range(4)]
    for key in keys * 2:
        async with access.clients.use(key) as client:
            await client.recall("anything")
        assert len(access.clients) <= 2
    await access.clients.aclose()


async def test_over_http_a_request_with_two_keys_is_refused(server: Any, adapter: str) -> None:
    keys = [server.keys.tenant("two-keys").secret for _ in range(2)]
    async with httpx2.AsyncClient() as http:
        answers = [
            await http.post(
                adapter,
                headers=[
                    ("Accept", "application/json, text/event-stream"),
                    *(("Authorization", f"Bearer {key}") for key in sent),
                ],
                json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
            )
            for sent in (keys[:1], keys, keys[:1] * 2)
        ]
    assert [answer.status_code for answer in answers] == [200, 400, 400]
    assert answers[1].text == "send one Authorization header"


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example.com"}, {"Origin": "https://evil.example.com"}]
)
async def test_a_web_page_cannot_reach_a_local_adapter(
    adapter: str, headers: dict[str, str]
) -> None:
    async with httpx2.AsyncClient() as http:
        answer = await http.post(
            adapter,
            headers=headers | {"Accept": "application/json, text/event-stream"},
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        )
    assert answer.status_code in (403, 421)


async def test_a_toolset_that_is_not_chosen_is_not_listed_and_says_how_to_choose_it(
    server: Any, api: Any
) -> None:
    async with stdio_host(
        address=server.address, api_key=api.secret, mcp_toolsets="knowledge"
    ) as host:
        assert [t.name for t in (await host.list_tools()).tools] == ["memory_log", "memory_query"]
        said = await refused(host, *RECALL)
        assert "--toolsets knowledge,compat" in said


async def test_the_tools_of_a_host_that_names_earlier_toolsets_are_those_that_it_had(
    server: Any, api: Any
) -> None:
    chosen = "core,sessions,reflections,knowledge"
    async with stdio_host(address=server.address, api_key=api.secret, mcp_toolsets=chosen) as host:
        names = [tool.name for tool in (await host.list_tools()).tools]
    assert set(names) == {
        "agentlens_recall",
        "agentlens_learn",
        "agentlens_reflect",
        "agentlens_context",
        "sleep",
        "wake_up",
        "semantic_session_search",
        "reflection_store",
        "reflection_get",
        "reflection_search",
        "reflection_summary",
        "memory_log",
        "memory_query",
    }
