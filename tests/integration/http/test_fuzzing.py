"""Requests that schemathesis makes of the description, and around it: none is a bug to the server.

The suite tries the same few of each operation every time; MNEME_TEST_FUZZ=100 tries more.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from support.server import ADMIN_KEY, REPOSITORY, LocalServer

EXAMPLES = os.environ.get("MNEME_TEST_FUZZ", "2")
CHECKS = "not_a_server_error,response_schema_conformance"
KEY = f"Bearer {ADMIN_KEY}"
LEFT_OUT = (
    "GET /api/stream",  # It has no end.
    "GET /api/health",  # It has no parameters.
    "DELETE /api/keys/{apiKeyId}",  # It would revoke the key that all others are asked with.
)
HELP = REPOSITORY / "tests/support/http_fuzzing"
# An environment of its own: it needs another version of a library than the server does.
SCHEMATHESIS = Path(sys.prefix) / "schemathesis/bin/schemathesis"


def test_no_request_is_a_bug_to_the_server(own: LocalServer, tmp_path: Path) -> None:
    if not SCHEMATHESIS.exists():
        pytest.fail(f"{SCHEMATHESIS} is missing: make setup installs it")
    command: list[object] = [
        SCHEMATHESIS, "--config-file", HELP / "schemathesis.toml",
        "run", REPOSITORY / "server/mneme_server/edge/http/openapi.json", "--url", own.http_address,
        "--header", f"authorization: {KEY}", "--header", "grpc-timeout: 20S",
        "--phases", "examples,fuzzing", "--checks", CHECKS, "--max-examples", EXAMPLES,
        "--seed", "1", "--workers", "1", "--request-timeout", "60", "--no-color",
    ]  # fmt: skip
    for operation in LEFT_OUT:
        command += ["--exclude-name", operation]
    hooks = {"SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HELP)}
    ran = subprocess.run(
        list(map(str, command)), env=os.environ | hooks, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    asked = httpx2.get(f"{own.http_address}/api/agents", headers={"authorization": KEY})
    assert ran.returncode == 0, f"{ran.stdout[-8_000:]}{ran.stderr[-2_000:]}"
    assert asked.status_code == 200, "the key is gone: what came after it was only refused"
