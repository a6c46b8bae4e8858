from __future__ import annotations

from typing import Any

import pytest
from mneme.cli.charts import column_chart
from mneme.messages import (
    DeleteLearningSessionResponse,
    EndLearningSessionResponse,
    FeedbackResponse,
    GetLearningMetricsResponse,
    GetLearningSessionResponse,
    ImportExperienceResponse,
    LearningSession,
    ListAlgorithmsResponse,
    ListLearningSessionsResponse,
    PredictResponse,
    StartLearningSessionResponse,
    TrainResponse,
)
from mneme.plain import from_dict
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer, failure

SESSION: dict[str, Any] = {
    "id": "style", "algorithm": "linucb", "config": {"epsilon": 0.5}, "status": "active",
    "state_space": {"open_object": {}},
    "action_space": {"discrete": {"n": 2, "labels": ["short", "long"]}},
    "known_actions": [{"label": "short"}, {"label": "long"}],
    "transitions": 1200, "learned": 1199, "episodes_completed": 3, "avg_reward": 0.5,
}  # fmt: skip
LINUCB: dict[str, Any] = {
    "name": "linucb", "summary": "A contextual bandit.", "source": "Li, 2010",
    "discrete_actions": True, "open_actions": True, "available": True,
    "keys": [
        {"name": "epsilon", "meaning": "How often.", "number": 0.02, "low": 0, "high": 1},
        {"name": "features", "meaning": "How many.", "number": 96, "whole": True, "low": 8},
        {"name": "mode", "meaning": "Which.", "text": "fast", "choices": ["fast", "slow"]},
    ],
}  # fmt: skip


def described() -> ListAlgorithmsResponse:
    missing = {"name": "dqn", "on_policy": True, "missing": "the extra rl"}
    return from_dict({"algorithms": [LINUCB, missing]}, ListAlgorithmsResponse())


def measured(episodes: int, **fields: Any) -> GetLearningMetricsResponse:
    history = [
        {"episode": n, "moving_avg_reward": n / 10, "loss": 1 / n} for n in range(1, episodes + 1)
    ]
    metrics = {
        "episodes_completed": episodes, "transitions": 9, "convergence_score": 0.83,
        "convergence_status": "converging", "loss_trend": "decreasing", "history": history,
        "exploration_rate": 0.1, "training_time": "1.5s", "updates": 7,
    }  # fmt: skip
    return from_dict({"metrics": metrics, **fields}, GetLearningMetricsResponse())


def test_algorithms_are_listed_with_what_they_choose_among(served: ScriptedServer) -> None:
    served.on("ListAlgorithms", described())
    result = mneme("learning", "algorithms")
    assert "discrete, new ones" in result.lines[1]
    assert "no: the extra rl" in result.lines[2]
    assert "its own behaviour" in result.lines[2]
    assert len(mneme("learning", "algorithms", "--json").documents[0]["algorithms"]) == 2


def test_one_algorithm_is_shown_with_its_keys(served: ScriptedServer) -> None:
    served.on("ListAlgorithms", described())
    out = mneme("learning", "algorithms", "linucb").out
    for words in ("Li, 2010", "0 to 1", "from 8, whole", "fast, slow", "How often."):
        assert words in out
    assert served.last("ListAlgorithms").algorithm == "linucb"


def test_sessions_are_listed_and_one_is_shown_with_its_settings(served: ScriptedServer) -> None:
    session = from_dict(SESSION, LearningSession())
    served.on("ListLearningSessions", ListLearningSessionsResponse(sessions=[session]))
    result = mneme("learning", "list", "--status", "active", "--algorithm", "linucb")
    assert result.lines[1].split()[:5] == ["style", "linucb", "active", "1,200", "3"]
    assert mneme("learning", "list", "--json").documents[0]["id"] == "style"
    served.on("GetLearningSession", GetLearningSessionResponse(session=session))
    served.on("ListAlgorithms", described())
    result = mneme("learning", "show", "style")
    assert '"labels": ["short", "long"]' in result.out
    assert "1,200, 1 to learn" in result.out
    (epsilon,) = [line for line in result.lines if line.startswith("epsilon")]
    assert epsilon.split()[:3] == ["epsilon", "0.5", "0.02"]


