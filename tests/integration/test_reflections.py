"""Reflections: what was concluded from one attempt is there before the next."""

from __future__ import annotations

import math
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import pytest
from mneme.v1 import reflection_pb2 as pb
from support.api import Api
from support.server import local_server

CARRIED = 4 * 1024 * 1024
"""What gRPC's clients take unless they are told otherwise."""
SUCCESS, PARTIAL, FAILURE = pb.OUTCOME_SUCCESS, pb.OUTCOME_PARTIAL, pb.OUTCOME_FAILURE


def store(api: Api, task: str, outcome: int = SUCCESS, **fields: Any) -> pb.Reflection:
    request = {"session_id": "session-1", "project": "project-1", "next_strategy": "Continue"}
    return api.learn.CreateReflection(
        pb.CreateReflectionRequest(task_description=task, outcome=outcome, **(request | fields))
    ).reflection


def listed(api: Api, **filter_: Any) -> list[pb.Reflection]:
    request = pb.ListReflectionsRequest(filter=pb.ReflectionFilter(**filter_), page_size=1000)
    return list(api.learn.ListReflections(request).reflections)


def search(api: Api, task: str, **filter_: Any) -> list[pb.FoundReflection]:
    request = pb.SearchReflectionsRequest(
        task_description=task, filter=pb.ReflectionFilter(**filter_)
    )
    return list(api.learn.SearchReflections(request).results)


def summary(api: Api, **fields: Any) -> pb.SummarizeReflectionsResponse:
    return api.learn.SummarizeReflections(pb.SummarizeReflectionsRequest(**fields))


def test_a_stored_reflection_is_retrieved_with_what_did_not_work(api: Api) -> None:
    store(
        api,
        "Parse CSV file",
        FAILURE,
        attempt_number=1,
        what_did_not_work=["Regex failed on quoted fields"],
        next_strategy="Use csv-parse library",
        tags=["parsing"],
    )
    (recent,) = listed(api, session_id="session-1")
    assert "Regex failed on quoted fields" in recent.what_did_not_work
    assert (recent.attempt_number, recent.outcome, list(recent.tags)) == (1, FAILURE, ["parsing"])


def test_answers_with_large_reflections_reach_the_caller(api: Api) -> None:
    large = [f"{n:02} {'x' * 4_000}" for n in range(50)]
    for number in range(12):
        store(api, f"Task {number}", what_worked=large, what_did_not_work=large)
    found: list[str] = []
    request = pb.ListReflectionsRequest()
    while not found or request.page_token:
        page = api.learn.ListReflections(request)
        assert page.ByteSize() < CARRIED
        assert page.text.count("Task: ") == len(page.reflections)
        found += [reflection.task_description for reflection in page.reflections]
        request.page_token = page.next_page_token
    assert found == [f"Task {number}" for number in range(11, -1, -1)]
    searched = api.learn.SearchReflections(
        pb.SearchReflectionsRequest(task_description="Task", limit=100)
    )
    assert searched.ByteSize() < CARRIED
    assert searched.text.count("Task: ") == len(searched.results) > 0
    made = summary(api)
    assert made.ByteSize() < CARRIED
    assert made.recent_lessons[0].task_description == "Task 11"


def test_reflections_are_searched_by_meaning_across_sessions(api: Api) -> None:
    store(api, "Write the release notes", session_id="session-0")
    store(
        api,
        "Fix authentication token expiry",
        what_worked=["Increased refresh buffer"],
        next_strategy="Monitor token timing",
        tags=["auth"],
    )
    found = search(api, "Debug login timeout issues", project="project-1")
    assert list(found[0].reflection.tags) == ["auth"]


def test_the_oldest_reflections_of_a_session_leave_beyond_its_limit(api: Api) -> None:
    for number in range(25):
        store(api, f"Task {number}", project="")
    kept = listed(api, session_id="session-1")
    assert [reflection.task_description for reflection in kept] == [
        f"Task {number}" for number in range(24, 4, -1)
    ]
    found = search(api, "Task 1")
    assert {one.reflection.task_description for one in found} <= {f"Task {n}" for n in range(5, 25)}


def test_the_oldest_reflections_of_a_project_leave_beyond_its_limit(api: Api) -> None:
    for number in range(105):
        store(api, f"Task {number}", session_id=f"session-{number}")
    assert summary(api, project="project-1").total_reflections == 100


