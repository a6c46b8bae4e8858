"""Kinds of operations: each that an RPC starts has its work, whoever brings it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest
from mneme.v1 import admin_service_pb2, skill_service_pb2
from mneme_server.common.canonical import JsonObject
from mneme_server.engine.background.jobs import Jobs
from mneme_server.features.operations.messages import OperationKinds
from mneme_server.features.operations.model import LongWork, OperationTask
from mneme_server.features.operations.operations import Operations
from mneme_server.features.operations.store import SqlOperations

ADMIN = admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"]
SKILLS = skill_service_pb2.DESCRIPTOR.services_by_name["SkillService"]
ALL = ("backup", "restore", "delete_tenant", "reindex", "move_tenant", "forget")


class Nothing:
    """Work that is never begun here."""

    def run(self, task: OperationTask) -> JsonObject:
        raise AssertionError(task)

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        raise AssertionError(tenant_id)


def works(*kinds: str) -> dict[str, LongWork]:
    return {kind: Nothing() for kind in kinds}


@pytest.fixture
def kinds() -> OperationKinds:
    unused = object()
    operations = Operations(cast("SqlOperations", unused), cast("Jobs", unused), places=1)
    return OperationKinds(operations)


def test_several_bring_the_work_of_one_service(kinds: OperationKinds) -> None:
    kinds.bring(ADMIN, works(*ALL[:4]))
    kinds.bring(ADMIN, works(*ALL[4:]))
    kinds.require_all([SKILLS, ADMIN])


def test_work_that_nobody_brings_is_named(kinds: OperationKinds) -> None:
    kinds.bring(ADMIN, works(*ALL[:3]))
    with pytest.raises(
        LookupError, match="AdminService starts operations forget, move_tenant, reindex"
    ):
        kinds.require_all([SKILLS, ADMIN])


def test_work_that_no_rpc_starts_is_refused(kinds: OperationKinds) -> None:
    with pytest.raises(LookupError, match="brings the work of backup, tidy"):
        kinds.bring(ADMIN, works("backup", "tidy"))
    with pytest.raises(LookupError, match="SkillService starts operations none"):
        kinds.bring(SKILLS, works("backup"))


def test_work_that_two_bring_is_refused(kinds: OperationKinds) -> None:
    kinds.bring(ADMIN, works("backup", "forget"))
    with pytest.raises(ValueError, match="two operations are called forget"):
        kinds.bring(ADMIN, works("forget"))