def test_a_session_is_started_with_settings_and_actions(served: ScriptedServer) -> None:
    session = from_dict(SESSION, LearningSession())
    answer = StartLearningSessionResponse(session=session, resumed=True)
    served.on("StartLearningSession", answer)
    result = mneme(
        "learning", "start", "linucb", "style", "--config", "epsilon=0.5", "--config", "mode=fast",
        "--action", "short", "--action", "long", "--seed", "7", "--background",
        "--state-space", '{"type": "box", "low": [0], "high": [null]}',
    )  # fmt: skip
    assert result.lines == ["style"]
    assert "Resumed: 1,200 steps recorded." in result.err
    request = served.last("StartLearningSession")
    assert dict(request.config) == {"epsilon": 0.5, "mode": "fast"}
    assert list(request.action_space.discrete.labels) == ["short", "long"]
    assert list(request.state_space.box.high) == [float("inf")]
    assert (request.seed, request.learning) == (7, 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("start", "linucb", "--config", "epsilon"), "'epsilon' is not KEY=VALUE"),
        (("start", "linucb", "--state-space", "{"), "is not JSON"),
        (("start", "linucb", "--action-space", '{"n": 2}'), 'such as {"type": "discrete"'),
        (
            ("start", "linucb", "--action", "a", "--action-space", '{"type": "open_labels"}'),
            "exclude each other",
        ),
        (("predict", "s", "[1,"), "is not JSON"),
        (("predict", "s", "0.5"), "a whole number or a text"),
        (("feedback", "s", "1", "--state", "{}"), "give --prediction, or both"),
        (("metrics", "s", "--every", "0"), "must be at least 0.1"),
    ],
)
def test_what_cannot_be_sent_is_refused_with_what_is_wrong(
    served: ScriptedServer, arguments: tuple[str, ...], words: str
) -> None:
    result = mneme("learning", *arguments)
    assert result.code == 2
    assert words in result.err
    assert not served.seen


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ('{"a": 1}', {"json": {"a": 1}}),
        ("[0.5, 1]", {"numbers": {"values": [0.5, 1]}}),
        ("3", {"number": 3}),
        ('"3"', {"label": "3"}),
        ("short", {"label": "short"}),
        ("true", {"label": "true"}),
    ],
)
def test_a_state_is_json_or_a_label(
    served: ScriptedServer, text: str, sent: dict[str, Any]
) -> None:
    mneme("learning", "predict", "s", text)
    request = served.last("Predict")
    assert request.state == from_dict({"state": sent}, type(request)()).state


def test_a_prediction_shows_what_is_thought_of_each_action(served: ScriptedServer) -> None:
    scores = [
        {"action": {"label": "short"}, "value": 0.9, "probability": 0.25},
        {"action": {"json": {"tool": "grep"}}, "probability": 0.75},
    ]
    made = {"prediction_id": "P", "action": {"json": {"tool": "grep"}}, "confidence": 0.25,
            "explored": True, "trained": True, "actions": scores}  # fmt: skip
    served.on("Predict", from_dict({"prediction": made}, PredictResponse()))
    arguments = ("learning", "predict", "s", "{}", "--allow", "short", "--explore")
    result = mneme(*arguments)
    assert result.lines[0].split(maxsplit=1) == ["Action", '{"tool": "grep"}']
    assert "one to learn from" in result.out
    assert any(line.split() == ["short", "0.9", "25.0", "%"] for line in result.lines)
    request = served.last("Predict")
    assert request.explore
    assert request.allowed_actions[0].label == "short"
    assert mneme(*arguments, "--json").documents[0]["prediction"]["prediction_id"] == "P"


def test_feedback_tells_of_a_prediction_or_of_a_whole_step(served: ScriptedServer) -> None:
    served.on("Feedback", FeedbackResponse(transition=4, episode_reward=1.5))
    result = mneme("learning", "feedback", "s", "1", "--prediction", "P")
    assert result.lines == ["step 4 recorded; reward of its episode 1.5"]
    assert served.last("Feedback").prediction_id == "P"
    mneme(
        "learning", "feedback", "s", "--state", "0", "--action", "1", "--next-state", "2",
        "--truncated", "--probability", "0.5", "--", "-1",
    )  # fmt: skip
    request = served.last("Feedback")
    assert (request.state.number, request.action.number, request.next_state.number) == (0, 1, 2)
    assert (request.reward, request.truncated, request.probability) == (-1, True, 0.5)


def test_metrics_are_shown_with_a_chart_of_rewards(served: ScriptedServer) -> None:
    judged = {"summary": "It would have earned 0.9."}
    served.on("GetLearningMetrics", measured(20, evaluation=judged))
    result = mneme("learning", "metrics", "s", "--window", "5", "--evaluate")
    for words in ("20 (9 steps)", "0.83", "converging", "decreasing", "10 % of the time", "1.5 s"):
        assert words in result.out
    assert "  2 ┤" in result.out
    assert "0.1 ┤▁" in result.out
    assert result.lines[-1] == "It would have earned 0.9."
    request = served.last("GetLearningMetrics")
    assert (request.window_size, request.evaluate) == (5, True)
    (document,) = mneme("learning", "metrics", "s", "--json").documents
    assert len(document["metrics"]["history"]) == 20


def test_a_session_without_episodes_has_no_chart(served: ScriptedServer) -> None:
    served.on("GetLearningMetrics", measured(0))
    assert "┤" not in mneme("learning", "metrics", "s").out


@pytest.mark.parametrize("as_json", [False, True])
def test_watching_shows_each_change_until_the_session_is_gone(
    served: ScriptedServer, as_json: bool
) -> None:
    answers = [measured(1), measured(1), measured(2)]

    def answer(_request: Any, context: Any) -> Any:
        if not answers:
            failure(context, "NOT_FOUND", "no session 's'", reason="SESSION_NOT_FOUND")
        return answers.pop(0)

    served.on("GetLearningMetrics", answer)
    flags = ["--json"] if as_json else []
    result = mneme("learning", "metrics", "s", "--watch", "--every", "0.1", *flags)
    assert result.code == 5
    if as_json:
        seen = [one["metrics"]["episodes_completed"] for one in result.documents]
        assert seen == [1, 2]
    else:
        assert [line.split(",")[0] for line in result.lines] == ["1 episode", "2 episodes"]