def test_attempts_at_the_same_task_are_counted_when_no_number_is_given(api: Api) -> None:
    numbers = [
        store(api, task, session_id=session).attempt_number
        for task, session in (
            ("Parse CSV", "a"), ("parse  csv", "a"), ("Parse JSON", "a"), ("Parse CSV", "b"),
        )
    ]  # fmt: skip
    assert numbers == [1, 2, 1, 1]


def test_learning_from_failed_code_generation(api: Api) -> None:
    """Example 1: the second attempt is shown what the first one learned."""
    store(
        api,
        "Generate a function to parse CSV files",
        FAILURE,
        what_did_not_work=[
            "Forgot to handle quoted fields",
            "Didn't consider line breaks in values",
        ],
        next_strategy="Use a proper CSV parsing library instead of regex",
    )
    request = pb.SearchReflectionsRequest(task_description="Generate a CSV parser")
    prompt = api.learn.SearchReflections(request).text
    assert prompt.splitlines()[0] == "## Previous Lessons Learned"
    assert "### Attempt 1 (failure)" in prompt
    assert "  - Forgot to handle quoted fields" in prompt
    assert "Next strategy: Use a proper CSV parsing library instead of regex" in prompt


def test_learning_across_sessions(api: Api) -> None:
    """Example 2: another session finds the token refresh lesson by its own words."""
    store(api, "Tune the page layout", session_id="other", what_worked=["Smaller margins"])
    store(
        api,
        "Fix authentication timeout issue",
        session_id="A",
        what_worked=["Increased token refresh buffer from 5s to 30s"],
    )
    found = search(api, "Debug auth errors in production", project="project-1")
    assert "token refresh buffer" in found[0].reflection.what_worked[0]


def test_a_summary_groups_by_meaning_and_not_only_by_equal_words(api: Api) -> None:
    """Example 3: rewordings of one failure are one failure."""
    wordings = [
        "forgot to handle edge cases",
        "did not handle the edge cases",
        "Forgot to handle edge cases",
        "timeout on external api calls",
    ]
    for number, wording in enumerate(wordings):
        store(api, f"Task {number}", FAILURE, what_did_not_work=[wording])
    store(api, "Last task", what_worked=["use established libraries"])
    made = summary(api, project="project-1")
    assert made.total_reflections == 5
    assert made.success_rate == pytest.approx(0.2)
    assert [(theme.count, theme.text.lower()) for theme in made.common_failures] == [
        (3, "forgot to handle edge cases"),
        (1, "timeout on external api calls"),
    ]
    assert [theme.text for theme in made.effective_strategies] == ["use established libraries"]
    assert len(made.recent_lessons) == 5


def test_a_summary_without_reflections_is_empty_and_no_error(api: Api) -> None:
    made = summary(api, project="nothing-here")
    assert (made.total_reflections, made.success_rate) == (0, 0.0)
    assert not made.common_failures
    assert not made.effective_strategies


def test_filters_really_filter(api: Api) -> None:
    store(api, "Same task", FAILURE, session_id="s1", project="p1", agent_id="a1", tags=["x", "y"])
    store(api, "Same task", SUCCESS, session_id="s2", project="p2", agent_id="a2", tags=["x"])
    for filter_, wanted in (
        ({"session_id": "s1"}, ["s1"]),
        ({"project": "p2"}, ["s2"]),
        ({"agent_id": "a1"}, ["s1"]),
        ({"outcomes": [SUCCESS]}, ["s2"]),
        ({"outcomes": [PARTIAL]}, []),
        ({"outcomes": [SUCCESS, FAILURE]}, ["s1", "s2"]),
        ({"tags": ["x"]}, ["s1", "s2"]),
        ({"tags": ["x", "y"]}, ["s1"]),
    ):
        assert sorted(one.session_id for one in listed(api, **filter_)) == wanted, filter_
        found = search(api, "Same task", **filter_)
        assert sorted(one.reflection.session_id for one in found) == wanted, filter_


def test_the_same_reflection_under_its_id_is_stored_once(api: Api) -> None:
    first = store(api, "Parse CSV", reflection_id="r1")
    again = store(api, "Parse CSV", reflection_id="r1")
    assert again == first
    with pytest.raises(grpc.RpcError) as refused:
        store(api, "Parse JSON", reflection_id="r1")
    assert refused.value.code() == grpc.StatusCode.ALREADY_EXISTS


