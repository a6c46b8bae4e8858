"""Servicers without a server: what reaches the use case, what comes back, how errors are mapped.

gRPC's own test server calls them; the use cases behind them are the tests'.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pkgutil import iter_modules
from types import ModuleType, SimpleNamespace
from typing import Any

import grpc
import grpc_testing
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import reflect_service_pb2 as reflect_pb
from mneme_server.capabilities import NAMES, tenant_schema
from mneme_server.common import errors
from mneme_server.common.identity import ALL_SCOPES, Caller
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.interceptors.errors import map_errors
from mneme_server.edge.grpc.methods import methods_of
from mneme_server.edge.grpc.validation import check_rules
from mneme_server.features.admin.ports import ServerInfo
from mneme_server.features.learn.model import LESSON
from mneme_server.features.recall.model import RecallAnswer, RecallOutcome, RecallQuery
from mneme_server.features.recall.service import RecallServicer
from mneme_server.features.reflect.model import BucketSpan, CostAnalysisParams
from mneme_server.features.reflect.service import ReflectServicer
from structlog.testing import capture_logs
from support.examples import requests_of
from unit.edge.grpc.edge import SERVICES, all_methods

METHODS = methods_of(service for service in SERVICES.values())
# Streams are driven by the servicer's own loops, which test_streams.py tests over the wire.
UNARY = [one for one in all_methods() if not (one.client_streaming or one.server_streaming)]
TENANT = "acme"
StatusCode = grpc.StatusCode


class Failing:
    """A use case, or several, of which each fails with the same error."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise self._error

    def __getattr__(self, _: str) -> Any:
        return self


class Served:
    """A servicer behind the mapping of errors, called by a key of one tenant."""

    def __init__(self, servicer: Any, service: str) -> None:
        self._servicer = servicer
        self._service = service

    def __getattr__(self, name: str) -> Any:
        method = METHODS[f"/mneme.v1.{self._service}/{name}"]

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            call = Call(method, context)
            call.caller = Caller(TENANT, "key-1", frozenset(ALL_SCOPES), 0)
            with map_errors()(call):
                check_rules(call, request)
                return getattr(self._servicer, name)(request, call)

        return answer


def call(servicer: Any, method: MethodDescriptor, request: Message) -> tuple[Any, Any, str]:
    """The answer of a servicer to a request, its status code and its message."""
    service = method.containing_service
    server = grpc_testing.server_from_dictionary(
        {service: Served(servicer, service.name)}, grpc_testing.strict_real_time()
    )
    invoked = server.invoke_unary_unary(method, (), request, None)
    answer, _, code, message = invoked.termination()
    return answer, code, message


PARTS = (
    "PatternCalls", "UpkeepCalls", "CertificateServicer", "ForgettingCalls",
    "SessionCalls", "PolicyCalls", "ExperienceCalls", "TrustCalls",
)  # fmt: skip
"""What serves some of the calls of a service."""


def modules_of(name: str) -> list[ModuleType]:
    """The modules that serve a feature: one, or a folder of several."""
    if find_spec(name) is None:
        return []
    module = import_module(name)
    parts = iter_modules(getattr(module, "__path__", ()))
    return [module, *(import_module(f"{name}.{part.name}") for part in parts)]


def failing(method: MethodDescriptor, error: BaseException) -> Any:
    """A servicer of a method, whose use cases fail."""
    names = [f"mneme_server.features.{name}.service" for name in NAMES]
    modules = [module for name in names for module in modules_of(name)]
    # Another capability may serve some of a service's calls.
    own = f"{method.containing_service.name}r"
    classes = [found for name in (own, *PARTS) for one in modules if (found := vars(one).get(name))]
    servicer: Any = next(one for one in classes if hasattr(one, method.name))
    given = {
        "server": ServerInfo("1.2.3", "some-model", 384, 1_700_000_000_123_456),
        "kinds": tenant_schema().kinds.by_name,
    }
    return servicer(
        **{name: given.get(name, Failing(error)) for name in signature(servicer).parameters}
    )


def example(method: MethodDescriptor) -> Message:
    """The request that the reference shows."""
    return requests_of(f"{method.containing_service.name}.{method.name}")[0]


@pytest.mark.parametrize("method", UNARY, ids=lambda method: method.name)
def test_what_a_use_case_raises_is_the_status_of_every_call(method: MethodDescriptor) -> None:
    request = example(method)
    for error, code in (
        (errors.NotFound("there is none"), StatusCode.NOT_FOUND),
        (errors.Unavailable("not now", retry_after_s=1.0), StatusCode.UNAVAILABLE),
        (errors.DataLoss("it is damaged"), StatusCode.DATA_LOSS),
    ):
        said = call(failing(method, error), method, request)
        assert said == (None, code, error.message)


@pytest.mark.parametrize("service", SERVICES)
def test_a_bug_is_internal_and_says_nothing_of_itself(service: str) -> None:
    method = next(one for one in UNARY if one.containing_service.name == service)
    request = example(method)
    with capture_logs() as logs:
        _, code, message = call(failing(method, KeyError("secret of the house")), method, request)
    assert code is StatusCode.INTERNAL
    assert "secret" not in message
    assert "internal error" in [entry["event"] for entry in logs]


def test_a_query_reaches_recall_with_its_tenant_and_its_filters() -> None:
    asked: list[tuple[str, RecallQuery]] = []

    def recall(tenant_id: str, query: RecallQuery) -> RecallAnswer:
        asked.append((tenant_id, query))
        return RecallAnswer(
            (), RecallOutcome.NOTHING_MATCHES_FILTERS, searched_count=7, pending_count=2
        )

    servicer: Any = RecallServicer(SimpleNamespace(search=recall), {LESSON.name: LESSON})  # type: ignore[arg-type]
    method = recall_pb.DESCRIPTOR.services_by_name["RecallService"].methods_by_name["Recall"]
    request = recall_pb.RecallRequest(
        query="cents are missing", scopes=["lesson"], project="shop", min_score=0.5
    )
    request.start_time.FromJsonString("2026-01-01T00:00:00.5Z")
    answer, code, _ = call(servicer, method, request)
    assert code is StatusCode.OK
    ((tenant, query),) = asked
    assert (tenant, query.text, query.limit) == (TENANT, "cents are missing", 10)
    assert query.min_score == pytest.approx(0.5)
    assert query.filter.kinds == {LESSON}
    assert query.filter.project == "shop"
    assert query.filter.start_us == 1_767_225_600_500_000
    assert answer.outcome == recall_pb.RECALL_OUTCOME_NOTHING_MATCHES_FILTERS
    assert (answer.searched_count, answer.pending_count) == (7, 2)


def test_an_analysis_is_asked_for_with_its_parameters() -> None:
    asked: list[tuple[Any, ...]] = []

    def reflect(*given: Any) -> Any:
        asked.append(given)
        raise errors.InvalidArgument("enough", field="bucket")

    servicer: Any = ReflectServicer(SimpleNamespace(run=reflect))  # type: ignore[arg-type]
    method = reflect_pb.DESCRIPTOR.services_by_name["ReflectService"].methods_by_name["Reflect"]
    request = reflect_pb.ReflectRequest(
        cost_analysis=reflect_pb.CostAnalysisParams(model="m", bucket=reflect_pb.BUCKET_WEEK)
    )
    _, code, message = call(servicer, method, request)
    assert (code, message) == (StatusCode.INVALID_ARGUMENT, "enough")
    ((tenant, params, _, limit),) = asked
    assert (tenant, limit) == (TENANT, 10)
    assert params == CostAnalysisParams("m", BucketSpan.WEEK)
