"""An embedding backend that is down or hangs: what is written is kept, and found by its words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import knowledge_pb2, reflection_pb2
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import skill_service_pb2 as skill_pb
from mneme_server.engine import runtime as memories
from mneme_server.engine.embedding.port import EmbeddingError
from mneme_server.engine.tenants import embedding
from numpy.typing import NDArray
from support.api import Api, grpc, refused
from support.contexts import eventually, get_context, sleep, wake_up
from support.making import episode, event, lesson, recall, record, skill
from support.server import LocalServer, local_server

DENSE = recall_pb.RECALL_MODE_DENSE


class Remote:
    """An embedder that a test takes down, and that hangs when a test says so."""

    model_id = "remote"
    dimensions = 64

    def __init__(self) -> None:
        self.failure: EmbeddingError | None = None
        self.answers = threading.Event()
        self.answers.set()

    def down(self, *, retryable: bool) -> None:
        self.failure = EmbeddingError("nobody answers", retryable=retryable)

    def up(self) -> None:
        self.failure = None
        self.answers.set()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        assert self.answers.wait(60)
        if self.failure is not None:
            raise self.failure
        if any("poison" in text for text in texts):
            raise EmbeddingError("HTTP 500: internal error", retryable=True)
        rows = np.full((len(texts), self.dimensions), 1e-3, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[sum(map(ord, word)) % self.dimensions] += 1.0
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def close(self) -> None:
        self.up()


@pytest.fixture
def remote() -> Remote:
    return Remote()


@pytest.fixture
def server(remote: Remote, tmp_path: Path) -> Iterator[LocalServer]:
    with (
        mock.patch.object(memories, "_embedder", return_value=remote),
        local_server(tmp_path / "data", embed_queue_limit=20) as server,
    ):
        yield server
        remote.up()


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant()


def _reflect(api: Api, worked: str) -> reflection_pb2.Reflection:
    request = reflection_pb2.CreateReflectionRequest(
        session_id="s", task_description="bake the rye bread", outcome="OUTCOME_SUCCESS",
        what_worked=[worked],
    )  # fmt: skip
    return api.learn.CreateReflection(request).reflection


def _log(api: Api) -> knowledge_pb2.KnowledgeEntry:
    request = knowledge_pb2.CreateKnowledgeRequest(
        project="r", agent_id="a", type="KNOWLEDGE_TYPE_SUCCESS", context="rye dough",
        lesson="rest the rye dough overnight",
    )  # fmt: skip
    return api.learn.CreateKnowledge(request).entry


WRITES: dict[str, Callable[[Api], object]] = {
    "CreateLesson": lambda api: lesson(api, "Rye", "feed the rye starter"),
    "ImportLessons": lambda api: api.learn.ImportLessons(
        learn_pb.ImportLessonsRequest(lessons=[learn_pb.Lesson(title="Rye", content="rye flour")])
    ),
    "CreateReflection": lambda api: _reflect(api, "the rye rose"),
    "CreateKnowledge": _log,
    "CreateEpisode": lambda api: episode(api, "feed the starter", critique="More rye next time."),
    "ImportEpisodes": lambda api: api.skill.ImportEpisodes(
        skill_pb.ImportEpisodesRequest(episodes=[episode_pb.Episode(task="grind the rye")])
    ),
    "CreateSkill": lambda api: skill(api, "feed_starter", description="Feed it with rye."),
    "CreateMemory": lambda api: api.memory.CreateMemory(
        memory_pb.CreateMemoryRequest(text="Ann bakes with rye")
    ),
    "CreateMemories": lambda api: list(
        api.memory.CreateMemories(
            iter([memory_pb.CreateMemoriesRequest(memory=memory_pb.NewMemory(text="rye is out"))])
        )
    ),
    "Sleep": lambda api: sleep(api, "slept", "Fed the rye starter"),
}


@pytest.mark.parametrize("retryable", [True, False])
def test_what_is_written_while_it_is_down_is_found_by_its_words_and_embedded_later(
    retryable: bool, server: LocalServer, remote: Remote
) -> None:
    apis = {write: server.keys.tenant() for write in WRITES}
    remote.down(retryable=retryable)
    found = {}
    for write, api in apis.items():
        WRITES[write](api)
        found[write] = recall(api, "rye")
        assert len(found[write].results) == 1, write
        assert found[write].words_only, write
        assert found[write].pending_count == 1, write
        assert not found[write].results[0].HasField("similarity"), write
    remote.up()
    for write, api in apis.items():
        healed = eventually(lambda api=api: recall(api, "rye"), lambda seen: not seen.pending_count)
        assert healed.results[0].source_id == found[write].results[0].source_id, write
        answer = recall(api, "rye", mode=DENSE)
        assert answer.results[0].HasField("similarity"), write


def test_an_update_while_it_is_down_replaces_the_words_that_a_lesson_is_found_by(
    api: Api, remote: Remote
) -> None:
    kept = lesson(api, "Rye", "feed the starter")
    remote.down(retryable=True)
    kept.content = "freeze the starter"
    request = learn_pb.UpdateLessonRequest(lesson=kept)
    request.update_mask.paths.append("content")
    api.learn.UpdateLesson(request)
    assert len(recall(api, "freeze").results) == 1
    assert not recall(api, "feed").results


def test_a_restored_lesson_has_the_vector_that_it_had(api: Api, remote: Remote) -> None:
    kept = lesson(api, "Rye", "feed the starter")
    api.learn.ArchiveLesson(learn_pb.ArchiveLessonRequest(lesson_id=kept.id))
    remote.down(retryable=True)
    api.learn.UnarchiveLesson(learn_pb.UnarchiveLessonRequest(lesson_id=kept.id))
    remote.up()
    answer = recall(api, "rye", mode=DENSE)
    assert answer.results[0].HasField("similarity")
    assert answer.pending_count == 0


def test_every_search_says_that_words_alone_decided(api: Api, remote: Remote) -> None:
    for write in WRITES.values():
        write(api)
    record(api, event("the rye starter is fed", "s"))
    remote.down(retryable=True)
    lessons = api.learn.SearchLessons(learn_pb.SearchLessonsRequest(query="rye"))
    assert (len(lessons.results), lessons.words_only) == (2, True)
    task = reflection_pb2.SearchReflectionsRequest(task_description="rye")
    reflections = api.learn.SearchReflections(task)
    assert (len(reflections.results), reflections.words_only) == (1, True)
    knowledge = api.learn.SearchKnowledge(knowledge_pb2.SearchKnowledgeRequest(query="rye"))
    assert (len(knowledge.entries), knowledge.words_only) == (1, True)
    sessions = api.context.SearchSessions(context_pb.SearchSessionsRequest(query="rye"))
    assert ([one.session.id for one in sessions.results], sessions.words_only) == (["slept"], True)
    attempts = api.skill.SearchEpisodes(episode_pb.SearchEpisodesRequest(task="rye"))
    assert (len(attempts.results), attempts.words_only) == (2, True)
    skills = api.skill.SearchSkills(skill_pb.SearchSkillsRequest(task="rye"))
    assert (len(skills.results), skills.words_only) == (1, True)
    context = get_context(api, "rye starter")
    assert {one.session_id for one in context.sessions} == {"slept", "s"}
    assert context.words_only
    assert not recall(api, "rye", mode=recall_pb.RECALL_MODE_LEXICAL).words_only
    remote.up()
    eventually(lambda: recall(api, "starter of rye").words_only, lambda words_only: not words_only)


def test_a_memory_stored_while_it_is_down_says_that_it_was_not_compared(
    api: Api, remote: Remote
) -> None:
    old = memory_pb.CreateMemoryRequest(memory_id="old", text="Ann bakes with rye", user_id="ann")
    new = memory_pb.CreateMemoryRequest(
        memory_id="new", text="Ann bakes with spelt", user_id="ann", supersedes=["old"]
    )
    api.memory.CreateMemory(old)
    remote.down(retryable=True)
    answer = api.memory.CreateMemory(new)
    assert (answer.similar_unknown, answer.figures.queued_count) == (True, 1)
    assert answer.figures.vectors_per_second == 0
    assert [marked.id for marked in answer.superseded] == ["old"]
    assert api.memory.CreateMemory(old).already_known  # Nothing has to be embedded for that.
    rest = memory_pb.DeleteMemoriesRequest(filter=memory_pb.MemoryFilter(user_id="ann"))
    rest.dry_run = True
    told = api.memory.DeleteMemories(rest)
    assert (told.deleted_count, told.vector_count) == (2, 1)
    question = memory_pb.SearchMemoriesRequest(query="spelt")
    with refused() as failure:
        api.memory.SearchMemories(question)
    assert (failure.code, failure.reason) == (grpc.StatusCode.UNAVAILABLE, "EMBEDDING_FAILED")
    remote.up()
    found = eventually(
        lambda: api.memory.SearchMemories(question), lambda seen: not seen.pending_count
    )
    assert [one.memory.id for one in found.results] == ["new"]
    # Who waits until it can be found by its meaning is answered then.
    waited = memory_pb.CreateMemoryRequest(text="Ann bakes with oats", wait_indexed=True)
    api.memory.CreateMemory(waited)
    assert api.memory.SearchMemories(question).pending_count == 0


def test_a_question_for_the_meaning_alone_is_refused_while_it_is_down(
    api: Api, remote: Remote
) -> None:
    lesson(api, "Rye")
    remote.down(retryable=True)
    with refused() as failure:
        recall(api, "bread", mode=DENSE)
    assert (failure.code, failure.reason) == (grpc.StatusCode.UNAVAILABLE, "EMBEDDING_FAILED")


def test_attempts_without_vectors_are_left_out_of_skills_until_they_have_some(
    api: Api, remote: Remote
) -> None:
    remote.down(retryable=True)
    for number in range(3):
        episode(api, "feed the rye starter", critique=f"It took {number} hours.")
    request = skill_pb.ConsolidateSkillsRequest()
    answer = api.skill.ConsolidateSkills(request)
    assert (answer.episode_count, answer.not_embedded_count) == (0, 3)
    remote.up()
    answer = eventually(
        lambda: api.skill.ConsolidateSkills(request), lambda seen: not seen.not_embedded_count
    )
    assert (answer.episode_count, answer.created_count) == (3, 1)


def test_waking_up_after_a_handover_that_is_not_embedded_yet_says_what_could_not_be_done(
    api: Api, remote: Remote
) -> None:
    sleep(api, "first", "Fed the rye starter", project="bread")
    remote.down(retryable=True)
    sleep(api, "second", "Fed the rye starter and the wheat starter", project="bread")
    woken = wake_up(api, project="bread")
    assert woken.last_handover.session_id == "second"
    assert woken.not_compared
    assert "could not be looked for" in woken.text
    assert len(api.context.GetTimeline(context_pb.GetTimelineRequest()).entries) == 2
    remote.up()
    woken = eventually(lambda: wake_up(api, project="bread"), lambda seen: not seen.not_compared)
    assert [one.session_id for one in woken.related] == ["first"]


def test_a_session_that_ends_while_it_is_down_is_summarised_and_found(
    api: Api, remote: Remote
) -> None:
    remote.down(retryable=True)
    record(api, event("feed the rye starter", "s"))
    api.events.EndSession(events_pb.EndSessionRequest(session_id="s"))
    eventually(
        lambda: api.context.SearchSessions(context_pb.SearchSessionsRequest(query="rye")).results,
        lambda found: [one.session.id for one in found] == ["s"],
    )


def test_reflections_stored_while_it_is_down_are_grouped_by_their_wording_then_by_meaning(
    api: Api, remote: Remote
) -> None:
    remote.down(retryable=True)
    for worked in ("let the dough rest", "let the dough rest", "rest the dough let"):
        _reflect(api, worked)
    request = reflection_pb2.SummarizeReflectionsRequest()

    def counts() -> list[int]:
        return [one.count for one in api.learn.SummarizeReflections(request).effective_strategies]

    assert counts() == [2, 1]
    remote.up()
    assert eventually(counts, lambda seen: len(seen) == 1) == [3]


def test_what_is_written_while_it_hangs_is_answered_long_before_the_deadline(
    api: Api, remote: Remote
) -> None:
    remote.answers.clear()
    for write in WRITES.values():
        write(api)
    recalled = recall(api, "rye")
    assert remote.answers.is_set() is False
    assert len(recalled.results) == len(WRITES)
    assert recalled.words_only


def test_too_much_that_waits_is_refused_and_nothing_of_it_is_stored(
    api: Api, remote: Remote
) -> None:
    remote.down(retryable=True)
    for number in range(20):
        lesson(api, f"Rye {number}")
    with refused() as failure:
        lesson(api, "One more")
    assert (failure.code, failure.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL")
    assert failure.retry_after_s
    assert not recall(api, "more").results


def test_with_an_embedder_that_answers_a_lesson_has_its_vector_when_the_call_returns(
    api: Api,
) -> None:
    lesson(api, "Rye", "feed the starter")
    found = recall(api, "rye")
    assert found.pending_count == 0
    assert not found.words_only
    assert found.results[0].HasField("similarity")


def _waiting(server: LocalServer, api: Api) -> int:
    with server.application.runtime.tenants.open(api.tenant_id) as tenant, tenant.read() as unit:
        return unit.queue.depth()


def test_a_text_that_the_backend_always_breaks_at_is_not_tried_for_ever(
    server: LocalServer, api: Api, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says each time that it may work later. While it is down, no text is to blame."""
    monkeypatch.setattr(embedding, "MOST_ATTEMPTS", 1)
    remote.down(retryable=True)
    record(api, event("rye bread"), event("rye poison"))
    eventually(lambda: _failed(server, api), lambda count: count == 2)
    remote.up()
    eventually(lambda: _waiting(server, api), lambda count: not count)
    found = recall(api, "rye bread", mode=DENSE).results
    assert [result.text for result in found] == ["rye bread"]
    assert "rye poison" in [result.text for result in recall(api, "poison").results]


def _failed(server: LocalServer, api: Api) -> int:
    with server.application.runtime.tenants.open(api.tenant_id) as tenant, tenant.read() as unit:
        return unit.queue.failed()
