"""The API as its descriptors state it: names, documentation, scopes, reasons."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, cast

import pytest
from buf.validate import validate_pb2
from clientgen.telling import tell
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import EnumValueDescriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct
from google.rpc import code_pb2
from grpc_tools import protoc
from mneme.v1 import auth_pb2, errors_pb2, options_pb2
from mneme_server.common.errors import Reason
from support.api import METHODS, Api, grpc, refused
from support.descriptors import narrows, not_blank
from support.server import REPOSITORY, LocalServer

_made_when_empty: Any = options_pb2.made_when_empty
REASONS = {value.name for value in errors_pb2.ErrorReason.DESCRIPTOR.values}
SCOPES = [number for number in auth_pb2.KeyScope.values() if number]
every_rpc = pytest.mark.parametrize("rpc", sorted(METHODS))


def scope_of(rpc: str) -> int:
    return int(METHODS[rpc].GetOptions().Extensions[options_pb2.required_scope])


def takes_any_key(rpc: str) -> bool:
    return bool(METHODS[rpc].GetOptions().Extensions[options_pb2.any_scope])


@every_rpc
def test_every_rpc_names_the_scope_that_it_needs_or_takes_any_key(rpc: str) -> None:
    assert (scope_of(rpc) in SCOPES) != takes_any_key(rpc)


@pytest.fixture(scope="module")
def keys(server: LocalServer) -> dict[int, Api]:
    """Return a key of one tenant for each scope, which has all scopes but that one."""
    tenant = server.keys.tenant("scopes")
    return {
        missing: server.keys.key(tenant.tenant_id, *(s for s in SCOPES if s != missing))
        for missing in SCOPES
    }


@every_rpc
def test_a_key_without_the_scope_is_refused_before_the_request_is_read(
    rpc: str, keys: dict[int, Api]
) -> None:
    if takes_any_key(rpc):
        return  # Which, test_authentication says.
    needed = scope_of(rpc)
    with refused() as failure:
        keys[needed].call(rpc, b"\xff these bytes are no request")
    name = auth_pb2.KeyScope.Name(needed).removeprefix("KEY_SCOPE_").lower()
    assert (failure.code, failure.reason) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")
    assert failure.metadata["required_scope"] == name
    assert name in failure.message


@every_rpc
def test_a_call_without_a_key_is_refused_before_the_request_is_read(
    rpc: str, server: LocalServer
) -> None:
    with refused() as failure:
        server.keys.api(None).call(rpc, b"\xff these bytes are no request")
    assert (failure.code, failure.reason) == (grpc.StatusCode.UNAUTHENTICATED, "API_KEY_MISSING")


def test_streams_that_the_server_keeps_open_are_marked_as_long_lived() -> None:
    marked = {
        rpc for rpc, m in METHODS.items() if m.GetOptions().Extensions[options_pb2.long_lived]
    }
    # What the caller sends ends some of them, what there is to export or to do the others.
    finite = {
        "mneme.v1.LearningService/Act",
        "mneme.v1.LearningService/DownloadModel",
        "mneme.v1.LearningService/Train",
        "mneme.v1.LearningService/RecordTrajectories",
        "mneme.v1.LearningService/ImportExperience",
        "mneme.v1.EventService/StreamEvents",
        "mneme.v1.MemoryService/CreateMemories",
        "mneme.v1.LearnService/ExportLessons",
        "mneme.v1.SkillService/ExportEpisodes",
    }
    assert marked | finite == {rpc for rpc, method in METHODS.items() if method.server_streaming}
    assert not marked & finite


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[descriptor_pb2.FileDescriptorProto]:
    """Return the API's files with comments, as generated code and the reference tell them."""
    target = tmp_path_factory.mktemp("protos") / "image"
    folder = REPOSITORY / "proto"
    sources = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.proto"))
    well_known = Path(protoc.__file__).parent / "_proto"
    arguments = [
        "protoc", f"-I{folder}", f"-I{REPOSITORY / 'third_party' / 'proto'}", f"-I{well_known}",
        "--include_source_info", "--include_imports", f"--descriptor_set_out={target}", *sources,
    ]  # fmt: skip
    assert protoc.main(arguments) == 0
    told = descriptor_pb2.FileDescriptorSet.FromString(tell(target.read_bytes()))
    return [file for file in told.file if file.package == "mneme.v1"]


