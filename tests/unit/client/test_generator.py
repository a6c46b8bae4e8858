"""The generator of the clients' methods."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

import pytest
from clientgen.description import Api, Rpc, snake_case
from clientgen.options import GenerationError
from clientgen.reading import describe
from clientgen.render import write
from clientgen.signature import signature
from clientgen.telling import tell
from grpc_tools import protoc

ROOT = Path(__file__).parents[3]
HEAD = """
syntax = "proto3";
package mneme.v1;
import "buf/validate/validate.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
import "mneme/v1/options.proto";
"""
LATER_SERVICE = (
    HEAD
    + """
// Learns policies.
service RobotService {
  // Starts a robot session.
  rpc StartRobotSession(StartRequest) returns (StartResponse) {
    option idempotency_level = IDEMPOTENCY_UNKNOWN;
    option (errors) = {code: INVALID_ARGUMENT};
    option (errors) = {
      code: NOT_FOUND
      reason: ERROR_REASON_SESSION_NOT_FOUND
      when: "there is no such session"
    };
    option (required_scope) = KEY_SCOPE_LEARN;
  }
  // Acts.
  rpc Steer(stream SteerRequest) returns (stream SteerResponse) {
    option idempotency_level = IDEMPOTENCY_UNKNOWN;
    option (required_scope) = KEY_SCOPE_LEARN;
    option (long_lived) = true;
  }
  // Changes a policy.
  rpc UpdatePolicy(UpdatePolicyRequest) returns (SteerResponse) {
    option (required_scope) = KEY_SCOPE_LEARN;
    option idempotency_level = IDEMPOTENT;
  }
  // Lists policies.
  rpc ListPolicies(ListPoliciesRequest) returns (ListPoliciesResponse) {
    option idempotency_level = NO_SIDE_EFFECTS;
    option (required_scope) = KEY_SCOPE_READ;
  }
}
// A request.
message StartRequest {
  // How often. Optional.
  int32 times = 1;
  // The algorithm. Required.
  string algorithm = 2 [(buf.validate.field).string.min_len = 1];
  // More.
  google.protobuf.Struct config = 3;
}
// An answer.
message StartResponse {}
// A state.
message SteerRequest {
  // The state.
  google.protobuf.Struct state = 1;
  // The session.
  string session_id = 2;
}
// An action.
message SteerResponse {}
// A policy.
message Policy {
  // Its id.
  string id = 1;
  // Its name.
  string name = 2;
  // When it was made.
  google.protobuf.Timestamp created_at = 3;
}
// A change.
message UpdatePolicyRequest {
  // The policy.
  Policy policy = 1;
  // Which fields to change.
  google.protobuf.FieldMask update_mask = 2 [(changeable) = {paths: "name"}];
}
// A request.
message ListPoliciesRequest {
  // The page.
  string page_token = 1;
}
// A page.
message ListPoliciesResponse {
  // The policies.
  repeated Policy policies = 1;
  // The next.
  string next_page_token = 2;
}
"""
)


@cache
def _schemas() -> bytes:
    """The image of the project's schemas, which takes a second to make."""
    buf = Path(sysconfig.get_path("scripts")) / "buf"
    command = [buf, "build", "-o", "-"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout


def compiled(folder: Path, text: str) -> bytes:
    """The image of the project's schemas and one more."""
    image, later = folder / "image.binpb", folder / "later.binpb"
    image.write_bytes(_schemas())
    (folder / "mneme/v1").mkdir(parents=True)
    (folder / "mneme/v1/later.proto").write_text(text)
    arguments = [f"--descriptor_set_in={image}", f"--descriptor_set_out={later}"]
    arguments += ["--include_source_info", f"-I{folder}", "mneme/v1/later.proto"]
    assert protoc.main(["protoc", *arguments]) == 0
    return image.read_bytes() + later.read_bytes()


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Api:
    """The API with a service that is not there yet."""
    return describe(tell(compiled(tmp_path_factory.mktemp("later"), LATER_SERVICE)))


def rpc(api: Api, service: str, name: str) -> Rpc:
    found = next(s for s in api.services if s.name == service)
    return next(r for r in found.rpcs if r.descriptor.name == name)


@pytest.fixture(scope="module")
def written(later: Api, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    write(later, folder)
    return folder


def test_the_committed_methods_are_what_the_schemas_generate(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, ROOT / "scripts/generate.py", tmp_path], check=True, capture_output=True
    )
    fresh = {p.name: p.read_text() for p in (tmp_path / "mneme/_generated").glob("*.py")}
    committed = {
        p.name: p.read_text() for p in (ROOT / "clients/python/mneme/_generated").glob("*.py")
    }
    assert fresh == committed


def test_a_later_service_needs_nothing_but_the_generator(written: Path) -> None:
    text = (written / "robot.py").read_text()
    compile(text, "robot.py", "exec")
    assert "class RobotMethods(SyncCaller):" in text
    assert "class AsyncRobotMethods(AsyncCaller):" in text
    services = (written / "services.py").read_text()
    assert "robot.RobotMethods," in services
    assert "self.robot = RobotServiceStub(channel)" in services


def test_a_method_is_called_as_its_rpc_is(later: Api) -> None:
    assert rpc(later, "RobotService", "StartRobotSession").method_name == "start_robot_session"
    assert rpc(later, "EventService", "StartSession").method_name == "start_session"


def test_a_name_that_two_services_use_stops_the_generator(tmp_path: Path) -> None:
    text = LATER_SERVICE.replace("rpc StartRobotSession(", "rpc StartSession(")
    with pytest.raises(GenerationError, match="would both be `start_session`"):
        describe(compiled(tmp_path, text))


def test_a_clash_with_the_client_s_own_methods_stops_the_generator(tmp_path: Path) -> None:
    text = LATER_SERVICE.replace("rpc UpdatePolicy(", "rpc Close(")
    with pytest.raises(GenerationError, match="the client itself would both be `close`"):
        describe(compiled(tmp_path, text))


def test_a_field_that_the_client_needs_as_a_parameter_stops_the_generator(tmp_path: Path) -> None:
    text = LATER_SERVICE.replace("int32 times = 1;", "int32 timeout = 1;")
    with pytest.raises(GenerationError, match="StartRobotSession: the client needs the parameter"):
        describe(compiled(tmp_path, text))


def test_required_fields_come_first_and_by_position(written: Path) -> None:
    text = (written / "robot.py").read_text()
    head = text[text.index("def start_robot_session(") :]
    parameters = [line.strip() for line in head[: head.index("\n    ) ->")].splitlines()[1:]]
    assert parameters == [
        "self,",
        "algorithm: str,",
        "*,",
        "times: int | None = None,",
        "config: Mapping[str, Any] | None = None,",
        "timeout: float | None = None,",
    ]


def test_comments_of_the_schema_become_the_docstring(written: Path) -> None:
    text = (written / "robot.py").read_text()
    assert '"""Starts a robot session.' in text
    assert "algorithm: The algorithm. Required." in text


def test_the_options_of_the_schema_are_told_in_the_docstring(written: Path) -> None:
    text = " ".join((written / "robot.py").read_text().split())
    assert "Scope: learn. Repeatable: no." in text
    assert (
        "Errors: INVALID_ARGUMENT; NOT_FOUND (SESSION_NOT_FOUND) when there is no such session."
        in text
    )


@pytest.mark.parametrize(
    ("option", "missing"),
    [
        ("option idempotency_level = NO_SIDE_EFFECTS;", "idempotency_level"),
        ("option (required_scope) = KEY_SCOPE_READ;", "required_scope"),
    ],
)
def test_an_rpc_that_leaves_its_meaning_open_stops_the_generator(
    option: str, missing: str, tmp_path: Path
) -> None:
    assert option in LATER_SERVICE
    with pytest.raises(GenerationError, match=rf"RobotService\.ListPolicies: .*{missing}"):
        describe(compiled(tmp_path, LATER_SERVICE.replace(option, "")))


def test_streams_in_both_directions_become_iterators(written: Path) -> None:
    text = (written / "robot.py").read_text()
    assert "requests: Iterable[SteerRequestFields | later_pb2.SteerRequest]," in text
    assert "requests: AnyIterable[SteerRequestFields | later_pb2.SteerRequest]," in text
    assert ") -> Stream[SteerResponse]:" in text
    assert ") -> AsyncStream[SteerResponse]:" in text


def test_a_paged_list_also_becomes_a_walk_without_a_page_token(written: Path) -> None:
    text = (written / "robot.py").read_text()
    head = text[text.index("def iter_policies(") :]
    head = head[: head.index(":\n")]
    assert "page_token" not in head
    assert "-> Iterator[Policy]" in text


def test_an_update_takes_the_fields_that_the_mask_may_name(later: Api) -> None:
    update = rpc(later, "RobotService", "UpdatePolicy").update
    assert update is not None
    assert update.id_parameter == "policy_id"
    assert [field.name for field in update.fields] == ["name"]
    assert update.etag is None


def test_an_update_of_what_has_an_etag_takes_one(tmp_path: Path) -> None:
    etag = "message Policy {\n  // The etag.\n  string etag = 9;\n"
    text = LATER_SERVICE.replace("message Policy {\n", etag)
    head = signature(rpc(describe(compiled(tmp_path, text)), "RobotService", "UpdatePolicy"))
    assert [name for name, _ in head.arguments] == ["policy_id", "name", "clear", "etag"]
    assert head.request[-3:] == ["    clear,", "    etag,", "),"]


def test_an_update_can_empty_what_the_schema_lets_be_empty(later: Api) -> None:
    def clearable(service: str, name: str) -> str:
        head = signature(rpc(later, service, name))
        return next(one.type for one in head.keyword_only if one.name == "clear")

    assert clearable("RobotService", "UpdatePolicy") == 'Iterable[Literal["name"]]'
    of_rules = clearable("AlertService", "UpdateAlertRule")
    assert '"resolve_threshold"' in of_rules
    assert '"name"' not in of_rules


def test_an_update_whose_mask_names_no_field_stops_the_generator(tmp_path: Path) -> None:
    text = LATER_SERVICE.replace(' [(changeable) = {paths: "name"}]', "")
    with pytest.raises(GenerationError, match=r"\(mneme.v1.changeable\) of update_mask must name"):
        describe(compiled(tmp_path, text))


def test_what_the_schema_declares_idempotent_may_be_repeated(later: Api) -> None:
    assert rpc(later, "RobotService", "UpdatePolicy").repeatable
    assert rpc(later, "RobotService", "ListPolicies").repeatable
    assert not rpc(later, "RobotService", "StartRobotSession").repeatable


def test_ids_that_a_caller_may_choose_are_found_at_every_depth(later: Api) -> None:
    assert rpc(later, "EventService", "RecordEvents").made_ids == ("events.id",)
    assert rpc(later, "EventService", "StreamEvents").made_ids == ("event.id",)
    assert rpc(later, "LearnService", "CreateLesson").made_ids == ("lesson_id",)


@pytest.mark.parametrize(
    ("camel", "snake"),
    [("CreateApiKey", "create_api_key"), ("Recall", "recall"), ("GetURLPart", "get_url_part")],
)
def test_names_of_methods_are_in_snake_case(camel: str, snake: str) -> None:
    assert snake_case(camel) == snake
