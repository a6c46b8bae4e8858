"""The description of REST, held against the server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
from apireference import EXAMPLES
from mneme_server.edge.http.routes import Route, routes_of
from rest import ADDRESS
from support.descriptors import services
from support.examples import needed
from support.http import Http
from support.operations import PATIENCE_S
from support.server import ADMIN_KEY, REPOSITORY, LocalServer

DESCRIPTION = REPOSITORY / "server/mneme_server/edge/http/openapi.json"
DOCUMENT: Mapping[str, Any] = json.loads(DESCRIPTION.read_text())
ROUTES = list(routes_of(services()))
PRIMARY = {
    f"{route.method.containing_service.name}.{route.method.name}": route
    for route in ROUTES
    if route.primary
}
_HUMP = re.compile("(?=[A-Z])")
_CALL = re.compile(r"```console\n(curl .*?)\n```", re.DOTALL)


def test_the_description_is_one_of_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1")
    checked = subprocess.run(
        [sys.executable, "-m", "openapi_spec_validator", str(DESCRIPTION)],
        # It needs a newer jsonschema-rs than the server has, where it finds any.
        env=os.environ | {"OPENAPI_SPEC_VALIDATOR_SCHEMA_VALIDATOR_BACKEND": "jsonschema"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_route_is_described() -> None:
    described = {
        (verb.upper(), re.sub(r"{[^}]*}", "{}", path))
        for path, operations in DOCUMENT["paths"].items()
        for verb in operations
    }
    routes = {(route.verb, re.sub(r"{[^}]*}", "{}", route.template)) for route in ROUTES}
    assert len(described) == sum(map(len, DOCUMENT["paths"].values()))  # No path is there twice.
    assert described == routes | {("GET", "/api/health")}


def test_every_operation_says_which_scope_it_needs_how_it_fails_and_what_tenants_see() -> None:
    for operations in DOCUMENT["paths"].values():
        for operation in operations.values():
            if operation["operationId"] != "health":
                said = r"Scope: `\w+(?: and \w+)*`\.\n\nTenants: .*"
                assert re.search(said, operation["description"]), operation["operationId"]


def test_the_server_shows_the_description_and_a_page_to_read_it(server: LocalServer) -> None:
    http = Http(server.http_address)
    assert http.get("/api/openapi.json") == DOCUMENT
    page = http.ask("GET", "/api/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    # It works offline: nothing in it is of elsewhere.
    assert "//" not in re.sub(r"127\.0\.0\.1", "", page.text).replace("</", "")


def test_what_the_server_refuses_to_miss_is_said_to_be_required(server: LocalServer) -> None:
    http = Http(server.http_address, ADMIN_KEY)
    schemas = DOCUMENT["components"]["schemas"]
    tenants = DOCUMENT["paths"]["/api/tenants"]["post"]["requestBody"]
    for path, request, schema in (
        ("/api/events", {"events": [{}]}, schemas["NewEventInput"]),
        ("/api/tenants", {}, tenants["content"]["application/json"]["schema"]),
    ):
        details = http.error("POST", path, request).said["details"]
        missing = {
            violation["field"].rpartition(".")[2]
            for detail in details
            for violation in detail.get("fieldViolations", ())
            if violation["reason"] == "MISSING_REQUIRED_FIELD"
        }
        assert missing
        assert missing <= {_HUMP.sub("_", name).lower() for name in schema.get("required", ())}


def schema_of(route: Route) -> Any:
    """The schema of an answer, or of a line of it."""
    path = re.sub(r"{[^}]*}", "{}", route.template)
    (operation,) = (
        operations[route.verb.lower()]
        for template, operations in DOCUMENT["paths"].items()
        if re.sub(r"{[^}]*}", "{}", template) == path
    )
    content = next(iter(operation["responses"]["200"]["content"].values()))
    return {
        "components": DOCUMENT["components"],
        "allOf": [content.get("x-line", content["schema"])],
    }


def commands() -> dict[str, str]:
    """The commands of the reference, by RPC."""
    pages = "".join(page.read_text() for page in sorted((REPOSITORY / "docs/api").glob("*.md")))
    sections = re.split(r"^### (\w+\.\w+)$", pages, flags=re.MULTILINE)
    return {
        name: found[1]
        for name, section in zip(sections[1::2], sections[2::2], strict=True)
        if (found := _CALL.search(section)) is not None
    }


def answered(command: str, address: str) -> list[Any]:
    """Run a command until it is answered; return the lines of the answer, of events the first."""
    call = command.replace(ADDRESS, address)
    key = f"-H 'authorization: Bearer {ADMIN_KEY}'"
    call = call.replace("curl ", f"exec curl -sS --fail-with-body {key} ", 1)
    until = time.monotonic() + PATIENCE_S
    while True:
        with subprocess.Popen(["bash", "-c", call], stdout=subprocess.PIPE, text=True) as ran:
            assert ran.stdout is not None
            if "-N " in call:
                data = next(line for line in ran.stdout if line.startswith("data: "))
                ran.terminate()
                return [json.loads(data.removeprefix("data: "))]
            said = ran.stdout.read()
        # A tenant that is being restored is there again in a moment, as the answer says.
        if ran.returncode and '"UNAVAILABLE"' in said and time.monotonic() < until:
            continue
        assert ran.returncode == 0, f"{call}\n{said}"
        return [json.loads(line) for line in said.splitlines()]


def test_every_call_of_the_reference_is_answered_as_described(own: LocalServer) -> None:
    calls = commands()
    assert set(calls) == set(EXAMPLES)
    for name, request in needed().items():
        own.keys.admin.call("mneme.v1." + name.replace(".", "/"), request)
    chosen: dict[str, str] = {}
    for name in EXAMPLES:
        command = calls[name]
        for placeholder, value in chosen.items():
            command = command.replace(placeholder, value)
        answers = answered(command, own.http_address)
        assert answers, name
        validator = jsonschema_rs.Draft202012Validator(schema_of(PRIMARY[name]))
        for answer in answers:
            wrong = [
                f"{error.instance_path}: {error.message}" for error in validator.iter_errors(answer)
            ]
            assert not wrong, f"{name}: {wrong[:3]}"
        (said, *_) = answers
        if name == "AdminService.CreateApiKey":
            chosen["API_KEY_ID"] = said["apiKey"]["id"]
        elif name == "AdminService.Backup":
            while not said.get("done"):
                waited = f"curl -sS {own.http_address}/api/operations/{said['id']}"
                (said,) = answered(waited, own.http_address)
            chosen["BACKUP"] = Path(said["response"]["path"]).name
        elif name == "RecallService.RecallWithCertificate":
            chosen["CERTIFICATE_ID"] = said["certificate"]["id"]
            chosen["CERTIFICATE_JSON"] = json.dumps(said["certificate"]["json"])[1:-1]
