"""`mneme profile`, by what a person sees."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp
from mneme.messages import GetProfileResponse, ProfileItem, ProfileReason
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer

_AT = Timestamp(seconds=1_790_000_000)


def _profile() -> GetProfileResponse:
    return GetProfileResponse(
        items=[
            ProfileItem(
                memory_id="m-1", text="Ann is allergic to nuts", last_said=_AT,
                reason=ProfileReason.PROFILE_REASON_PINNED,
            ),
            ProfileItem(
                memory_id="m-2", text="Ann drinks tea", last_said=_AT, confirmed_count=2,
                reason=ProfileReason.PROFILE_REASON_STABLE,
            ),
        ],
        text="- Ann is allergic to nuts",
        left_out_count=12,
    )  # fmt: skip


def test_a_profile_shows_each_memory_with_the_reason_and_how_many_are_left_out(
    served: ScriptedServer,
) -> None:
    served.on("GetProfile", _profile())
    result = mneme(
        "profile", "ann", "--agent", "clerk", "--project", "shop", "--token-budget", "300"
    )
    assert result.code == 0, result.err
    request = served.last("GetProfile")
    assert (request.user_id, request.agent_id, request.project) == ("ann", "clerk", "shop")
    assert request.token_budget == 300
    assert result.lines[1].split()[:2] == ["pinned", "2026-09-21"]
    assert "m-1" in result.lines[1]
    assert "stable, said on 3 days" in result.lines[2]
    assert "12 more; raise --token-budget." in result.err


def test_a_profile_says_when_nothing_is_known(served: ScriptedServer) -> None:
    served.on("GetProfile", GetProfileResponse())
    result = mneme("profile", "carol")
    assert (result.code, result.out, result.err) == (0, "", "Nothing is known of this user.\n")


def test_a_profile_as_a_prompt_is_the_prompt_and_nothing_else(served: ScriptedServer) -> None:
    served.on("GetProfile", _profile())
    assert mneme("profile", "ann", "--prompt").out == "- Ann is allergic to nuts\n"
    (document,) = mneme("profile", "ann", "--json").documents
    assert document["items"][0]["reason"] == "pinned"
