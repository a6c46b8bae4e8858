"""The container in `deploy/`: what starts it fits the image, and the image fits the server."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from compose_spec import PyCompose, PyOptions
from mneme_server.settings import Settings, variable_of
from support.programs import DEPLOY
from support.server import REPOSITORY

COMPOSE_FILES = sorted(DEPLOY.glob("compose*.yaml"))
IMAGE = (DEPLOY / "Dockerfile").read_text()
GUIDE = (REPOSITORY / "docs/guides/operating.md").read_text()
# What a server takes to end after its calls: docs/guides/operating.md, "Install".
LAST_SECONDS = 10
_VARIABLE = re.compile(r"\bMNEME_[A-Z_]+(?==)")


def read(file: Path) -> PyCompose:
    options = PyOptions()
    options.apply_merge = True
    return options.from_yaml(file.read_text())


def one_node() -> dict[str, Any]:
    """Return the service of the compose file for a single node."""
    (service,) = read(DEPLOY / "compose.yaml").to_dict()["services"].values()
    return service


def arguments() -> list[str]:
    """Return the guide's line with `docker run` in words."""
    (line,) = re.findall(r"^docker run ((?:.*\\\n)*.*)$", GUIDE, re.MULTILINE)
    return shlex.split(line)


def given(option: str) -> list[str]:
    return [value for name, value in pairwise(arguments()) if name == option]


@pytest.mark.parametrize("file", COMPOSE_FILES, ids=lambda file: file.name)
def test_a_compose_file_is_one_of_the_specification_and_defines_what_it_uses(file: Path) -> None:
    project = read(file)
    project.validate()
    project.validate_volumes()


def test_two_compose_files_are_two_projects() -> None:
    assert len({read(file).name for file in COMPOSE_FILES} - {None}) == len(COMPOSE_FILES) == 2


@pytest.mark.parametrize("file", COMPOSE_FILES, ids=lambda file: file.name)
def test_a_node_in_a_container_has_the_time_that_it_takes_to_end(file: Path) -> None:
    longest = Settings.model_fields["drain_seconds"].default + LAST_SECONDS
    for service in read(file).to_dict()["services"].values():
        if service["image"] == "mneme":
            assert int(service["stop_grace_period"].removesuffix("s")) > longest
    assert int(given("--stop-timeout")[0]) > longest


def test_the_line_with_docker_run_starts_what_the_compose_file_does() -> None:
    service = one_node()
    assert given("--publish") == service["ports"]
    assert [volume.partition(":")[2] for volume in given("--volume")] == [
        volume.partition(":")[2] for volume in service["volumes"]
    ]
    assert given("--env") == list(service["environment"])
    assert given("--restart") == [service["restart"]]
    assert arguments()[-1] == service["image"]


def test_what_is_published_and_kept_is_what_the_image_offers() -> None:
    service = one_node()
    exposed = re.findall(r"^EXPOSE (.*)$", IMAGE, re.MULTILINE)[0].split()
    assert {port.rpartition(":")[2] for port in service["ports"]} < set(exposed)
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    kept = [volume.partition(":")[2] for volume in service["volumes"]]
    assert kept == re.findall(r"^VOLUME (.*)$", IMAGE, re.MULTILINE)


def test_every_setting_of_the_image_and_of_compose_files_is_one_of_the_server_s() -> None:
    known = {variable_of(name) for name in Settings.model_fields}
    assert set(_VARIABLE.findall(IMAGE)) <= known
    for file in COMPOSE_FILES:
        for service in read(file).to_dict()["services"].values():
            named = {name for name in service.get("environment", {}) if name.startswith("MNEME_")}
            assert named <= known, file.name
