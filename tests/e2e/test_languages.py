"""The guide to other languages: its commands generate code, which calls a server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from support.server import ServerProcess, server_process

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/guides/languages.md"
JAVA_LIBRARY = Path("/usr/share/java/grpc-netty.jar")

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INSTALLS = "sudo apt-get install"
_DOCUMENTED_ADDRESS = "127.0.0.1:50051"

pytestmark = pytest.mark.slow


@cache
def sections() -> dict[str, str]:
    """The guide's parts by their headings; what comes first has none."""
    first, *rest = GUIDE.read_text().split("\n## ")
    return {"": first} | dict(part.split("\n", 1) for part in rest)


def skip_without(language: str, *commands: str) -> None:
    missing = [command for command in commands if not shutil.which(command)]
    if missing:
        pytest.skip(f"{language} is not installed: {', '.join(missing)} is missing")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with server_process(tmp_path_factory.mktemp("languages") / "data", auth="disabled") as server:
        yield server


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder in which `make dist` has written the schemas, and somebody has unpacked them."""
    subprocess.run([sys.executable, ROOT / "scripts/protos.py", tmp_path / "dist"], check=True)
    follow(tmp_path, "")
    return tmp_path


def follow(workplace: Path, heading: str, address: str = "") -> str:
    """Do what a section says, but for installing; what its commands print."""
    section = sections()[heading].replace(_DOCUMENTED_ADDRESS, address or _DOCUMENTED_ADDRESS)
    for name, content in _FILE.findall(section):
        (workplace / name).write_text(content)
    commands = [block for block in _BLOCK.findall(section) if not block.startswith(_INSTALLS)]
    assert commands
    environment = {k: v for k, v in os.environ.items() if k != "MNEME_API_KEY"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
        cwd=workplace, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_ruby_records_an_event_and_recalls_it(workplace: Path, server: ServerProcess) -> None:
    skip_without("Ruby", "ruby", "protoc", "grpc_ruby_plugin")
    said = follow(workplace, "Ruby", server.address)
    assert said.startswith("event: ")
    assert "the registry certificate expired" in said


def test_java_records_an_event_and_recalls_it(workplace: Path, server: ServerProcess) -> None:
    skip_without("Java", "javac", "protoc", "grpc_java_plugin")
    if not JAVA_LIBRARY.exists():
        pytest.skip(f"Java's gRPC is not installed: {JAVA_LIBRARY} is missing")
    said = follow(workplace, "Java", server.address)
    assert said.startswith("event: ")
    assert "the signing key is missing" in said


def test_go_c_sharp_and_cpp_code_is_generated(workplace: Path) -> None:
    skip_without("Go", "protoc", "protoc-gen-go", "protoc-gen-go-grpc", "grpc_cpp_plugin")
    follow(workplace, "Go, C# and C++")
    assert "package mnemev1" in (workplace / "go/mnemev1/auth.pb.go").read_text()
    assert "RecallServiceClient" in (workplace / "go/mnemev1/recall_service_grpc.pb.go").read_text()
    assert "namespace Mneme.V1 {" in (workplace / "csharp/RecallService.cs").read_text()
    assert (workplace / "cpp/mneme/v1/recall_service.grpc.pb.h").exists()
