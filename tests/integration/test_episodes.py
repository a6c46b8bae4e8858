"""Episodes: stored with what came of them, and found again by what they were about."""

from __future__ import annotations

import threading

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import episode_pb2 as pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import skill_service_pb2 as service_pb
from support.api import Api, grpc, refused
from support.making import TOOL_CALL, at, episode, event, record, struct
from support.server import LocalServer


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("episodes")


def retrieve(
    api: Api, task: str, *, limit: int = 5, **filter_: object
) -> pb.SearchEpisodesResponse:
    request = pb.SearchEpisodesRequest(
        task=task,
        limit=limit,
        filter=pb.EpisodeFilter(**filter_),  # type: ignore[arg-type]
    )
    return api.skill.SearchEpisodes(request)


def ids(answer: pb.SearchEpisodesResponse) -> list[str]:
    return [found.episode.id for found in answer.results]


def test_a_stored_episode_is_returned_as_it_was_given(api: Api) -> None:
    stored = episode(
        api, "implement OAuth2", episode_id="e-1", session_id="s-1", agent_id="coder",
        user_id="ann", project="shop", input="use PKCE", output="done", critique="PKCE helped",
        reward=0.92, latency_ms=1250, tokens_used=900, tools=["edit", "test", "edit"],
        tags=["oauth", "auth"], metadata=struct(branch="main"), occurred_at=at(60),
    )  # fmt: skip
    assert (stored.reward, stored.success, stored.latency_ms) == (0.92, True, 1250)
    assert (list(stored.tools), list(stored.tags)) == (["edit", "test", "edit"], ["auth", "oauth"])
    assert stored.metadata["branch"] == "main"
    assert (stored.occurred_at, list(stored.filled_fields)) == (at(60), [])
    assert api.skill.GetEpisode(pb.GetEpisodeRequest(episode_id="e-1")).episode == stored


def test_a_reward_tells_success_and_success_tells_the_reward(api: Api) -> None:
    def outcome(**given: object) -> tuple[float, bool]:
        request = pb.CreateEpisodeRequest(task="t", **given)  # type: ignore[arg-type]
        stored = api.skill.CreateEpisode(request).episode
        return stored.reward, stored.success

    assert outcome(reward=0.5) == (0.5, True)
    assert outcome(reward=0.49) == (0.49, False)
    assert outcome(reward=-3) == (-3, False)
    assert outcome(success=True) == (1, True)
    assert outcome(success=False) == (0, False)
    assert outcome(success=False, reward=0.9) == (0.9, False)


def test_the_same_episode_again_changes_nothing_and_another_one_is_refused(api: Api) -> None:
    first = episode(api, "deploy", episode_id="e", tags=["b", "a"])
    assert episode(api, "deploy", episode_id="e", tags=["a", "b"]) == first
    with refused() as failure:
        episode(api, "deploy", success=False, episode_id="e", tags=["a", "b"], critique="late")
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "episode_id")
    assert "another critique, success" in failure.message


def _recorded(api: Api, session_id: str, **metadata: object) -> None:
    api.events.StartSession(
        events_pb.StartSessionRequest(
            session_id=session_id, agent_id="coder", user_id="ann", project="shop", tags=["night"],
            metadata=struct(**metadata), started_at=at(0),
        )
    )  # fmt: skip
    asked = {"role": "user"}
    record(
        api,
        event("Please cancel my reservation EHGLP3.", session_id, at=1, payload=asked),
        event("", session_id, TOOL_CALL, name="get_reservation", at=2, input_tokens=100),
        event("", session_id, TOOL_CALL, name="cancel", at=4, output_tokens=20),
        event("Your reservation is cancelled.", session_id, at=6, payload={"role": "assistant"}),
    )


def test_a_session_id_alone_is_enough(api: Api) -> None:
    _recorded(api, "s", reward=0.8)
    stored = api.skill.CreateEpisode(pb.CreateEpisodeRequest(session_id="s")).episode
    assert stored.task == "Please cancel my reservation EHGLP3."
    assert stored.input == "Please cancel my reservation EHGLP3."
    assert stored.output == "Your reservation is cancelled."
    assert (stored.agent_id, stored.user_id, stored.project) == ("coder", "ann", "shop")
    assert (list(stored.tags), list(stored.tools)) == (["night"], ["get_reservation", "cancel"])
    assert (stored.reward, stored.success) == (0.8, True)
    assert (stored.latency_ms, stored.tokens_used) == (5_000, 120)
    assert stored.occurred_at == at(6)
    assert list(stored.filled_fields) == [
        "agent_id", "input", "latency_ms", "occurred_at", "output", "project", "reward", "success",
        "tags", "task", "tokens_used", "tools", "user_id",
    ]  # fmt: skip


