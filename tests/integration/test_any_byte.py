"""Any byte of what certificates rest on, flipped: none is made of it, and none verifies."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from mneme.proof import open_checkpoint
from mneme.proof.notes import NoteInvalid, VerifierKey
from mneme.v1 import certificate_pb2 as cert_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from support.api import Api, failure_of, grpc
from support.making import episode, event, record
from support.server import local_server

_MANY = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
_FEWER = settings(_MANY, max_examples=200)
places = st.floats(0, 1, exclude_max=True)

# Columns that certificates rest on, of the rows of what they show, and the tiles.
_SHOWN = ("m0", "m1", "m2", "tried", "e7")
_IDS = ", ".join(f"'{one}'" for one in _SHOWN)
_RESTS_ON = {
    "documents": (
        f"source_id IN ({_IDS}) AND kind <> 'event'",
        ("kind", "source_id", "text", "timestamp", "user_id", "project", "tags", "category"),
    ),
    "documents AS of_event": ("source_id = 'e7'", ("kind", "source_id", "text")),
    "events": (
        "id = 'e7'",
        ("id", "session_id", "agent_id", "event_type", "severity", "timestamp", "text", "name",
         "payload", "metadata", "recorded_at", "salt", "commitment"),
    ),
    "log_leaves": (
        f"source_id IN ({_IDS})",
        ("leaf", "kind", "source_id", "commitment", "salt", "content"),
    ),
    "log_runs": ("true", ("first_leaf", "first_doc")),
    "log_tiles": ("true", ("level", "number", "hashes")),
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A value in a tenant's database."""

    table: str
    rowid: int
    column: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column} of row {self.rowid}"


@dataclass(frozen=True)
class Made:
    """A tenant of a running server, with a certificate of it."""

    api: Api
    database: Path
    certificate: str
    head: str
    key: str
    cells: tuple[Cell, ...] = field(repr=False)


def certify(api: Api) -> Any:
    request = cert_pb.RecallWithCertificateRequest(
        query="invoice 1 paid by cheque", scopes=["memory", "episode", "event"], limit=5
    )
    return api.recall.RecallWithCertificate(request)


def verify(api: Api, text: str) -> Any:
    return api.recall.VerifyCertificate(cert_pb.VerifyCertificateRequest(json=text))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    data = tmp_path_factory.mktemp("any-byte") / "data"
    with local_server(data) as server:
        api = server.keys.admin
        for number in range(3):
            api.memory.CreateMemory(
                memory_pb.CreateMemoryRequest(
                    memory_id=f"m{number}", text=f"invoice {number} was paid by cheque",
                    user_id="ann", project="shop", tags=["paid"],
                )
            )  # fmt: skip
        episode(api, "pay invoice 1 by cheque", episode_id="tried", user_id="ann")
        said = "invoice 1 of all invoices was paid by cheque"
        events = [
            event(f"some other words {number}", "s", id=f"e{number}") for number in range(300)
        ]
        events[7] = event(said, "s", id="e7", name="pay", agent_id="clerk")
        record(api, *events, wait=True)
        answer = certify(api)
        assert {one.source_id for one in answer.results} == set(_SHOWN)
        head = api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest())
        database, text = data / "tenants/default/mneme.db", answer.certificate.json
        yield Made(api, database, text, head.note, head.verifier_key, tuple(_cells(database)))


def _cells(database: Path) -> Iterator[Cell]:
    with closing(sqlite3.connect(database)) as connection:
        for named, (where, columns) in _RESTS_ON.items():
            table = named.split()[0]
            query = f"SELECT rowid, {', '.join(columns)} FROM {table} WHERE {where}"
            for rowid, *values in connection.execute(query):
                for column, value in zip(columns, values, strict=True):
                    if value not in (None, "", b""):
                        yield Cell(table, rowid, column)


@contextmanager
def flipped(database: Path, cell: Cell, place: float, bit: int) -> Iterator[None]:
    """Flip a bit of a value while the block runs, behind the server's back.

    Raises:
        sqlite3.IntegrityError: another row is in the place that the changed one would take.
    """
    with closing(sqlite3.connect(database, isolation_level=None, timeout=30)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        where = f"{cell.table} WHERE rowid = {cell.rowid}"
        query = f"SELECT {cell.column}, typeof({cell.column}) FROM {where}"
        value, kind = connection.execute(query).fetchone()
        change = f"UPDATE {cell.table} SET {cell.column} = %s WHERE rowid = {cell.rowid}"
        if kind == "integer":
            changed: Any = value ^ 1 << int(place * 56)
        else:
            raw = bytearray(value.encode() if kind == "text" else value)
            raw[int(place * len(raw))] ^= 1 << bit
            changed = bytes(raw)
        connection.execute(change % f"CAST(? AS {kind})", [changed])
        try:
            yield
        finally:
            connection.execute(change % "?", [value])


@contextmanager
def rejecting(kind: type[Exception]) -> Iterator[None]:
    """Have hypothesis draw another example when this is raised."""
    try:
        yield
    except kind:
        reject()


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
@_MANY
@given(data=st.data(), place=places, bit=st.integers(0, 7))
def test_a_flipped_bit_of_a_row_or_tile_is_found_and_named(
    made: Made, data: st.DataObject, place: float, bit: int
) -> None:
    cell = data.draw(st.sampled_from(made.cells), label="cell")
    with rejecting(sqlite3.IntegrityError), flipped(made.database, cell, place, bit):
        found = verify(made.api, made.certificate)
        assert not found.valid, cell
        assert {one.part for one in found.problems} <= {"log", "rows"}
        assert all(one.message for one in found.problems)
        _require_nothing_is_made_of_it(made)
    assert verify(made.api, made.certificate).valid


def _require_nothing_is_made_of_it(made: Made) -> None:
    """Check that no certificate is made that shows what was changed: none at all, or one without
    the row that cannot be read any more, which says that it is not all."""
    try:
        answer = certify(made.api)
    except grpc.RpcError as error:
        failure = failure_of(error)
        assert (failure.code, failure.reason) == (grpc.StatusCode.DATA_LOSS, "DATA_DAMAGED")
        assert failure.message
    else:
        assert answer.partial
        assert len({one.source_id for one in answer.results}.intersection(_SHOWN)) < len(_SHOWN)


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
@_FEWER
@given(place=places, bit=st.integers(0, 7))
def test_a_flipped_bit_of_a_head_is_found(made: Made, place: float, bit: int) -> None:
    raw = bytearray(made.head.encode())
    raw[int(place * len(raw))] ^= 1 << bit
    with pytest.raises(NoteInvalid, match=r"."):
        open_checkpoint(raw.decode(errors="replace"), [VerifierKey.parse(made.key)])
