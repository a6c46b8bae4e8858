"""A valid request of every RPC, of a world: what a test spoils, or sends as it is.

It is the RPC's example in `scripts/api_examples.json`, the first message of a stream. The world has
what examples name; what a call makes gets a name of its own, and what it takes away is made for it.
Where tests need another request, `OTHERWISE` says so with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import PurePath
from typing import Any

from google.protobuf.message import Message
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import alert_service_pb2 as alert_pb
from mneme.v1 import experiment_pb2 as experiment_pb
from mneme.v1 import learning_service_pb2 as learning_pb

from support.examples import (
    anew,
    chosen_in,
    full_name,
    makers,
    new,
    requests_of,
    short_name,
    texts_in,
)
from support.operations import finished
from support.world import World, of_tenant, takes_away

_OF_A_NEW_TENANT = ("DeleteTenant", "Forget", "MoveTenant", "Reindex", "Restore")
"""What takes a tenant's data away, or is in the way of its other calls."""
_MAKERS = makers()


def _of_all_effects(_: World, request: Any) -> None:
    request.ClearField("filter")


def _asleep(_: World, request: Any) -> None:
    request.session_id = new("asleep")


def _of_costs(_: World, request: Any) -> None:
    request.rule.condition = alert_pb.ALERT_CONDITION_COST_EXCEEDS


def _running(_: World, request: Any) -> None:
    request.status = experiment_pb.EXPERIMENT_STATUS_RUNNING


def _of_all_patterns(_: World, request: Any) -> None:
    request.ClearField("name")


def _of_an_ended_session(world: World, request: Any) -> None:
    request.session_id = _made(world, request.session_id)
    ended = learning_pb.EndLearningSessionRequest(session_id=request.session_id)
    world.api.learning.EndLearningSession(ended)


def _to_a_new_session(world: World, request: Any) -> None:
    request.target_session_id = _made(world, request.target_session_id)


OTHERWISE: dict[str, tuple[str, Callable[[World, Any], None]]] = {
    "AlertService.TryAlertRule": ("events before a range count in it, costs are none", _of_costs),
    "CausalService.ListEdges": ("an effect of a cause has one edge, and one page", _of_all_effects),
    "CausalService.ListExperiments": ("the world's go on, and have pages", _running),
    "ContextService.Sleep": ("a session that others write to is not put to sleep", _asleep),
    "LearningService.DownloadModel": ("one that has ended has it", _of_an_ended_session),
    "LearningService.Transfer": ("what was learned is replaced", _to_a_new_session),
    "MemoryService.ListPatternStats": ("one pattern has one page", _of_all_patterns),
}
"""Why tests send something else than the example, and what they change in it."""


def valid(rpc: str, world: World) -> Message:
    """Return a valid request of an RPC, given by its full name."""
    name = short_name(rpc)
    new_tenant = name.endswith(_OF_A_NEW_TENANT)
    tenant = world.keys.tenant("input-gone").tenant_id if new_tenant else world.api.tenant_id
    request = requests_of(name, _chosen(name, world, tenant))[0]
    of_tenant(request, tenant)
    if takes_away(name):
        for holder, field in texts_in(request):
            named = getattr(holder, field.name)
            if named in _MAKERS and _MAKERS[named][0] != name:
                setattr(holder, field.name, _made(world, named))
    anew(request)
    for bound in ("start_time", "end_time"):  # Tests of ranges give their own.
        if bound in request.DESCRIPTOR.fields_by_name:
            request.ClearField(bound)
    if name in OTHERWISE:
        OTHERWISE[name][1](world, request)
    return request


def _made(world: World, named: str) -> str:
    """Make what an example names once more; return its name."""
    maker, request = _MAKERS[named]
    request = deepcopy(request)
    of_tenant(request, world.api.tenant_id)
    given = anew(request)
    world.api.call(full_name(maker), request)
    return given[named]


def _chosen(name: str, world: World, tenant: str) -> dict[str, str]:
    """Return what stands for the placeholders of an example."""
    admin: Any = world.api.admin
    if name.endswith("RevokeApiKey"):
        key = admin.CreateApiKey(admin_pb.CreateApiKeyRequest(tenant_id=tenant, name="to revoke"))
        return chosen_in("AdminService.CreateApiKey", key)
    if name.endswith("Restore"):
        backup = finished(world.api, admin_pb.BackupRequest(tenant_id=tenant))
        return {"BACKUP": PurePath(backup.path).name}
    return chosen_in("RecallService.RecallWithCertificate", world) if "Certificate" in name else {}
