"""`mneme verify`, which needs no server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from mneme.cli.main import run
from support.server import REPOSITORY

CERTIFICATES = json.loads((REPOSITORY / "tests/fixtures/proof_vectors.json").read_text())[
    "certificates"
]


def verify(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        run(["verify", *arguments])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out + said.err


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    file = tmp_path / "certificate.json"
    file.write_text(CERTIFICATES["valid"])
    return file


def test_a_certificate_verifies_with_a_key_and_with_a_file_of_keys(
    certificate: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = verify(capsys, str(certificate), "--key", CERTIFICATES["key"])
    assert (code, "the certificate verifies: 3 results of mneme/default/" in said) == (0, True)
    assert f"over 3 leaves by {CERTIFICATES['key'].rpartition('+')[0]}" in said
    keys = tmp_path / "keys"
    keys.write_text(f"NUMBER  MADE  KEY\n1       2026  {CERTIFICATES['key']}\n")
    assert verify(capsys, str(certificate), "--key", str(keys))[0] == 0


def test_what_is_wrong_is_said_part_by_part(
    certificate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate.write_text(CERTIFICATES["valid"].replace("by post", "by mail"))
    code, said = verify(capsys, str(certificate), "--key", CERTIFICATES["key"])
    assert code == 1
    assert "results[0].proof: " in said
    assert "signature: " in said
    assert "does NOT verify" in said
    code, said = verify(capsys, "--json", str(certificate), "--key", CERTIFICATES["key"])
    told = json.loads(said.splitlines()[0])
    assert (code, told["valid"]) == (1, False)
    assert {one["part"] for one in told["problems"]} == {"results[0].proof", "signature"}


@pytest.mark.parametrize(
    ("file", "key", "said"),
    [
        ("missing.json", CERTIFICATES["key"], "cannot read"),
        ("certificate.json", "nonsense", "neither a key nor a file"),
    ],
)
def test_what_cannot_be_read_is_wrong_usage(
    certificate: Path, capsys: pytest.CaptureFixture[str], file: str, key: str, said: str
) -> None:
    code, told = verify(capsys, str(certificate.parent / file), "--key", key)
    assert code == 2
    assert said in told


def test_without_the_extra_it_is_named(
    certificate: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rfc8785", None)
    code, said = verify(capsys, str(certificate), "--key", CERTIFICATES["key"])
    assert code == 2
    assert ".whl[verify]" in said
