"""Requests that schemathesis makes of the description, and around it: none is a bug to the server.

The suite tries the same few of each operation every time; MNEME_TEST_FUZZ=100 tries more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.server import ADMIN_KEY, REPOSITORY, LocalServer

EXAMPLES = os.environ.get("MNEME_TEST_FUZZ", "2")
CHECKS = "not_a_server_error,response_schema_conformance"
KEY = f"Bearer {ADMIN_KEY}"
_LONG = 1_000
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
    document = json.loads((REPOSITORY / "server/mneme_server/edge/http/openapi.json").read_text())
    (tmp_path / "openapi.json").write_text(json.dumps(_without_long_patterns(document)))
    command: list[object] = [
        SCHEMATHESIS, "--config-file", HELP / "schemathesis.toml",
        "run", tmp_path / "openapi.json", "--url", own.http_address,
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


def _without_long_patterns(schema: Any) -> Any:
    """Return a description without the lengths of long texts that have a pattern as well.

    The two would be made one, `^[^\\x00]{0,65536}$`, each of which takes seconds to compile, three
    quarters of all. Texts that are too long are tried field by field in tests of the contract.
    """
    if isinstance(schema, list):
        return [_without_long_patterns(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _without_long_patterns(value) for name, value in schema.items()}
    if "pattern" in kept and isinstance(most := kept.get("maxLength"), int) and most > _LONG:
        del kept["maxLength"]
    return kept