def test_on_a_terminal_a_watch_draws_the_chart_again(served: ScriptedServer) -> None:
    answers = [measured(2), measured(3)]

    def answer(_request: Any, context: Any) -> Any:
        if not answers:
            failure(context, "NOT_FOUND", "no session 's'", reason="SESSION_NOT_FOUND")
        return answers.pop(0)

    served.on("GetLearningMetrics", answer)
    out = mneme("learning", "metrics", "s", "-w", "--every", "0.1", terminal=True).out
    assert "2 (9 steps)" in out
    assert "3 (9 steps)" in out


@pytest.mark.parametrize("terminal", [False, True])
def test_training_ends_with_what_it_came_to(served: ScriptedServer, terminal: bool) -> None:
    answers = [
        TrainResponse(steps_completed=n, num_steps=50, updates=32 * n, loss=0.5, steps_per_second=9)
        for n in (10, 50)
    ]
    served.on("Train", lambda _request, _context: iter(answers))
    result = mneme("learning", "train", "s", "-n", "50", terminal=terminal)
    assert result.lines == ["50 of 50 steps, 1,600 updates, loss 0.5, 9 steps/s"]
    assert served.last("Train").num_steps == 50
    documents = mneme("learning", "train", "s", "--json").documents
    assert [one["steps_completed"] for one in documents] == [10, 50]


def test_ending_says_how_it_did_and_where_the_file_is(served: ScriptedServer) -> None:
    answer = EndLearningSessionResponse(
        metrics=measured(3).metrics, model_path="t/models/s.npz", model_bytes=2048,
        meets_skill_bar=True,
    )  # fmt: skip
    served.on("EndLearningSession", answer)
    result = mneme("learning", "end", "s", "--no-export", "--min-performance", "0.5")
    assert result.lines[0].startswith("ended s: 3 episodes, 9 steps; ")
    assert "t/models/s.npz" in result.err
    assert "Exported 2.0 kB: mneme learning download s" in result.err
    assert "become a skill" in result.err
    request = served.last("EndLearningSession")
    assert (request.skip_export, request.min_performance) == (True, 0.5)


def test_deleting_asks_first(served: ScriptedServer) -> None:
    session = from_dict(SESSION, LearningSession())
    served.on("GetLearningSession", GetLearningSessionResponse(session=session))
    refused = mneme("learning", "delete", "style", stdin="n\n")
    assert refused.code != 0
    assert "with 1,200 recorded steps" in refused.err
    assert not served.calls("DeleteLearningSession")
    assert mneme("learning", "delete", "style", "--yes").lines == ["deleted style"]
    served.on("DeleteLearningSession", DeleteLearningSessionResponse(session=session))
    deleted = mneme("learning", "delete", "style", "--yes", "--json").documents[0]
    assert (deleted["id"], deleted["algorithm"]) == (SESSION["id"], SESSION["algorithm"])


def test_a_column_chart_stands_on_the_least_value_and_shortens_long_series() -> None:
    assert column_chart([]) == []
    assert column_chart([0, 1], height=2) == ["1 ┤ █", "0 ┤▁█"]
    assert column_chart([3, 3], height=2) == ["3 ┤▅▅"]
    assert max(map(len, column_chart([float(i) for i in range(1000)], 40))) == len("987 ┤") + 40


def test_importing_says_what_became_of_it_and_what_was_left_out(served: ScriptedServer) -> None:
    counted = {"action": {"label": "ask"}, "count": 7, "mean_reward": 0.25}
    left = {"reason": "it called no tool", "count": 2, "examples": ["s1", "s2"]}
    told = {"imported": 3, "known": 4, "steps": 7, "actions": [counted], "skipped": [left]}
    last = from_dict(told, ImportExperienceResponse())
    served.on("ImportExperience", lambda _request, _context: iter([last]))
    result = mneme(
        *["learning", "import", "s", "--state", "project", "--state", "kind=metadata.k.kind"],
        *["--action-tag", "plan:", "--kind", "episodes", "--project", "shop", "--dry-run"],
    )
    assert result.lines[0] == "imported 3 records with 7 steps; 4 were imported before"
    assert "Left out 2 records: it called no tool (s1, s2)." in result.err
    assert "ask" in result.out
    asked = served.last("ImportExperience")
    assert [(one.name, one.path) for one in asked.state_fields] == [
        ("", "project"), ("kind", "metadata.k.kind"),
    ]  # fmt: skip
    assert (asked.action_name, asked.selection.project, asked.dry_run) == ("plan:", "shop", True)
    refused = mneme(
        "learning", "import", "s", "--state", "a", "--action-tag", "x", "--action-field", "y"
    )
    assert refused.code != 0
    assert "not both" in refused.err
