"""The server is killed when something is committed and no index knows of it yet."""

from __future__ import annotations

import signal
from pathlib import Path

import grpc
import pytest
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import skill_service_pb2 as skill_pb
from support.api import Api
from support.cutting import LAST
from support.making import episode, event, ids_of, recall, record, skill
from support.server import ServerProcess, server_process

LEXICAL, DENSE = recall_pb.RECALL_MODE_LEXICAL, recall_pb.RECALL_MODE_DENSE


def test_an_event_whose_commit_no_index_was_told_of_is_found_after_the_next_start(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with server_process(data) as server:  # What the indexes write when it stops lacks the rest.
        api = server.keys.tenant()
        secret = api.secret
        record(api, *[event(f"heron {n} stood in the reeds", id=f"h{n}") for n in range(30)],
               wait=True)  # fmt: skip
    server = ServerProcess(data, cut_at="apply")
    api = server.keys.api(secret)
    record(api, event("a pelican sat on the pier", id="pelican"), wait=True)
    with pytest.raises(grpc.RpcError):
        record(api, event("a kingfisher dived from the bridge", id=LAST))
    assert server.process.wait(timeout=60) == -signal.SIGKILL, server.log
    server._release()
    with server_process(data) as server:
        api = server.keys.api(secret)
        assert ids_of(recall(api, "kingfisher", mode=LEXICAL)) == [LAST]
        assert ids_of(recall(api, "pelican", mode=LEXICAL)) == ["pelican"]
        record(api, event("the tide came in", id="tide"), wait=True)  # And those before it.
        assert LAST in ids_of(recall(api, "a bird that dives", mode=DENSE, limit=50))
        found = recall(api, "heron kingfisher pelican tide", limit=50)
        assert set(ids_of(found)) >= {LAST, "pelican", "tide", "h0"}
        assert all(result.HasField("similarity") for result in found.results)


@pytest.mark.parametrize("kind", ["episode", "skill"])
def test_so_is_an_attempt_and_a_skill(kind: str, tmp_path: Path) -> None:
    def make(api: Api, name: str, text: str) -> None:
        if kind == "episode":
            episode(api, text, episode_id=name, reward=0.75)
        else:
            skill(api, name, description=text, skill_id=name, claimed_success_rate=0.75)

    data = tmp_path / "data"
    server = ServerProcess(data, cut_at="apply")
    api = server.keys.tenant()
    make(api, "pelican", "feed the pelican on the pier")
    with pytest.raises(grpc.RpcError):
        make(api, LAST, "count the kingfishers under the bridge")
    assert server.process.wait(timeout=60) == -signal.SIGKILL, server.log
    server._release()
    with server_process(data) as server:
        api = server.keys.api(api.secret)
        for mode in (LEXICAL, DENSE):
            found = recall(api, "count kingfishers", scopes=[kind], mode=mode)
            assert ids_of(found)[0] == LAST
        # What filters look at is there, too.
        if kind == "episode":
            kept = episode_pb.EpisodeFilter(min_reward=0.75)
            attempts = api.skill.SearchEpisodes(
                episode_pb.SearchEpisodesRequest(task="birds", filter=kept)
            )
            assert attempts.searched_count == 2
        else:
            wanted = skill_pb.SkillFilter(min_success_rate=0.75)
            skills = api.skill.SearchSkills(
                skill_pb.SearchSkillsRequest(task="birds", filter=wanted)
            )
            assert skills.searched_count == 2


def test_a_memory_and_what_it_superseded_agree_after_a_kill_between_row_and_index(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    old = memory_pb.CreateMemoryRequest(memory_id="old", text="The heron nests in the reeds")
    new = memory_pb.CreateMemoryRequest(
        memory_id=LAST, text="The heron nests on the pier now", supersedes=["old"]
    )
    server = ServerProcess(data, cut_at="apply")
    api = server.keys.tenant()
    secret = api.secret
    api.memory.CreateMemory(old)
    with pytest.raises(grpc.RpcError):
        api.memory.CreateMemory(new)
    assert server.process.wait(timeout=60) == -signal.SIGKILL, server.log
    server._release()
    with server_process(data) as server:
        api = server.keys.api(secret)
        assert api.memory.CreateMemory(new).already_known
        marked = api.memory.GetMemory(memory_pb.GetMemoryRequest(memory_id="old")).memory
        assert marked.superseded_by == LAST
        query = "where does the heron nest, in the reeds?"
        assert ids_of(recall(api, query)) == [LAST]
        assert ids_of(recall(api, query, include_superseded=True)) == [LAST, "old"]
        search = memory_pb.SearchMemoriesRequest(query="where does the heron nest?")
        assert [one.memory.id for one in api.memory.SearchMemories(search).results] == [LAST]
