"""What was withdrawn, a lesson that proved wrong, is not recalled unless it is asked for, and is
marked then; what was replaced is told as replaced."""

from __future__ import annotations

import pytest
from mneme import MnemeClient
from mneme.v1 import auth_pb2
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import recall_service_pb2 as pb
from support.api import Api
from support.hosts import stdio_host, text_of
from support.http import Http
from support.making import ids_of, lesson, recall
from support.server import LocalServer
from unit.cli.command import mneme

pytestmark = pytest.mark.anyio
QUERY = "pool exhausted"
WRONG = "Restart the database by hand."
MODES = (pb.RECALL_MODE_HYBRID, pb.RECALL_MODE_DENSE, pb.RECALL_MODE_LEXICAL)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def tenant(server: LocalServer) -> Api:
    """Return a tenant with a lesson that was archived and one that holds."""
    api = server.keys.tenant("withdrawn", *(one for one in auth_pb2.KeyScope.values() if one))
    lesson(api, title="Pool exhausted", content=WRONG, lesson_id="wrong")
    lesson(api, title="Pool exhausted", content="Close what is idle.", lesson_id="right")
    api.learn.ArchiveLesson(learn_pb.ArchiveLessonRequest(lesson_id="wrong"))
    return api


@pytest.mark.parametrize("mode", MODES)
def test_an_archived_lesson_is_recalled_only_if_it_is_asked_for(mode: int, tenant: Api) -> None:
    found = recall(tenant, QUERY, mode=mode)
    assert (ids_of(found), found.searched_count) == (["right"], 1)
    found = recall(tenant, QUERY, mode=mode, scopes=["lesson"], include_archived=True)
    marks = {one.source_id: one.metadata["archived"] for one in found.results}
    assert marks == {"wrong": True, "right": False}


def test_one_that_is_restored_is_recalled_again(api: Api) -> None:
    lesson(api, title="Pool exhausted", content=WRONG, lesson_id="wrong")
    for _ in range(2):
        api.learn.ArchiveLesson(learn_pb.ArchiveLessonRequest(lesson_id="wrong"))
        assert recall(api, QUERY).outcome == pb.RECALL_OUTCOME_NOTHING_MATCHES_FILTERS
        api.learn.UnarchiveLesson(learn_pb.UnarchiveLessonRequest(lesson_id="wrong"))
        assert ids_of(recall(api, QUERY)) == ["wrong"]


def test_rest_and_the_command_line_say_which_is_archived(
    server: LocalServer, tenant: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    http = Http(server.http_address, tenant.secret)
    assert WRONG not in str(http.get("/api/recall", params={"query": QUERY}))
    asked = {"query": QUERY, "includeArchived": "true"}
    (marked,) = (
        one
        for one in http.get("/api/recall", params=asked)["results"]
        if one["sourceId"] == "wrong"
    )
    assert marked["metadata"]["archived"] is True
    http.close()
    monkeypatch.setenv("MNEME_ADDRESS", server.address)
    monkeypatch.setenv("MNEME_API_KEY", tenant.secret)
    assert WRONG not in mneme("recall", QUERY).out
    assert mneme("recall", QUERY, "--archived").out.count("(archived)") == 1


async def test_a_model_is_not_told_what_was_withdrawn(server: LocalServer, tenant: Api) -> None:
    async with stdio_host(address=server.address, api_key=tenant.secret) as host:
        told = text_of(await host.call_tool("agentlens_recall", {"query": QUERY}))
    assert "Close what is idle." in told
    assert WRONG not in told


def test_what_was_replaced_by_what_the_filters_leave_out_is_told_as_replaced(
    server: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MnemeClient(server.address, api_key=api.secret) as client:
        client.create_memory("invoices go by post", memory_id="old", tags=["billing"])
        client.create_memory("invoices go by mail", memory_id="new", supersedes=["old"])
    assert not recall(api, "how do invoices go", tags=["billing"]).results
    (found,) = recall(api, "how do invoices go", tags=["billing"], include_superseded=True).results
    assert found.metadata["superseded_by"] == "new"
    monkeypatch.setenv("MNEME_ADDRESS", server.address)
    monkeypatch.setenv("MNEME_API_KEY", api.secret)
    asked = ("recall", "how do invoices go", "--tag", "billing")
    assert "(replaced by new)" in mneme(*asked, "--superseded").out
    assert "invoices" not in mneme(*asked).out
    listed = api.memory.ListMemories(memory_pb.ListMemoriesRequest())
    assert [one.id for one in listed.memories] == ["new"]