def _documented(file: descriptor_pb2.FileDescriptorProto) -> dict[tuple[int, ...], str]:
    return {
        tuple(place.path): place.leading_comments.strip()
        for place in file.source_code_info.location
        if place.leading_comments.strip()
    }


def _elements(file: descriptor_pb2.FileDescriptorProto) -> dict[str, tuple[int, ...]]:
    """Return the place of every message, field, enum, value, service and RPC by its name."""
    found: dict[str, tuple[int, ...]] = {}
    for i, message in enumerate(file.message_type):
        found[message.name] = (4, i)
        found |= {f"{message.name}.{f.name}": (4, i, 2, j) for j, f in enumerate(message.field)}
    for i, enum in enumerate(file.enum_type):
        found[enum.name] = (5, i)
        found |= {f"{enum.name}.{v.name}": (5, i, 2, j) for j, v in enumerate(enum.value)}
    for i, service in enumerate(file.service):
        found[service.name] = (6, i)
        found |= {f"{service.name}/{m.name}": (6, i, 2, j) for j, m in enumerate(service.method)}
    return found


def test_everything_in_the_api_is_documented(
    files: list[descriptor_pb2.FileDescriptorProto],
) -> None:
    missing = [
        f"{file.name}: {name}"
        for file in files
        for name, place in _elements(file).items()
        if place not in _documented(file)
    ]
    assert not missing


def _upper_limit(options: Any) -> float | None:
    """Return the largest number, or number of seconds, that a field's rules allow."""
    rules = options.Extensions[validate_pb2.field]
    kind = rules.WhichOneof("type")
    if kind not in ("int32", "int64", "double", "duration"):
        return None
    bounds = getattr(rules, kind)
    name = bounds.WhichOneof("less_than")
    if name is None:
        return None
    limit = getattr(bounds, name)
    return float(limit.seconds if kind == "duration" else limit)


def test_every_upper_limit_of_a_number_is_told(
    files: list[descriptor_pb2.FileDescriptorProto],
) -> None:
    untold, checked = [], 0
    for file in files:
        places, comments = _elements(file), _documented(file)
        for message in file.message_type:
            for field in message.field:
                limit = _upper_limit(field.options)
                if limit is None:
                    continue
                checked += 1
                name = f"{message.name}.{field.name}"
                told = {f"{limit:,.0f}", f"{limit:g}", f"10^{math.log10(limit):.0f}"}
                if limit == 2**53 - 1:
                    told.add("2^53 - 1")
                if not any(form in comments[places[name]] for form in told):
                    untold.append((name, limit))
    assert checked
    assert not untold


@every_rpc
def test_every_rpc_has_decided_whether_its_request_may_be_sent_twice(rpc: str) -> None:
    assert METHODS[rpc].GetOptions().HasField("idempotency_level")


@every_rpc
def test_reading_is_repeatable_and_writing_has_side_effects(rpc: str) -> None:
    options = METHODS[rpc].GetOptions()
    level = descriptor_pb2.MethodOptions.NO_SIDE_EFFECTS
    if scope_of(rpc) == auth_pb2.KEY_SCOPE_WRITE:
        assert options.idempotency_level != level
    if METHODS[rpc].name.startswith(("Get", "List", "Search")):
        assert options.idempotency_level != descriptor_pb2.MethodOptions.IDEMPOTENCY_UNKNOWN


@every_rpc
def test_every_rpc_says_how_it_fails(rpc: str) -> None:
    errors = METHODS[rpc].GetOptions().Extensions[options_pb2.errors]
    assert errors
    assert len({(error.code, error.reason, error.when) for error in errors}) == len(errors)
    for error in errors:
        assert error.code not in (code_pb2.OK, code_pb2.UNKNOWN)
        assert not error.when.startswith("when ")
        assert not error.when.endswith(".")


