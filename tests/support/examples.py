"""The examples of docs/api: the one request of each RPC that tests send, too.

They build on each other in the order of `scripts/api_examples.json`, and name what those before
them have made.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import learning_service_pb2 as learning_pb
from mneme.v1 import options_pb2
from mneme.v1 import skill_service_pb2 as skill_pb

from support.api import METHODS
from support.operations import response
from support.server import REPOSITORY

EXAMPLES: dict[str, Any] = json.loads((REPOSITORY / "scripts/api_examples.json").read_text())
"""What each RPC is sent, by its name; several messages where it takes a stream."""

NEW = {
    "CreateKnowledgeRequest": "entry_id",
    "CreateTenantRequest": "tenant_id",
    "CreateSkillRequest": "name",
    "CreatePatternRequest": "name",
    "CreateEdgeRequest": "effect",
    "ImportLessonsRequest": "lessons.id",
    "ImportEpisodesRequest": "episodes.id",
}
"""What a request makes has this to itself, beside ids that are `made_when_empty`."""
_numbers = itertools.count(1)


def full_name(name: str) -> str:
    """Return an RPC's full name: "LearnService.GetLesson" is "mneme.v1.LearnService/GetLesson"."""
    return "mneme.v1." + name.replace(".", "/")


def short_name(rpc: str) -> str:
    """Return the name by which an RPC has its example."""
    return rpc.removeprefix("mneme.v1.").replace("/", ".")


def new(prefix: str) -> str:
    """Return a name that nothing has yet."""
    return f"{prefix}-{next(_numbers)}"


def requests_of(name: str, chosen: Mapping[str, str] | None = None) -> list[Message]:
    """Return an RPC's example: what is sent, one message unless it takes a stream.

    Args:
        name: the RPC's short name.
        chosen: what stands for placeholders of values that the server chooses.
    """
    assert name in EXAMPLES, f"write an example of {name} into scripts/api_examples.json"
    text = json.dumps(EXAMPLES[name])
    for placeholder, value in (chosen or {}).items():
        text = text.replace(placeholder, value)
    return messages_of(name, json.loads(text))


def messages_of(name: str, given: Any) -> list[Message]:
    """Return what an RPC, by its short name, is sent: JSON of a message, a list of a stream's."""
    kind = GetMessageClass(METHODS[full_name(name)].input_type)
    return [ParseDict(one, kind()) for one in (given if isinstance(given, list) else [given])]


def chosen_in(name: str, answer: Any) -> dict[str, str]:
    """Return what stands for placeholders after an example was answered, by the placeholder."""
    if name == "AdminService.CreateApiKey":
        return {"API_KEY_ID": answer.api_key.id}
    if name == "OperationService.WaitOperation" and answer.operation.kind == "backup":
        return {"BACKUP": PurePath(response(answer.operation).path).name}
    if name == "RecallService.RecallWithCertificate":
        told = json.dumps(answer.certificate.json)[1:-1]  # It stands within a text.
        return {"CERTIFICATE_ID": answer.certificate.id, "CERTIFICATE_JSON": told}
    return {}


def needed() -> dict[str, Message]:
    """Return the calls to make before the examples: a tenant to delete, a skill to link and delete,
    a learning session to transfer to."""
    target = EXAMPLES["LearningService.StartLearningSession"] | {"session_id": "next-project"}
    return {
        "AdminService.CreateTenant": admin_pb.CreateTenantRequest(tenant_id="archive"),
        "SkillService.CreateSkill": skill_pb.CreateSkillRequest(
            skill_id="run-tests", name="run_tests"
        ),
        "LearningService.StartLearningSession": ParseDict(
            target, learning_pb.StartLearningSessionRequest()
        ),
    }


def anew(request: Message) -> dict[str, str]:
    """Give what a request makes ids and names that nothing has; return the new by the old ones."""
    given = {}
    for holder, field in _own_names(request):
        old = getattr(holder, field.name)
        given[old] = new(old)
        setattr(holder, field.name, given[old])
    return given


def makers() -> dict[str, tuple[str, Message]]:
    """Return the RPC and the request that make what examples name, by its id or name."""
    calls = [*needed().items(), *((name, one) for name in EXAMPLES for one in requests_of(name))]
    found: dict[str, tuple[str, Message]] = {}
    for name, request in calls:
        for holder, field in _own_names(request):
            found.setdefault(getattr(holder, field.name), (name, request))
    return found


def texts_in(message: Message) -> Iterator[tuple[Message, FieldDescriptor]]:
    """Yield the single texts that a message holds, however deep: the holder of each, its field."""
    for _, holder, field in _texts(message):
        yield holder, field


def _own_names(request: Message) -> Iterator[tuple[Message, FieldDescriptor]]:
    made: Any = options_pb2.made_when_empty
    its_own = NEW.get(request.DESCRIPTOR.name)
    for path, holder, field in _texts(request):
        if field.GetOptions().Extensions[made] or path == its_own:
            yield holder, field


def _texts(message: Message, above: str = "") -> Iterator[tuple[str, Message, FieldDescriptor]]:
    for field, value in message.ListFields():
        if field.message_type is not None:
            if field.message_type.full_name.startswith("mneme."):
                for one in value if field.is_repeated else [value]:
                    yield from _texts(one, f"{above}{field.name}.")
        elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING and not field.is_repeated:
            yield above + field.name, message, field
