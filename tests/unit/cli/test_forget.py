from __future__ import annotations

import json
from typing import Any

import pytest
from mneme.messages import (
    ForgetReceipt,
    ForgetRequest,
    ForgetResponse,
    ForgottenCount,
    LeafRange,
    WaitOperationResponse,
)
from unit.cli.command import mneme
from unit.cli.operations import ended, running
from unit.client.scripted import ScriptedServer

RECEIPT = ForgetReceipt(
    id="op-1",
    tenant_id="acme",
    counts=[ForgottenCount(kind="event", count=1_200), ForgottenCount(kind="memory", count=2)],
    policies=["routing"],
    leaves=[LeafRange(first=3, last=9)],
    backups=["a.db", "b.db"],
    statement="{}",
)


@pytest.fixture
def asked(served: ScriptedServer) -> ScriptedServer:
    def forget(request: ForgetRequest, _: Any) -> ForgetResponse:
        return ForgetResponse(operation=ended(RECEIPT) if request.dry_run else running("forget"))

    served.on("Forget", forget)
    served.on("WaitOperation", WaitOperationResponse(operation=ended(RECEIPT)))
    return served


def forgotten(served: ScriptedServer) -> list[ForgetRequest]:
    """Return what was to be forgotten, dry runs left out."""
    requests = [call.request for call in served.calls("Forget")]
    return [request for request in requests if not request.dry_run]


def test_a_dry_run_tells_what_would_go(asked: ScriptedServer) -> None:
    result = mneme("forget", "--user", "ann", "--dry-run")
    assert result.out == "would forget 1,200 events and 2 memories (learning anew: routing)\n"
    assert (asked.last("Forget").user_id, asked.last("Forget").dry_run) == ("ann", True)
    assert not forgotten(asked)


def test_it_is_asked_for_with_what_would_go_and_told_what_went(asked: ScriptedServer) -> None:
    result = mneme("forget", "--user", "ann", stdin="y\n")
    assert "Forget 1,200 events and 2 memories (learning anew: routing)?" in result.err
    assert "forgot 1,200 events and 2 memories" in result.out
    assert "2 backups still hold it: a.db, b.db" in result.out
    (request,) = forgotten(asked)
    assert request.user_id == "ann"


def test_who_says_no_forgets_nothing(asked: ScriptedServer) -> None:
    assert mneme("forget", "--user", "ann", stdin="n\n").code == 1
    assert not forgotten(asked)


def test_the_receipt_is_printed_as_json(asked: ScriptedServer) -> None:
    told = json.loads(mneme("forget", "memory:m-1", "event:e:2", "--yes", "--json").out)
    assert told["leaves"] == [{"first": 3, "last": 9}]
    items = [(item.kind, item.id) for item in asked.last("Forget").items]
    assert items == [("memory", "m-1"), ("event", "e:2")]


def test_several_options_are_one_filter(asked: ScriptedServer) -> None:
    mneme("forget", "--user", "ann", "--project", "shop", "--kind", "memory", "--yes")
    filter_ = asked.last("Forget").filter
    assert (filter_.user_id, filter_.project, list(filter_.kinds)) == ("ann", "shop", ["memory"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say what to forget"),
        (["m-1"], "'m-1' is not KIND:ID"),
        (["memory:m-1", "--user", "ann"], "not both"),
        (["--user", "ann", "--session", "s"], "say one of --user, --agent and --session"),
    ],
)
def test_what_says_nothing_is_refused(
    asked: ScriptedServer, arguments: list[str], said: str
) -> None:
    result = mneme("forget", *arguments, "--yes")
    assert result.code == 2
    assert said in result.err
    assert "Invalid value" not in result.err


def test_where_there_is_nothing_to_forget_it_does_not_ask(served: ScriptedServer) -> None:
    nothing = ForgetReceipt(tenant_id="acme")
    served.on("Forget", ForgetResponse(operation=ended(nothing, "forget")))
    result = mneme("forget", "--user", "ann")
    assert (result.code, result.out) == (0, "there is nothing to forget\n")
    assert not forgotten(served)