def test_what_is_given_goes_before_what_was_recorded(api: Api) -> None:
    _recorded(api, "s", task="Cancel a reservation", outcome="failed")
    request = pb.CreateEpisodeRequest(
        session_id="s", success=True, output="cancelled", tokens_used=0
    )
    stored = api.skill.CreateEpisode(request).episode
    assert (stored.task, stored.output) == ("Cancel a reservation", "cancelled")
    assert (stored.success, stored.reward, stored.tokens_used) == (True, 1.0, 0)
    assert {"success", "reward", "output", "tokens_used"}.isdisjoint(stored.filled_fields)


def test_an_episode_of_a_session_can_be_stored_again_after_the_session_went_on(api: Api) -> None:
    _recorded(api, "s", success=True)
    request = pb.CreateEpisodeRequest(session_id="s", episode_id="e", critique="quick")
    first = api.skill.CreateEpisode(request).episode
    record(api, event("Anything else?", "s", at=9, payload={"role": "assistant"}))
    assert api.skill.CreateEpisode(request).episode == first


@pytest.mark.parametrize(
    ("metadata", "outcome"),
    [
        ({"outcome": "partial"}, (0.5, False)),
        ({"success": False}, (0.0, False)),
        ({"reward": 2}, (2.0, True)),
        # As much as an episode takes: what is computed of more is no number.
        ({"reward": 1e300}, (1e9, True)),
        ({"reward": -1e160}, (-1e9, False)),
    ],
)
def test_the_outcome_is_the_sessions(
    api: Api, metadata: dict[str, object], outcome: tuple[float, bool]
) -> None:
    _recorded(api, "s", **metadata)
    stored = api.skill.CreateEpisode(pb.CreateEpisodeRequest(session_id="s")).episode
    assert (stored.reward, stored.success) == outcome


def test_what_nobody_says_is_asked_for(api: Api) -> None:
    _recorded(api, "open")
    cases = {
        "task": (
            pb.CreateEpisodeRequest(success=True),
            pb.CreateEpisodeRequest(session_id="unrecorded", success=True),
        ),
        "success": (
            pb.CreateEpisodeRequest(task="t"),
            pb.CreateEpisodeRequest(session_id="open"),
        ),
    }
    for field, requests in cases.items():
        for request in requests:
            with refused() as failure:
                api.skill.CreateEpisode(request)
            assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
            assert (failure.reason, failure.field) == ("MISSING_REQUIRED_FIELD", field)
    assert "nobody said how the session" in failure.message
    assert api.skill.ListEpisodes(pb.ListEpisodesRequest()).total_size == 0


def test_episodes_are_found_by_meaning(api: Api) -> None:
    episode(api, "cancel a flight reservation and refund it", episode_id="flight")
    episode(api, "make the unit tests of the parser faster", episode_id="tests")
    episode(api, "translate the manual into French", episode_id="manual")
    answer = retrieve(api, "the customer wants their money back for a plane ticket")
    assert ids(answer)[0] == "flight"
    assert answer.searched_count == 3
    assert answer.results[0].similarity > answer.results[1].similarity


def test_filters_go_into_the_search(api: Api) -> None:
    for number in range(300):
        episode(api, f"log in with OAuth2, try {number}", success=False, reward=0.1)
    episode(
        api, "repair the sign-in page", episode_id="old", reward=0.7, session_id="s", tags=["ui"]
    )
    near = "log in with OAuth2, try 7"
    assert ids(retrieve(api, near, only_successes=True)) == ["old"]
    assert ids(retrieve(api, near, min_reward=0.7)) == ["old"]
    assert ids(retrieve(api, near, min_reward=0.7000001)) == []
    assert ids(retrieve(api, near, tags=["ui"])) == ["old"]
    assert ids(retrieve(api, near, session_id="s")) == ["old"]
    failures = retrieve(api, near, only_failures=True, limit=3)
    assert (len(failures.results), failures.searched_count) == (3, 300)
    assert all(not found.episode.success for found in failures.results)


def test_failures_only_and_successes_only_contradict_each_other(api: Api) -> None:
    with refused() as failure:
        retrieve(api, "t", only_failures=True, only_successes=True)
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "only_failures and only_successes" in failure.message