def test_every_reason_names_the_statuses_that_it_comes_with() -> None:
    for value in errors_pb2.ErrorReason.DESCRIPTOR.values[1:]:
        codes = _codes_of(value)
        assert codes, value.name
        assert code_pb2.OK not in codes


def test_rpcs_fail_with_the_statuses_that_their_reasons_come_with() -> None:
    reasons = errors_pb2.ErrorReason.DESCRIPTOR.values_by_number
    for method in METHODS.values():
        for error in method.GetOptions().Extensions[options_pb2.errors]:
            if error.reason:
                reason = reasons[error.reason]
                assert error.code in _codes_of(reason), (method.full_name, reason.name)


def _codes_of(reason: EnumValueDescriptor) -> list[int]:
    return list(reason.GetOptions().Extensions[cast(Any, errors_pb2.codes)])


ONE_LINE = r"^[^\x00-\x1f\x7f]*$"
TENANT = r"^[a-z0-9][a-z0-9_-]{0,62}$"
TENANT_OR_NONE = r"^([a-z0-9][a-z0-9_-]{0,62})?$"


def _given_fields() -> dict[str, FieldDescriptor]:
    """Every field that a request can hold, by full name."""
    found: dict[str, FieldDescriptor] = {}
    waiting = [method.input_type for method in METHODS.values()]
    while waiting:
        for field in waiting.pop().fields:
            if field.full_name not in found and field.full_name.startswith("mneme.v1."):
                found[field.full_name] = field
                waiting += [field.message_type] if field.message_type is not None else []
    return found


GIVEN = _given_fields()
IDS = sorted(name for name in GIVEN if re.search(r"(\.|_)ids?$", name))
TOKENS = sorted(name for name in GIVEN if name.endswith(".page_token"))


def _holds_json(field: FieldDescriptor) -> bool:
    return (
        field.message_type is not None
        and field.message_type.full_name == Struct.DESCRIPTOR.full_name
    )


def _rules(field: FieldDescriptor) -> validate_pb2.FieldRules:
    rules: validate_pb2.FieldRules = field.GetOptions().Extensions[cast(Any, validate_pb2.field)]
    return rules


@pytest.mark.parametrize("name", IDS)
def test_every_id_follows_the_one_rule(name: str) -> None:
    field = GIVEN[name]
    assert field.type == field.TYPE_STRING
    rules = _rules(field)
    text = rules.repeated.items.string if field.is_repeated else rules.string
    if field.name == "prediction_id":  # It holds what was predicted, sealed.
        assert text.pattern == "^[A-Za-z0-9_-]*$"
        return
    if field.name == "tenant_id":
        assert text.pattern in (TENANT, TENANT_OR_NONE)
        return
    expected = validate_pb2.StringRules(max_len=200, pattern=ONE_LINE)
    if name == "mneme.v1.CreateAlertRuleRequest.rule_id":  # With `alerts-` it is a session's id.
        expected.max_len -= len("alerts-")
    if text.min_len or field.is_repeated:
        expected.min_len = 1
    assert text == expected


WHOSE = ("user_id", "project", "agent_id", "session_id")
_READS = {
    method.input_type.full_name
    for method in METHODS.values()
    if method.GetOptions().idempotency_level == descriptor_pb2.MethodOptions.NO_SIDE_EFFECTS
}


def _narrows_an_answer(field: FieldDescriptor) -> bool:
    """Whether a field that is named like an owner picks things: it need not be given, in what is
    only read or in what picks things for other calls."""
    owner = field.containing_type
    assert owner is not None
    if field.name not in WHOSE or _rules(field).string.min_len:
        return False
    return owner.full_name in _READS or owner.name.endswith(("Filter", "Selection"))


FILTERS = sorted(n for n, f in GIVEN.items() if narrows(f) or _narrows_an_answer(f))


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_by_whose_or_of_what_can_be_told_from_none(name: str) -> None:
    assert narrows(GIVEN[name]), "give it the option (mneme.v1.narrows): blank is refused"
    assert GIVEN[name].has_presence, "unset and empty would be the same bytes"


