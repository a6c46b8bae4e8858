"""What was changed in a tenant's database behind the server's back is never certified."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mneme.proof import ProofInvalid, open_checkpoint, verify_consistency
from mneme.proof.notes import VerifierKey
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import certificate_pb2 as cert_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import operation_service_pb2 as operations_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from support.api import Api, grpc, refused
from support.making import event, record
from support.operations import finished
from support.server import local_server


def fill(api: Api) -> None:
    for number in range(3):
        text = f"invoice {number} was paid by cheque"
        api.memory.CreateMemory(memory_pb.CreateMemoryRequest(memory_id=f"m{number}", text=text))
    # More than a tile holds.
    record(api, *(event(f"some other words {number}", "s") for number in range(300)))


def certify(api: Api) -> Any:
    request = cert_pb.RecallWithCertificateRequest(query="invoice 1", scopes=["memory"])
    return api.recall.RecallWithCertificate(request)


def checkpoint(api: Api) -> Any:
    return api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("filled") / "data"
    with local_server(data) as server:
        fill(server.keys.admin)
        certify(server.keys.admin)
    return data


@pytest.fixture
def data(filled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(filled, tmp_path / "data")


def database(data: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(data / "tenants/default/mneme.db", isolation_level=None))


def flipped(data: Path, table: str, column: str, where: str, place: int = 6) -> None:
    """Change one byte of a value."""
    with database(data) as connection:
        query = f"SELECT {column}, typeof({column}) FROM {table} WHERE {where}"
        value, kind = connection.execute(query).fetchone()
        raw = bytearray(value.encode() if kind == "text" else value)
        raw[place] ^= 1
        changed = raw.decode() if kind == "text" else bytes(raw)
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", [changed])


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
@pytest.mark.parametrize(
    ("table", "column", "where", "said"),
    [
        ("documents", "text", "source_id = 'm1'", "memory 'm1' is not what was logged of it"),
        ("documents", "user_id", "source_id = 'm1'", "memory 'm1' is not what was logged of it"),
        ("log_leaves", "content", "source_id = 'm1'", "does not give its commitment"),
        ("log_leaves", "salt", "source_id = 'm1'", "does not give its commitment"),
        ("log_leaves", "commitment", "source_id = 'm1'", "does not give its commitment"),
        ("log_tiles", "hashes", "level = 0 AND number = 0", "is not that in the log"),
        ("log_tiles", "hashes", "level = 0 AND number = 1", "not those whose head was signed"),
        ("log_tiles", "hashes", "level = 1", "not those whose head was signed"),
    ],
)
def test_a_changed_byte_is_named_and_nothing_is_signed(
    data: Path, table: str, column: str, where: str, said: str
) -> None:
    if column == "user_id":
        with database(data) as connection:
            connection.execute(f"UPDATE {table} SET user_id = 'eve' WHERE {where}")
    else:
        flipped(data, table, column, where, place=28 if table == "log_tiles" else 6)
    with local_server(data) as server, refused() as failure:
        certify(server.keys.admin)
    assert failure.code == grpc.StatusCode.DATA_LOSS
    assert said in failure.message


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_changed_neighbour_in_a_tile_is_found(data: Path) -> None:
    flipped(data, "log_tiles", "hashes", "level = 0 AND number = 0", place=100 * 32)
    with local_server(data) as server, refused() as failure:
        certify(server.keys.admin)
    assert failure.code == grpc.StatusCode.DATA_LOSS
    assert "a tile was changed" in failure.message


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
@pytest.mark.parametrize("left", [1, 0])
def test_a_dropped_leaf_is_found(data: Path, left: int) -> None:
    with database(data) as connection:
        cut = "substr(hashes, 1, length(hashes) - 32)" if left else "x''"
        connection.execute(
            f"UPDATE log_tiles SET hashes = CAST({cut} AS BLOB) WHERE level = 0 AND number = 1"
        )
    with local_server(data) as server, refused() as failure:
        checkpoint(server.keys.admin)
    assert failure.code == grpc.StatusCode.DATA_LOSS
    assert "it was cut" in failure.message


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_folder_that_was_put_back_by_hand_signs_nothing_under_the_old_name(
    data: Path, tmp_path: Path
) -> None:
    old = (data / "tenants/default/mneme.db").read_bytes()
    with local_server(data) as server:
        record(server.keys.admin, event("words", "s"))
        checkpoint(server.keys.admin)
    for name in ("mneme.db", "mneme.db-wal", "mneme.db-shm"):
        (data / "tenants/default" / name).unlink(missing_ok=True)
    (data / "tenants/default/mneme.db").write_bytes(old)
    with local_server(data) as server:
        with refused() as failure:
            checkpoint(server.keys.admin)
        record(server.keys.admin, event("other words", "s"))  # As many leaves, others.
        with refused() as second:
            checkpoint(server.keys.admin)
    assert "it was cut, or the tenant's folder was put back by hand" in failure.message
    assert second.code == grpc.StatusCode.DATA_LOSS


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_restored_tenant_starts_a_log_of_another_name_that_names_the_old_head(
    data: Path,
) -> None:
    with local_server(data) as server:
        api = server.keys.admin
        finished(api, admin_pb.BackupRequest(tenant_id="default"))
        backup = Path(finished(api, admin_pb.BackupRequest(tenant_id="default")).path).name
        record(api, event("after the backup", "s"))
        before = checkpoint(api)
        text = certify(api).certificate.json
        started = api.admin.Restore(
            admin_pb.RestoreRequest(tenant_id="default", backup=backup)
        ).operation
        api.operation.WaitOperation(operations_pb.WaitOperationRequest(operation_id=started.id))
        after = checkpoint(api)
        assert after.origin != before.origin
        assert after.previous_note == before.note
        verdict = api.recall.VerifyCertificate(cert_pb.VerifyCertificateRequest(json=text))
        assert verdict.valid
        again = certify(api).certificate.json
        assert after.origin in again


def test_a_forked_log_is_caught_by_who_kept_a_head(data: Path, tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    shutil.copytree(data, fork)
    notes = []
    for folder, text in ((data, "one history"), (fork, "another history")):
        with local_server(folder) as server:
            api = server.keys.admin
            record(api, event(text, "s"))
            said = checkpoint(api)
            key = VerifierKey.parse(said.verifier_key)
            notes.append(open_checkpoint(said.note, [key]))
    one, other = notes
    assert one.size == other.size
    with pytest.raises(ProofInvalid, match="two heads of one size differ"):
        verify_consistency(one.size, one.root, other.size, other.root, [])


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_private_keys_are_the_servers_users_alone_and_encrypted_with_a_secret(
    data: Path, tmp_path: Path
) -> None:
    (pem,) = (data / "keys/default").glob("*.pem")
    assert pem.stat().st_mode & 0o777 == 0o600
    assert b"ENCRYPTED" not in pem.read_bytes()
    secret = tmp_path / "secret"
    secret.write_text("a secret of more than sixteen bytes\n")
    with local_server(data, key_file=secret) as server:
        text = certify(server.keys.admin).certificate.json
    assert b"ENCRYPTED" in pem.read_bytes()
    with local_server(data) as server:
        with refused() as failure:
            certify(server.keys.admin)
        found = server.keys.admin.recall.VerifyCertificate(
            cert_pb.VerifyCertificateRequest(json=text)
        )
    assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
    assert "set MNEME_KEY_FILE" in failure.message
    assert found.valid