def test_critiques_are_quoted_with_who_said_so(api: Api) -> None:
    said = [
        (False, "The token expired during the upload. Refresh it before the upload."),
        (False, "The token expired during the upload!"),
        (True, "Refreshing the token before the upload worked."),
        (True, ""),
    ]
    for number, (success, critique) in enumerate(said):
        episode(
            api, "upload the archive", success=success, critique=critique, episode_id=f"e-{number}"
        )
    critiques = retrieve(api, "upload the archive").critiques
    assert (critiques.with_critique, critiques.without_critique) == (3, 1)
    first = critiques.points[0]
    assert first.text in ("The token expired during the upload.",
                          "The token expired during the upload!")  # fmt: skip
    assert sorted(first.episode_ids) == ["e-0", "e-1"]
    assert (first.failure_count, first.success_count) == (2, 0)
    everything = " ".join(critique for _, critique in said)
    assert all(point.text in everything for point in critiques.points)
    assert critiques.text.startswith("What the critiques of 3 of 4 attempts say (2 failed, 2 succ")


def test_recall_finds_episodes_in_their_own_scope(api: Api) -> None:
    episode(api, "cancel a flight reservation", success=False, reward=0.25, episode_id="e")
    request = recall_pb.RecallRequest(query="cancelled flights", scopes=["EPISODE"])
    (found,) = api.recall.Recall(request).results
    assert (found.source_type, found.source_id) == ("episode", "e")
    assert (found.metadata["success"], found.metadata["reward"]) == (False, 0.25)


def test_a_deleted_episode_is_found_no_more(api: Api) -> None:
    stored = episode(api, "water the plants", episode_id="e")
    gone = api.skill.DeleteEpisode(pb.DeleteEpisodeRequest(episode_id="e")).episode
    assert gone == stored
    assert ids(retrieve(api, "water the plants")) == []
    with refused() as failure:
        api.skill.DeleteEpisode(pb.DeleteEpisodeRequest(episode_id="e"))
    assert (failure.code, failure.field) == (grpc.StatusCode.NOT_FOUND, "episode_id")
    assert episode(api, "feed the cat", episode_id="e").task == "feed the cat"


def update(api: Api, episode_id: str, *named: str, **new: object) -> pb.Episode:
    """Change the fields that are given, or only the named of them."""
    request = service_pb.UpdateEpisodeRequest(
        episode=pb.Episode(id=episode_id, **new),  # type: ignore[arg-type]
        update_mask=FieldMask(paths=named or list(new)),
    )
    return api.skill.UpdateEpisode(request).episode


def test_an_update_changes_what_it_names_and_nothing_else(api: Api) -> None:
    stored = episode(
        api, "ship it", session_id="s", agent_id="coder", critique="fine", reward=1, output="done",
        tags=["old"], metadata=struct(branch="main"), occurred_at=at(60),
    )  # fmt: skip
    changed = update(
        api, stored.id, "critique", "reward", "success", "tags", "metadata",
        critique="it was rolled back", reward=-0.5, success=False, tags=["b", "a", "b"],
        task="something else",
    )  # fmt: skip
    expected = pb.Episode()
    expected.CopyFrom(stored)
    expected.critique, expected.reward, expected.success = "it was rolled back", -0.5, False
    del expected.tags[:]
    expected.tags.extend(["a", "b"])
    expected.ClearField("metadata")
    expected.etag = changed.etag
    assert changed == expected
    assert api.skill.GetEpisode(pb.GetEpisodeRequest(episode_id=stored.id)).episode == changed


def test_an_updated_episode_is_found_by_what_it_says_now(api: Api) -> None:
    stored = episode(api, "cross the river", critique="the ferry was late", tags=["boat"], reward=1)
    episode(api, "write a poem", success=False)
    update(api, stored.id, critique="a bridge is faster", tags=["bridge"], reward=0, success=False)
    assert ids(retrieve(api, "bridge", tags=["bridge"], only_failures=True)) == [stored.id]
    assert not retrieve(api, "river", tags=["boat"]).results
    assert not retrieve(api, "river", only_successes=True).results
    assert not retrieve(api, "river", min_reward=0.5).results
    found = api.recall.Recall(
        recall_pb.RecallRequest(query="a bridge is faster", scopes=["episode"])
    ).results[0]
    assert found.source_id == stored.id
    assert "a bridge is faster" in found.text
    assert "ferry" not in found.text
    assert found.metadata["reward"] == 0


def test_what_was_done_and_by_whom_cannot_be_changed(api: Api) -> None:
    stored = episode(api, "t")
    for field in ("task", "output", "session_id", "agent_id", "user_id", "occurred_at", "tools"):
        with refused() as failure:
            update(api, stored.id, field)
        assert (failure.code, failure.field) == (
            grpc.StatusCode.INVALID_ARGUMENT, "update_mask",
        )  # fmt: skip
    assert api.skill.GetEpisode(pb.GetEpisodeRequest(episode_id=stored.id)).episode == stored