_ANY_TEXT = "^[^\\x00]*$"
_MAY_BE_BLANK = {
    "mneme.v1.Action.label",  # A key that is pressed may be the space bar.
    "mneme.v1.DiscreteSpace.labels",
    "mneme.v1.NamedSpace.key",
    "mneme.v1.SleepRequest.files",
    "mneme.v1.State.label",
    "mneme.v1.VerifyCertificateRequest.json",
}


def _has_to_say_something(field: FieldDescriptor) -> bool:
    rules = _rules(field).repeated.items if field.is_repeated else _rules(field)
    return bool(rules.string.min_len) and rules.string.pattern == _ANY_TEXT


@pytest.mark.parametrize("name", sorted(n for n, f in GIVEN.items() if _has_to_say_something(f)))
def test_a_text_that_must_be_given_must_say_something(name: str) -> None:
    """That a blank one is refused, test_bad_input tries of all that say so."""
    assert not_blank(GIVEN[name]) != (name in _MAY_BE_BLANK)


@pytest.mark.parametrize("name", TOKENS)
def test_every_page_token_follows_the_one_rule(name: str) -> None:
    request = GIVEN[name].containing_type
    assert _rules(GIVEN[name]).string == validate_pb2.StringRules(max_len=2000)
    assert request.fields_by_name["page_size"].type == FieldDescriptor.TYPE_INT32
    (rpc,) = (rpc for rpc, method in METHODS.items() if method.input_type is request)
    reasons = [e.reason for e in METHODS[rpc].GetOptions().Extensions[options_pb2.errors]]
    assert errors_pb2.ERROR_REASON_INVALID_FILTER in reasons
    answer = METHODS[rpc].output_type.fields_by_name
    assert answer["next_page_token"].type == FieldDescriptor.TYPE_STRING


def test_there_are_ids_and_page_tokens_to_look_at() -> None:
    assert len(IDS) > 30
    assert len(TOKENS) == sum("page_token" in m.input_type.fields_by_name for m in METHODS.values())
    assert TOKENS


@pytest.mark.parametrize(
    "name", [name for name in IDS if GIVEN[name].GetOptions().Extensions[_made_when_empty]]
)
def test_an_id_that_is_made_when_it_is_empty_may_be_empty(name: str) -> None:
    assert not _rules(GIVEN[name]).string.min_len


FREE_JSON = sorted(name for name, field in GIVEN.items() if _holds_json(field))


@pytest.mark.parametrize("name", FREE_JSON)
def test_free_json_says_how_large_it_may_be(name: str) -> None:
    limits = GIVEN[name].GetOptions().Extensions[cast(Any, options_pb2.json_limits)]
    assert 0 < limits.max_bytes <= 2**20
    assert limits.max_depth == 32


NAMES: dict[str, dict[str, str]] = {
    "EventService": {
        "StartSession": "session_id agent_id agent_name user_id project tags metadata",
        "EndSession": "session_id status",
        "RecordEvents": "events wait_indexed",
        "StreamEvents": "event",
        "GetSession": "session_id",
        "ListSessions": "page_size page_token",
        "ListEvents": "page_size page_token",
        "ListAgents": "page_size page_token",
        "WatchEvents": "",
        "VerifyEvents": "session_id",
    },
    "RecallService": {
        "Recall": "query scopes agent_id session_id user_id project start_time end_time tags limit"
        " min_score mode explain",
    },
    "LearnService": {
        "CreateLesson": "title content category importance agent_id context source_session_id"
        " source_event_id",
        "GetLesson": "lesson_id", "ListLessons": "page_size page_token", "SearchLessons": "query",
        "UpdateLesson": "lesson update_mask", "ArchiveLesson": "lesson_id etag",
        "UnarchiveLesson": "lesson_id etag", "DeleteLesson": "lesson_id etag",
        "ImportLessons": "lessons", "ExportLessons": "",
    },
    "AdminService": {
        "CreateTenant": "tenant_id", "ListTenants": "page_size page_token",
        "DeleteTenant": "tenant_id", "CreateApiKey": "tenant_id name scopes rate_limit",
        "ListApiKeys": "page_size page_token", "RevokeApiKey": "api_key_id", "GetStats": "",
        "Backup": "",
    },
}  # fmt: skip
"""Names that scripts rely on: they stay as they are."""

