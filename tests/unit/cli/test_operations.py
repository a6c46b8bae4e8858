from __future__ import annotations

import json

from mneme.messages import (
    BackupResponse,
    BackupResult,
    CancelOperationResponse,
    GetOperationResponse,
    ListOperationsResponse,
    Operation,
    WaitOperationResponse,
)
from unit.cli.command import mneme
from unit.cli.operations import ended, running
from unit.client.scripted import ScriptedServer

MADE = BackupResult(path="/b/x.db", size_bytes=1500, sha256="ab")


def failed() -> Operation:
    operation = Operation(id="op-2", kind="restore", tenant_id="acme", state=4, done=True)
    operation.error.code, operation.error.message = 15, "the backup x.db is damaged"
    return operation


def test_they_are_listed_with_how_far_they_are(served: ScriptedServer) -> None:
    served.on("ListOperations", ListOperationsResponse(operations=[running(), failed()]))
    result = mneme("operations", "list", "--state", "running", "--state", "failed", "-n", "5")
    assert result.lines[1].split()[:6] == ["op-1", "backup", "acme", "running", "copying", "25"]
    assert "the backup x.db is damaged" in result.lines[2]
    assert list(served.last("ListOperations").states) == [2, 4]


def test_one_is_shown_with_what_it_came_to(served: ScriptedServer) -> None:
    served.on("GetOperation", GetOperationResponse(operation=ended(MADE)))
    shown = mneme("operations", "get", "op-1")
    assert "State       succeeded" in shown.out
    assert "Path        /b/x.db" in shown.out
    told = json.loads(mneme("operations", "get", "op-1", "--json").out)
    assert told["response"] == {
        "@type": "type.googleapis.com/mneme.v1.BackupResult",
        "path": "/b/x.db",
        "size_bytes": 1500,
        "sha256": "ab",
    }


def test_waiting_ends_with_the_operation(served: ScriptedServer) -> None:
    served.on("GetOperation", GetOperationResponse(operation=running()))
    seen = iter([running(), running(), ended(MADE)])
    served.on("WaitOperation", lambda *_: WaitOperationResponse(operation=next(seen)))
    assert "/b/x.db" in mneme("operations", "wait", "op-1").out


def test_one_that_failed_fails_the_command(served: ScriptedServer) -> None:
    served.on("GetOperation", GetOperationResponse(operation=running()))
    served.on("WaitOperation", WaitOperationResponse(operation=failed()))
    result = mneme("operations", "wait", "op-1", "--json")
    assert result.code == 1
    error = json.loads(result.err)["error"]
    assert (error["code"], error["message"]) == ("DATA_LOSS", "the backup x.db is damaged")


def test_a_command_need_not_wait(served: ScriptedServer) -> None:
    served.on("Backup", BackupResponse(operation=running()))
    assert mneme("admin", "backup", "--no-wait").out == "op-1\n"
    assert served.calls("WaitOperation") == []


def test_one_is_cancelled(served: ScriptedServer) -> None:
    served.on("CancelOperation", CancelOperationResponse(operation=running()))
    assert mneme("operations", "cancel", "op-1").out == "operation op-1 was told to stop\n"
    cancelled = Operation(id="op-1", state=5, done=True)
    served.on("CancelOperation", CancelOperationResponse(operation=cancelled))
    assert mneme("operations", "cancel", "op-1").out == "operation op-1 has ended: cancelled\n"