def test_the_metrics_say_whether_lessons_help(api: Api) -> None:
    """Hit rate, outcome improvement and reuse across sessions, from what was stored."""
    metrics = summary(api).metrics
    assert not metrics.HasField("hit_rate")
    assert not metrics.HasField("outcome_improvement_rate")
    lesson = store(api, "Parse CSV file", FAILURE, session_id="s1")
    store(api, "Parse CSV file", session_id="s2", applied_reflection_ids=[lesson.id])
    search(api, "read a CSV file")
    search(api, "zebra migration over the savannah")
    metrics = summary(api).metrics
    assert (metrics.store_count, metrics.search_count) == (2, 2)
    assert metrics.hit_rate == pytest.approx(0.5)
    assert metrics.outcome_improvement_rate == pytest.approx(1.0)
    assert metrics.cross_session_reuse == 1


def test_operators_see_the_metrics_of_all_tenants_together(tmp_path: Path) -> None:
    with local_server(tmp_path / "data", metrics_listen="127.0.0.1:0") as own:

        def shown() -> dict[str, float]:
            url = f"http://{own.application.metrics_address}/metrics"
            with urllib.request.urlopen(url, timeout=30) as answer:
                lines = answer.read().decode().splitlines()
            values = (line.split(" ") for line in lines if not line.startswith("#"))
            return {one[0]: float(one[1]) for one in values if len(one) == 2}

        assert shown()["mneme_reflection_store_count"] == 0
        assert math.isnan(shown()["mneme_reflection_hit_rate"])
        one, other = own.keys.tenant(), own.keys.tenant()
        lesson = store(one, "Parse CSV file", FAILURE, session_id="s1")
        store(one, "Parse CSV file", session_id="s2", applied_reflection_ids=[lesson.id])
        store(other, "Parse CSV file", session_id="s1")
        search(one, "read a CSV file")
        search(other, "zebra migration over the savannah")
        values = shown()
        assert values["mneme_reflection_store_count"] == 3
        assert values["mneme_reflection_search_count"] == 2
        assert values["mneme_reflection_hit_rate"] == pytest.approx(0.5)
        assert values["mneme_outcome_improvement_rate"] == pytest.approx(0.5)
        assert values["mneme_cross_session_reuse"] == 1


def test_pruned_reflections_stay_counted(api: Api) -> None:
    for number in range(25):
        store(api, f"Task {number}")
    assert summary(api).metrics.store_count == 25


def test_a_deleted_reflection_stays_counted_and_is_summarized_no_more(api: Api) -> None:
    gone = store(api, "Parse CSV file", FAILURE, what_did_not_work=["Regex failed"])
    api.learn.DeleteReflection(pb.DeleteReflectionRequest(reflection_id=gone.id))
    after = summary(api)
    assert after.metrics.store_count == 1
    assert (after.total_reflections, list(after.common_failures)) == (0, [])
    assert api.learn.ListReflections(pb.ListReflectionsRequest()).total_size == 0


def test_an_update_changes_what_the_mask_names_and_what_is_summarized(api: Api) -> None:
    before = store(api, "Parse CSV file", FAILURE, what_did_not_work=["Regex failed"], tags=["a"])
    changed = api.learn.UpdateReflection(
        pb.UpdateReflectionRequest(
            reflection=pb.Reflection(
                id=before.id, what_did_not_work=["The delimiter was wrong"], tags=["c", "b", "c"]
            ),
            update_mask={"paths": ["what_did_not_work", "tags"]},
        )
    ).reflection
    expected = pb.Reflection()
    expected.CopyFrom(before)
    del expected.what_did_not_work[:], expected.tags[:]
    expected.what_did_not_work.append("The delimiter was wrong")
    expected.tags.extend(["b", "c"])
    expected.etag = changed.etag
    assert changed == expected
    assert listed(api, tags=["b"]) == [changed]
    assert listed(api, tags=["a"]) == []
    (theme,) = summary(api).common_failures
    assert theme.text == "The delimiter was wrong"


@pytest.mark.parametrize("field", ["id", "session_id", "outcome", "attempt_number", "project"])
def test_which_attempt_a_reflection_is_about_is_not_changed(field: str, api: Api) -> None:
    before = store(api, "Parse CSV file")
    with pytest.raises(grpc.RpcError) as refused:
        api.learn.UpdateReflection(
            pb.UpdateReflectionRequest(
                reflection=pb.Reflection(id=before.id), update_mask={"paths": [field]}
            )
        )
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert listed(api) == [before]


def test_reflections_are_recalled_with_everything_else(api: Api) -> None:
    from mneme.v1 import recall_service_pb2 as recall_pb

    store(api, "Fix authentication token expiry", what_worked=["Increased refresh buffer"])
    answer = api.recall.Recall(recall_pb.RecallRequest(query="token refresh"))
    assert answer.results[0].source_type == "reflection"
    assert answer.results[0].metadata["outcome"] == "SUCCESS"
