"""A tenant that has something of every kind, to be called in every way: what the examples make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message
from mneme.v1 import alert_service_pb2 as alert_pb
from mneme.v1 import auth_pb2, learning_pb2, options_pb2
from mneme.v1 import certificate_pb2 as certificate_pb
from mneme.v1 import experiment_pb2 as experiment_pb
from mneme.v1 import learning_service_pb2 as learning_pb
from mneme.v1 import pattern_pb2 as pattern_pb

from support.api import METHODS, Api, grpc
from support.contexts import eventually
from support.examples import EXAMPLES, anew, full_name, needed, requests_of, texts_in
from support.making import event, record, struct
from support.server import Keys

TAKES_AWAY = ("Conclude", "Delete", "End", "Revoke", "Unlink")
"""How RPCs begin after which what they name is gone, or goes on no more."""
_OF_ADMINS = ("AdminService.CreateTenant", "AdminService.Backup")
"""What is made by those who administer: the rest of what they do is in the way of other calls."""
_TENANTS = ("planning", "archive")
"""The tenants that examples name."""


@dataclass(frozen=True)
class World:
    """A tenant with something in it, called with a key that may do everything."""

    api: Api
    keys: Keys
    certificate: certificate_pb.Certificate


def world_of(keys: Keys) -> World:
    """Make one, with three of everything, so that what is listed has pages.

    The first of them have the ids that the examples name.
    """
    tenant = keys.tenant("input")
    api = keys.key(tenant.tenant_id, *(s for s in auth_pb2.KeyScope.values() if s))
    for number in range(3):
        for name, request in needed().items():
            _make(api, name, [request], again=number > 0)
        for name in EXAMPLES:
            if makes(name):
                _make(api, name, requests_of(name), again=number > 0)
        record(api, event("some words", "words", agent_id=f"agent-{number}"))
        api.alert.CreateAlertRule(alert_rule(f"rule-{number}"))
    asked = certificate_pb.RecallWithCertificateRequest(query="words")
    certificate = api.recall.RecallWithCertificate(asked).certificate
    record(api, event("more words", "words"))  # Whatever is recorded triggers the rules.
    history = alert_pb.ListAlertHistoryRequest()
    eventually(lambda: api.alert.ListAlertHistory(history), lambda seen: len(seen.entries) == 3)
    return World(api, keys, certificate)


def makes(name: str) -> bool:
    """Whether there is more of something after an RPC, or something is told."""
    options = METHODS[full_name(name)].GetOptions()
    scope: Any = options_pb2.required_scope
    if options.Extensions[scope] not in (auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_LEARN):
        return name in _OF_ADMINS
    return options.idempotency_level != MethodOptions.NO_SIDE_EFFECTS and not takes_away(name)


def takes_away(name: str) -> bool:
    """Whether what an RPC names is gone after it, or goes on no more."""
    return name.rpartition(".")[2].startswith(TAKES_AWAY)


def of_tenant(request: Message, tenant_id: str) -> None:
    """Let a request be of a tenant, where it names one of the examples'."""
    for holder, field in texts_in(request):
        if field.name == "tenant_id" and getattr(holder, field.name) in _TENANTS:
            setattr(holder, field.name, tenant_id)


def _make(api: Api, name: str, requests: Sequence[Message], *, again: bool) -> None:
    for request in requests:
        if again or name == "AdminService.CreateTenant":
            anew(request)
        of_tenant(request, api.tenant_id)
    try:
        api.call(full_name(name), requests)
    except grpc.RpcError as error:
        error.add_note(
            f"{name}: if it makes what has a name of its own, say so in `_NEW` of examples.py"
        )
        raise


def pattern(name: str) -> pattern_pb.CreatePatternRequest:
    """A pattern that the memories match."""
    return pattern_pb.CreatePatternRequest(
        name=name, regex=pattern_pb.RegexPattern(expression=r"content \d")
    )


def experiment(experiment_id: str) -> experiment_pb.CreateExperimentRequest:
    """An experiment on anything."""
    return experiment_pb.CreateExperimentRequest(
        experiment_id=experiment_id, name="name", cause="cause", effect="effect"
    )


def alert_rule(rule_id: str) -> alert_pb.CreateAlertRuleRequest:
    """A rule that any event triggers."""
    return alert_pb.CreateAlertRuleRequest(
        rule_id=rule_id, name="name", condition=alert_pb.ALERT_CONDITION_EVENT_COUNT_EXCEEDS
    )


def learning(session_id: str) -> learning_pb.StartLearningSessionRequest:
    """A learning session."""
    return learning_pb.StartLearningSessionRequest(session_id=session_id, algorithm="linucb")


def seen() -> learning_pb2.State:
    """A state that its sessions take."""
    return learning_pb2.State(json=struct(size=1))
