"""`mneme audit` of a real server: it passes what only grew, and catches what did not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from support.api import Api
from support.making import event, record
from support.operations import finished
from support.server import ADMIN_KEY, local_server
from unit.cli.command import Result, mneme


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where servers listen, one after the other: heads are kept by address."""
    address = f"unix:{tmp_path / 'socket'}"
    monkeypatch.setenv("MNEME_ADDRESS", address)
    monkeypatch.setenv("MNEME_API_KEY", ADMIN_KEY)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return address


@contextmanager
def serving(data: Path, address: str) -> Iterator[Api]:
    with local_server(data, listen=address) as server:
        yield server.keys.admin


def audit(*options: str) -> Result:
    return mneme("audit", *options)


def heads(tmp_path: Path) -> list[str]:
    stored = json.loads((tmp_path / "state/mneme/heads.json").read_text())
    return [one["note"] for one in stored.values()]


def test_a_log_is_followed_while_it_grows_and_keys_change(tmp_path: Path, address: str) -> None:
    with serving(tmp_path / "data", address) as api:
        assert "its head is kept in" in audit().out
        record(api, *(event(f"words {number}", "s") for number in range(300)))
        assert "has 300 leaves, and begins with all that it had before" in audit().out
        api.proof.RotateLogKey(proof_pb.RotateLogKeyRequest())
        record(api, event("after the new key", "s"))
        api.proof.RotateLogKey(proof_pb.RotateLogKeyRequest())
        assert "has 301 leaves" in audit().out
        assert heads(tmp_path) == [api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest()).note]


def test_a_restored_tenant_has_a_new_log_that_names_the_old_head(
    tmp_path: Path, address: str
) -> None:
    with serving(tmp_path / "data", address) as api:
        record(api, event("before", "s"))
        backup = Path(finished(api, admin_pb.BackupRequest()).path).name
        record(api, event("after", "s"))
        audit()
        (before,) = heads(tmp_path)
        finished(api, admin_pb.RestoreRequest(backup=backup))
        refused = audit()
        assert (refused.code, heads(tmp_path)) == (1, [before])
        assert "it names the head that was kept, of 2 leaves" in refused.out
        assert audit("--accept-new-log").code == 0
        record(api, event("since", "s"))
        assert audit().code == 0


def test_of_a_forked_log_only_the_branch_is_believed_that_was_seen_first(
    tmp_path: Path, address: str
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    with serving(one, address) as api:
        record(api, event("what everybody knows", "s"))
        audit()
    shutil.copytree(one, other)
    for data, said in ((one, "what is told to one"), (other, "what is told to another")):
        with serving(data, address) as api:
            record(api, event(said, "s"))
            result = audit()
        if data == one:
            assert result.code == 0
            seen = heads(tmp_path)
    assert (result.code, heads(tmp_path)) == (1, seen)
    assert "the log was rewritten or forked: two heads of one size differ" in result.out
    with serving(one, address):
        assert audit().code == 0