FIELDS = {
    "NewEvent": "id session_id agent_id event_type severity timestamp text payload metadata",
    "RecallResult": "source_type source_id score similarity text timestamp session_id metadata",
    "RecallResponse": "results total_results",
}


@pytest.mark.parametrize("service", sorted(NAMES))
def test_the_names_that_scripts_rely_on_are_there(service: str) -> None:
    for method, fields in NAMES[service].items():
        descriptor = METHODS[f"mneme.v1.{service}/{method}"]
        assert set(fields.split()) <= set(descriptor.input_type.fields_by_name), method
        assert descriptor.input_type.name == f"{method}Request"
        assert descriptor.output_type.name == f"{method}Response"


@pytest.mark.parametrize("message", sorted(FIELDS))
def test_the_fields_that_scripts_rely_on_are_there(message: str) -> None:
    (found,) = {
        file.message_types_by_name[message].full_name: file.message_types_by_name[message]
        for method in METHODS.values()
        if message in (file := method.input_type.file).message_types_by_name
    }.values()
    assert set(FIELDS[message].split()) <= set(found.fields_by_name)


WHOLE_LISTS = {
    "ListAlgorithms": "they are the server's, and few",
    "ListLogKeys": "whoever checks what they signed needs all of them",
}
"""Lists without pages, and why."""


@every_rpc
def test_lists_are_paged_and_no_message_serves_two_rpcs(rpc: str) -> None:
    method = METHODS[rpc]
    if method.name.startswith("List") and method.name not in WHOLE_LISTS:
        assert {"page_size", "page_token"} <= set(method.input_type.fields_by_name)
        assert "next_page_token" in method.output_type.fields_by_name
    users = [m for m in METHODS.values() if m.input_type is method.input_type]
    assert len(users) == 1
    assert GetMessageClass(method.input_type) is not GetMessageClass(method.output_type)


EXPECTED_REASONS = (
    "INVALID_PARAMETER", "MISSING_REQUIRED_FIELD", "INVALID_TYPE", "OUT_OF_RANGE",
    "INVALID_FILTER", "DATABASE_ERROR", "SCHEMA_ERROR", "CONSTRAINT_VIOLATION",
    "TRANSACTION_FAILED", "EMBEDDING_FAILED", "MODEL_NOT_LOADED", "DIMENSION_MISMATCH",
    "SESSION_NOT_FOUND", "ALGORITHM_NOT_SUPPORTED", "MODEL_NOT_TRAINED", "CONVERGENCE_FAILED",
    "NOT_FOUND", "ALREADY_EXISTS", "QUOTA_EXCEEDED", "INITIALIZATION_FAILED", "INTERNAL_ERROR",
)  # fmt: skip


@pytest.mark.parametrize("reason", EXPECTED_REASONS)
def test_the_reasons_that_callers_know_from_elsewhere_exist(reason: str) -> None:
    assert f"ERROR_REASON_{reason}" in REASONS


def test_every_reason_of_the_server_is_one_of_the_apis() -> None:
    known = {name.removeprefix("ERROR_REASON_") for name in REASONS}
    assert {reason.name for reason in Reason} <= known


def _numbers(enum: Any) -> dict[str, int]:
    return {value.name: value.number for value in enum.values}


def test_every_enum_begins_with_unspecified_and_carries_its_name() -> None:
    enums = {
        field.enum_type.full_name: field.enum_type
        for method in METHODS.values()
        for message in (method.input_type, method.output_type)
        for field in message.fields
        if field.enum_type is not None
    }
    assert enums
    for enum in enums.values():
        first, *_ = enum.values
        assert first.number == 0
        assert first.name.endswith("_UNSPECIFIED")
        prefix = first.name.removesuffix("UNSPECIFIED")
        assert all(name.startswith(prefix) for name in _numbers(enum))
