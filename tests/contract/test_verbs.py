"""One way to say things: verbs of RPCs, and names of messages and methods.

ADR 50 has the rule; `OWN` lists, by what they are about, the names that begin with no verb of it.
"""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from google.protobuf.descriptor import MethodDescriptor
from mneme._generated.services import AsyncServices, SyncServices
from mneme.v1 import options_pb2
from support.api import METHODS
from support.descriptors import services
from support.server import REPOSITORY

_BEGINS = re.compile("(Create|Get|List|Update|Delete|Search|Import|Export|Watch|Record)[A-Z]")

OWN = {
    # A session is a span of time: it has a start and an end.
    "StartSession", "EndSession", "GradeSession", "StartLearningSession", "EndLearningSession",
    # Long work, and what it is while it runs.
    "Backup", "Restore", "Reindex",
    "MoveTenant", "Forget", "Discover", "WaitOperation",
    "CancelOperation",
    # What a memory does.
    "Recall", "RecallWithCertificate", "Reflect", "Sleep", "WakeUp", "OpenMemory", "ClearCache",
    "StreamEvents", "MatchPattern", "SummarizeReflections", "ArchiveLesson",
    "UnarchiveLesson", "LinkSkills",
    "UnlinkSkills", "ConsolidateSkills",
    # Keys and proofs.
    "WhoAmI", "RevokeApiKey", "RotateLogKey", "RotateWebhookSecret", "VerifyCertificate",
    "VerifyEvents",
    # Rules are tried, causes are traced, and experiments have their own stages.
    "TestAlertRule", "TryAlertRule", "TraceEffects", "AssignTreatment", "AnalyzeExperiment",
    "ConcludeExperiment",
    # Learning from rewards.
    "Predict", "Feedback", "Act", "Train", "Explain", "ShapeReward", "Transfer", "DownloadModel",
}  # fmt: skip

every_rpc = pytest.mark.parametrize("rpc", sorted(METHODS))


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def methods_of(method: MethodDescriptor) -> set[str]:
    """The client's methods for an RPC: its own name, its alias, and the walk over its pages."""
    name = snake(method.name)
    found = {name}
    if alias := cast(Any, method.GetOptions()).Extensions[options_pb2.also_called]:
        found.add(alias)
    if "page_token" in method.input_type.fields_by_name:
        found.add(f"iter_{name.removeprefix('list_')}")
    return found


EXPECTED = set().union(*map(methods_of, METHODS.values()))


@every_rpc
def test_an_rpc_begins_with_a_verb_of_the_api_or_is_a_word_of_its_domain(rpc: str) -> None:
    name = METHODS[rpc].name
    told = f"{name}: begin it with a verb of ADR 50, or list it in OWN here; never both"
    assert bool(_BEGINS.match(name)) != (name in OWN), told


def test_the_table_of_the_domain_s_own_words_names_rpcs_that_exist() -> None:
    assert not OWN - {method.name for method in METHODS.values()}


@every_rpc
def test_the_messages_of_an_rpc_are_named_for_it(rpc: str) -> None:
    method = METHODS[rpc]
    assert method.input_type.name == f"{method.name}Request"
    assert method.output_type.name == f"{method.name}Response"


def test_no_two_services_have_an_rpc_of_one_name() -> None:
    names = [method.name for method in METHODS.values()]
    assert len(set(names)) == len(names)


def test_no_message_has_the_name_of_a_service_in_it() -> None:
    files = {message.file for m in METHODS.values() for message in (m.input_type, m.output_type)}
    messages = {name for file in files for name in file.message_types_by_name}
    named = [service.name for service in services()]
    assert not [message for message in messages if any(name in message for name in named)]


@pytest.mark.parametrize("client", [SyncServices, AsyncServices])
def test_a_method_of_the_python_clients_is_called_as_its_rpc(client: type) -> None:
    generated = {name for part in client.__bases__ for name in vars(part)}
    assert {name for name in generated if not name.startswith("_")} == EXPECTED


def test_a_method_of_the_typescript_client_is_called_as_its_rpc() -> None:
    generated = (REPOSITORY / "clients/typescript/src/gen/services").glob("*.ts")
    calls = "".join(file.read_text() for file in generated)
    methods = set(re.findall(r"^    (\w+): \{", calls, re.MULTILINE))
    assert methods == set(map(camel, EXPECTED))


OWN_FILTERS = {
    "Sessions": "a list filters by status and tags, which a search of what was said does not know",
}
"""Kinds whose lists and searches take other fields, and why."""


def test_what_lists_searches_or_exports_one_kind_takes_the_same_filter() -> None:
    filters: dict[str, set[str]] = {}
    for method in METHODS.values():
        begins = re.match("(?:List|Search|Export)(?P<kind>[A-Z].*)", method.name)
        if begins is not None:
            filter_ = method.input_type.fields_by_name.get("filter")
            taken = "its own fields" if filter_ is None else filter_.message_type.name
            filters.setdefault(begins["kind"], set()).add(taken)
    assert {kind for kind, taken in filters.items() if len(taken) > 1} == set()
    searched = {
        method.name.removeprefix("Search")
        for method in METHODS.values()
        if method.name.startswith("Search")
    }
    assert {kind for kind in searched if filters[kind] == {"its own fields"}} == set(OWN_FILTERS)