def test_what_an_update_changes_was_not_filled_in_from_the_session(api: Api) -> None:
    record(api, event("make the tests pass", "s-9"))
    api.events.EndSession(
        events_pb.EndSessionRequest(session_id="s-9", status=events_pb.SESSION_STATUS_COMPLETED)
    )
    request = pb.CreateEpisodeRequest(session_id="s-9", task="tests")
    stored = api.skill.CreateEpisode(request).episode
    assert {"reward", "success"} <= {*stored.filled_fields}
    changed = update(api, stored.id, reward=0.25, success=True)
    assert {*stored.filled_fields} - {*changed.filled_fields} == {"reward"}, "success is the same"


def test_updates_of_different_fields_at_once_are_all_made(api: Api) -> None:
    stored = episode(api, "t")
    changes: list[dict[str, object]] = [
        {"critique": "c"}, {"reward": 0.5}, {"tags": ["x"]}, {"metadata": struct(a=1)},
    ]  # fmt: skip
    threads = [
        threading.Thread(target=update, args=(api, stored.id), kwargs=change) for change in changes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now = api.skill.GetEpisode(pb.GetEpisodeRequest(episode_id=stored.id)).episode
    assert (now.critique, now.reward, [*now.tags], now.metadata["a"]) == ("c", 0.5, ["x"], 1)


def test_episodes_are_listed_latest_first_page_by_page(api: Api) -> None:
    for number in (3, 1, 2):
        episode(api, "t", success=number > 1, episode_id=f"e-{number}", occurred_at=at(number))
    listed: list[str] = []
    token = ""
    while True:
        page = api.skill.ListEpisodes(pb.ListEpisodesRequest(page_size=1, page_token=token))
        listed += [found.id for found in page.episodes]
        assert page.total_size == 3
        token = page.next_page_token
        if not token:
            break
    assert listed == ["e-3", "e-2", "e-1"]
    some = pb.EpisodeFilter(only_successes=True, end_time=at(3))
    page = api.skill.ListEpisodes(pb.ListEpisodesRequest(filter=some))
    assert ([found.id for found in page.episodes], page.total_size) == (["e-2"], 1)


def test_what_is_exported_can_be_imported_elsewhere(api: Api, server: LocalServer) -> None:
    _recorded(api, "s", success=True)
    api.skill.CreateEpisode(pb.CreateEpisodeRequest(session_id="s", episode_id="e-1"))
    episode(api, "water the plants", episode_id="e-2", reward=0.1 + 0.2, occurred_at=at(1))
    exported = [one.episode for one in api.skill.ExportEpisodes(service_pb.ExportEpisodesRequest())]
    assert [one.id for one in exported] == ["e-1", "e-2"]
    other = server.keys.tenant("episodes")
    request = service_pb.ImportEpisodesRequest(episodes=exported)
    answer = other.skill.ImportEpisodes(request)
    assert (answer.created_count, list(answer.episode_ids)) == (2, ["e-1", "e-2"])
    assert [
        one.episode for one in other.skill.ExportEpisodes(service_pb.ExportEpisodesRequest())
    ] == (exported)
    assert other.skill.ImportEpisodes(request).unchanged_count == 2
    assert ids(retrieve(other, "water the plants"))[0] == "e-2"
    exported[1].critique = "too much water"
    request = service_pb.ImportEpisodesRequest(episodes=exported)
    with refused() as failure:
        other.skill.ImportEpisodes(request)
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "episodes[1].id")
    request.on_conflict = service_pb.EPISODE_CONFLICT_SKIP
    assert other.skill.ImportEpisodes(request).skipped_count == 1
    request.on_conflict = service_pb.EPISODE_CONFLICT_REPLACE
    assert other.skill.ImportEpisodes(request).replaced_count == 1
    assert other.skill.ListEpisodes(pb.ListEpisodesRequest()).total_size == 2
    assert retrieve(other, "water the plants").critiques.points[0].text == "too much water"


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), -float("inf")])
def test_a_reward_must_be_a_number(api: Api, reward: float) -> None:
    with refused() as failure:
        api.skill.CreateEpisode(pb.CreateEpisodeRequest(task="t", reward=reward))
    assert (failure.code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "reward")


def test_a_time_that_no_calendar_has_is_refused(api: Api) -> None:
    with refused() as failure:
        episode(api, "t", occurred_at=Timestamp(seconds=-1))
    assert failure.field == "occurred_at"
