"""A database that cannot be opened as a server starts: which one it is, and why."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.common.errors import FailedPrecondition, Unavailable
from mneme_server.engine.tenants.backends import open_backend
from support.server import settings_of

pytest.importorskip("psycopg")


def test_a_database_that_nobody_serves_is_named_with_why(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, database_url="postgresql://ann:geheim@127.0.0.1:1/memory")
    with pytest.raises(Unavailable) as refused:
        open_backend(settings, tenant_schema(), [])
    said = refused.value.message
    assert said.startswith("MNEME_DATABASE_URL: the database cannot be reached: ")
    assert "refused" in said
    assert "geheim" not in said
    assert "\n" not in said


def test_an_address_that_cannot_be_read_shows_nothing_of_the_password(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, database_url="postgresql://ann:ge heim@127.0.0.1:1/memory")
    with pytest.raises(FailedPrecondition, match="a space as %20") as refused:
        open_backend(settings, tenant_schema(), [])
    assert "heim" not in refused.value.message


@pytest.mark.parametrize("command", [["serve"], ["nodes"], ["migrate", "--to", "sqlite:"]])
def test_every_command_says_it(command: list[str], tmp_path: Path) -> None:
    code, said = ran(command, "postgresql://ann:geheim@127.0.0.1:1/memory", tmp_path)
    assert code == 1
    assert re.search(r"the database cannot be reached: .*127\.0\.0\.1.*refused", said)
    assert "geheim" not in said
    assert "Traceback" not in said


def test_another_kind_of_database_is_refused_before_anything_starts(tmp_path: Path) -> None:
    code, said = ran(["serve"], "mysql://ann:geheim@db/memory", tmp_path)
    assert code == 2
    assert "MNEME_DATABASE_URL: it is no postgresql://user:password@host/database" in said
    assert "geheim" not in said


def ran(command: list[str], url: str, folder: Path) -> tuple[int, str]:
    told = {"MNEME_DATABASE_URL": url, "MNEME_PLAIN_KEYS": "true", "MNEME_DATA_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", "mneme_server", *command],
        env=os.environ | told, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr
