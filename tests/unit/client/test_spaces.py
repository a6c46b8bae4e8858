"""States, actions and spaces as plain JSON."""

from __future__ import annotations

from typing import Any

import pytest
from mneme import MnemeClient
from mneme.errors import ArgumentError
from mneme.messages import (
    PredictRequest,
    StartLearningSessionRequest,
)
from mneme.spaces import plain_space, plain_value, space_fields, value_fields
from mneme.types import Action, Space
from unit.client.scripted import ScriptedServer


@pytest.mark.parametrize(
    "value", [{"task_type": "auth", "complexity": 0.8}, {}, [0.5, -1.0], [], 0, 7, "short"]
)
def test_a_value_is_sent_in_the_form_it_has_and_read_as_it_was(
    served: ScriptedServer, value: Any
) -> None:
    with MnemeClient(served.address) as client:
        client.predict("s", value_fields(value), allowed_actions=[value_fields(value)])
    request: PredictRequest = served.last("Predict")
    assert request.state.WhichOneof("value") == request.allowed_actions[0].WhichOneof("value")
    assert plain_value(Action(request.allowed_actions[0])) == value


@pytest.mark.parametrize("value", [True, None, 0.5, [True], ["a"], [[1]]])
def test_what_is_no_value_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match="an object, a list of numbers, a whole number"):
        value_fields(value)


def test_a_whole_number_may_come_with_a_point() -> None:
    assert value_fields(2.0) == {"number": 2}


@pytest.mark.parametrize(
    "plain",
    [
        {"type": "discrete", "n": 4},
        {"type": "discrete", "labels": ["short", "long"]},
        {"type": "multi_discrete", "sizes": [3, 2]},
        {"type": "box", "low": [0.0, None], "high": [1.0, None]},
        {"type": "dict", "spaces": {"load": {"type": "box", "low": [0.0], "high": [1.0]},
                                    "tier": {"type": "discrete", "labels": ["a", "b"]}}},
        {"type": "open_labels"},
        {"type": "open_object"},
    ],
)  # fmt: skip
def test_a_space_is_sent_by_its_kind_and_read_as_it_was(
    served: ScriptedServer, plain: dict[str, Any]
) -> None:
    with MnemeClient(served.address) as client:
        client.start_learning_session("sarsa", session_id="s", state_space=space_fields(plain))
    request: StartLearningSessionRequest = served.last("StartLearningSession")
    assert plain_space(Space(request.state_space)) == plain


def test_spaces_have_gymnasiums_names_and_shapes_too() -> None:
    assert space_fields({"type": "MultiDiscrete", "nvec": [2]}) == {
        "multi_discrete": {"sizes": [2]}
    }
    box: dict[str, Any] = {"low": [-1.0, -1.0], "high": [1.0, 1.0]}
    assert space_fields({"type": "Box", "low": -1, "high": 1, "shape": [2]}) == {"box": box}


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ({"n": 4}, 'such as {"type": "discrete", "n": 4}'),
        ([4], "types: discrete, multi_discrete, box"),
        ({"type": "sphere"}, "no space 'sphere'; types: discrete"),
        ({"type": "discrete", "size": 4}, "a discrete space has no size; it has n, labels"),
        ({"type": "open_labels", "n": 4}, "it has nothing more to say"),
        ({"type": "box", "low": [0], "high": [1, 1]}, "differ in how many"),
        ({"type": "box", "low": "0", "high": 1}, "low: should be numbers, or null"),
        ({"type": "box", "low": 0, "high": 1, "shape": "2"}, "shape: should be whole numbers"),
        ({"type": "dict", "spaces": [1]}, "spaces: should be an object"),
        ({"type": "dict", "spaces": {"a": {"type": "x"}}}, "spaces.a: there is no space 'x'"),
    ],
)
def test_what_is_no_space_is_refused_with_what_one_looks_like(plain: Any, words: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        space_fields(plain)
    assert words in str(refused.value)
