"""What keys with few scopes get to see, and may wait for."""

from __future__ import annotations

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2, operation_pb2
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import learning_import_pb2 as import_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import operation_service_pb2 as operation_pb
from support.api import grpc, refused
from support.operations import ended, get
from support.server import LocalServer

READ, WRITE = auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE
LEARN, ADMIN = auth_pb2.KEY_SCOPE_LEARN, auth_pb2.KEY_SCOPE_ADMIN
SECRET = "the safe's number is 1234"


def test_a_key_that_only_writes_reads_nothing_in_answers(server: LocalServer) -> None:
    owner = server.keys.tenant()
    owner.memory.CreateMemory(memory_pb.CreateMemoryRequest(memory_id="m", text=SECRET))
    owner.skill.CreateEpisode(
        episode_pb.CreateEpisodeRequest(episode_id="x", task=SECRET, success=True)
    )
    writer = server.keys.key(owner.tenant_id, WRITE)
    update = memory_pb.UpdateMemoryRequest(memory=memory_pb.Memory(id="m", importance=1))
    update.update_mask.paths.append("importance")
    updated = writer.memory.UpdateMemory(update)
    assert (updated.memory.id, bool(updated.memory.etag)) == ("m", True)
    inserted = writer.memory.CreateMemory(
        memory_pb.CreateMemoryRequest(text="a safe's number", similar_limit=5)
    )
    deleted = writer.skill.DeleteEpisode(episode_pb.DeleteEpisodeRequest(episode_id="x"))
    assert deleted.episode.id == "x"
    for answer in (updated, inserted, deleted):
        assert "1234" not in str(answer)


def test_a_key_that_only_learns_imports_nothing_that_it_may_not_read(server: LocalServer) -> None:
    learner = server.keys.tenant("learns", LEARN)
    with refused() as failure:
        list(
            learner.learning.ImportExperience(
                import_pb.ImportExperienceRequest(session_id="s", dry_run=True)
            )
        )
    assert failure.code is grpc.StatusCode.PERMISSION_DENIED
    assert "needs scope read" in failure.message


@pytest.mark.on_sqlite("it makes a backup")
def test_what_a_key_may_start_it_may_wait_for(server: LocalServer) -> None:
    tenant = server.keys.tenant()
    administrator = server.keys.key("default", ADMIN)
    started = administrator.admin.Backup(
        admin_pb.BackupRequest(tenant_id=tenant.tenant_id)
    ).operation
    assert ended(administrator, started.id).state == operation_pb2.OPERATION_STATE_SUCCEEDED
    assert get(administrator, started.id).kind == "backup"
    listed = administrator.operation.ListOperations(operation_pb.ListOperationsRequest())
    assert started.id in [one.id for one in listed.operations]
    cancel = operation_pb.CancelOperationRequest(operation_id=started.id)
    assert administrator.operation.CancelOperation(cancel).operation.done
    for scope in (READ, WRITE, LEARN):
        with refused() as failure:
            get(server.keys.key("default", scope), started.id)
        assert failure.code is grpc.StatusCode.NOT_FOUND
