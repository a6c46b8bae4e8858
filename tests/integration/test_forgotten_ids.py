"""What is forgotten is gone with its id: no row of any table names it, whatever was made of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2
from mneme.v1 import certificate_pb2 as cert_pb
from mneme.v1 import experiment_pb2 as experiment_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from support.api import Api, grpc, refused
from support.making import create_edge, episode, skill
from support.operations import finished
from support.server import LocalServer

ID = "lighthouse-7f3a"


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("forgotten", *auth_pb2.KeyScope.values()[1:])


def remember(api: Api, memory_id: str, text: str, **fields: Any) -> None:
    api.memory.CreateMemory(memory_pb.CreateMemoryRequest(memory_id=memory_id, text=text, **fields))


def experiment(api: Api, name: str, cause: str, effect: str) -> None:
    api.causal.CreateExperiment(
        experiment_pb.CreateExperimentRequest(
            experiment_id=name, name=name, cause=cause, effect=effect
        )
    )


def forget(api: Api, kind: str, id_: str) -> None:
    request = admin_pb.ForgetRequest()
    request.items.add(kind=kind, id=id_)
    finished(api, request)


def naming(server: LocalServer, api: Api, text: str) -> set[str]:
    """Return the tables with a row, of the tenant's or of the catalog's, that has a text in it."""
    found: set[str] = set()
    with server.closed(api.tenant_id):
        for table, row in _rows(server, api):
            if text in row:
                found.add(table)
    return found


def _rows(server: LocalServer, api: Api) -> Iterator[tuple[str, str]]:
    url = server.settings.database_url
    if not url:
        for file in (f"tenants/{api.tenant_id}/mneme.db", "catalog.db"):
            with closing(sqlite3.connect(server.data_dir / file)) as database:
                named = "SELECT name FROM sqlite_master WHERE type = 'table'"
                for (table,) in database.execute(named).fetchall():
                    for row in database.execute(f'SELECT * FROM "{table}"'):
                        yield table, " ".join(map(str, row))
        return
    import psycopg

    with psycopg.connect(url.get_secret_value()) as connection:
        tables = connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_schema IN ('mneme', 'mneme_catalog')"
        ).fetchall()
        for schema, table in tables:
            for (row,) in connection.execute(f'SELECT t::text FROM {schema}."{table}" AS t'):
                yield table, row


def test_a_memory_that_is_forgotten_is_named_by_nothing_that_was_made_of_it(
    server: LocalServer, api: Api
) -> None:
    remember(api, ID, "The lighthouse is lit at dusk")
    remember(api, "after", "The lighthouse is lit by a clock", supersedes=[ID])
    remember(api, "other", "The harbour is open")
    episode(api, "light the lighthouse", episode_id="lit", memory_ids=[ID])
    skill(api, "light", skill_id="light", description="how to light the lighthouse")
    create_edge(api, f"memory:{ID}", "success", 0.5)
    create_edge(api, "review", "success", 0.5, evidence_ids=[ID])
    experiment(api, "about-it", f"memory:{ID}", "success")
    experiment(api, "towards-it", "review", f"memory:{ID}")
    experiment(api, "of-it", "review", "success")
    for arm, subject in enumerate((ID, "other", "third", "fourth")):
        api.causal.AssignTreatment(
            experiment_pb.AssignTreatmentRequest(experiment_id="of-it", subject=subject)
        )
        api.causal.RecordObservation(
            experiment_pb.RecordObservationRequest(
                experiment_id="of-it", subject=subject, outcome=arm
            )
        )
    question = cert_pb.RecallWithCertificateRequest(query="when is the lighthouse lit")
    shown = api.recall.RecallWithCertificate(question)
    assert ID in {one.source_id for one in shown.results}
    assert {"causal_experiments", "certificates"} < naming(server, api, ID)
    forget(api, "memory", ID)
    assert naming(server, api, ID) == set()
    of_it = experiment_pb.GetExperimentRequest(experiment_id="of-it")
    assert api.causal.GetExperiment(of_it).experiment.assigned_count == 3
    for gone in ("about-it", "towards-it"):
        with refused() as failure:
            api.causal.GetExperiment(experiment_pb.GetExperimentRequest(experiment_id=gone))
        assert failure.code == grpc.StatusCode.NOT_FOUND


def test_an_edge_that_is_forgotten_is_named_by_no_experiment(server: LocalServer, api: Api) -> None:
    experiment(api, "x", "review", "success")
    for number in range(12):
        said = api.causal.AssignTreatment(
            experiment_pb.AssignTreatmentRequest(experiment_id="x", subject=f"s{number}")
        )
        api.causal.RecordObservation(
            experiment_pb.RecordObservationRequest(
                experiment_id="x", subject=f"s{number}",
                outcome=number % 3 + (5 if said.treatment else 0),
            )
        )  # fmt: skip
    request = experiment_pb.ConcludeExperimentRequest(experiment_id="x")
    edge = api.causal.ConcludeExperiment(request).experiment.edge_id
    assert edge
    forget(api, "causal_edge", edge)
    assert naming(server, api, edge) == set()


def test_what_was_deleted_before_can_still_be_forgotten_by_its_id(
    server: LocalServer, api: Api
) -> None:
    remember(api, ID, "The lighthouse is lit at dusk")
    create_edge(api, f"memory:{ID}", "success", 0.5)
    experiment(api, "about-it", f"memory:{ID}", "success")
    api.memory.DeleteMemories(memory_pb.DeleteMemoriesRequest(memory_ids=[ID]))
    assert naming(server, api, ID), "that it was removed is logged"
    forget(api, "memory", ID)
    assert naming(server, api, ID) == set()
