"""`mneme reflections`: one is shown, changed, and deleted for good."""

from __future__ import annotations

from mneme.v1 import reflection_pb2 as pb
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer

REFLECTION = pb.Reflection(
    id="r", session_id="s", task_description="Parse CSV file", outcome=pb.OUTCOME_FAILURE,
    attempt_number=2, what_did_not_work=["Regex", "Splitting"], etag="e1",
)  # fmt: skip


def test_a_reflection_is_shown_with_its_etag(served: ScriptedServer) -> None:
    served.on("GetReflection", pb.GetReflectionResponse(reflection=REFLECTION))
    shown = mneme("reflections", "get", "r").out
    for words in ("Parse CSV file", "Regex", "Splitting", "e1"):
        assert words in shown
    assert served.last("GetReflection").reflection_id == "r"


def test_an_update_sends_what_is_given_and_empties_what_is_empty(served: ScriptedServer) -> None:
    served.on("UpdateReflection", pb.UpdateReflectionResponse(reflection=REFLECTION))
    arguments = ("--failed", "Floats", "--next", "", "--etag", "e1")
    assert mneme("reflections", "update", "r", *arguments).out == "updated r\n"
    request = served.last("UpdateReflection")
    assert list(request.update_mask.paths) == ["what_did_not_work", "next_strategy"]
    assert list(request.reflection.what_did_not_work) == ["Floats"]
    assert (request.reflection.id, request.reflection.etag) == ("r", "e1")


def test_deleting_asks_before(served: ScriptedServer) -> None:
    served.on("DeleteReflection", pb.DeleteReflectionResponse(reflection=REFLECTION))
    assert "for good?" in mneme("reflections", "delete", "r", stdin="n\n").err
    assert not served.calls("DeleteReflection")
    assert mneme("reflections", "delete", "r", "--yes").out == "deleted r\n"
