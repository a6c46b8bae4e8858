"""What docs/guides/operating.md promises to whoever runs a server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from mneme import MnemeClient
from support.server import local_server, server_process

GUIDE = (Path(__file__).parents[2] / "docs/guides/operating.md").read_text()


def client_of(address: str) -> MnemeClient:
    return MnemeClient(address, api_key="")


def test_a_backup_is_restored_by_the_steps_of_the_guide(tmp_path: Path) -> None:
    data = tmp_path / "mneme-data"
    (step,) = re.findall(r"^mneme (admin restore) \S+\.db (--tenant default)$", GUIDE, re.MULTILINE)
    with server_process(data, auth="disabled") as server, client_of(server.address) as client:
        client.record_events(
            [{"session_id": "kept", "event_type": "message", "text": "The vault opens at nine."}],
            wait_indexed=True,
        )
        client.create_lesson("Vault", "Nobody opens it alone.", lesson_id="vault")
        backup = client.backup().result(timeout=60)
        assert Path(backup.path).stat().st_size == backup.size_bytes
        client.record_events(
            [{"session_id": "later", "event_type": "message", "text": "The vault is empty."}],
            wait_indexed=True,
        )
        command = [*step[0].split(), Path(backup.path).name, *step[1].split(), "--yes"]
        subprocess.run(
            [sys.executable, "-m", "mneme", "--address", server.address, *command], check=True
        )
        assert [session.id for session in client.iter_sessions()] == ["kept"]
        assert client.verify_events().valid
        assert client.get_lesson("vault").lesson.content == "Nobody opens it alone."
        texts = [result.text for result in client.recall("when can I get in", limit=10).results]
        assert "The vault opens at nine." in texts
        assert "The vault is empty." not in texts


def test_every_metric_of_the_guide_is_served(tmp_path: Path) -> None:
    wheels = {"mneme_grpc", "mneme_minilm"}
    named = set(re.findall(r"`(mneme_[a-z_]+)`", GUIDE)) - wheels
    assert named
    with local_server(tmp_path / "data", auth="disabled", metrics_listen="127.0.0.1:0") as server:
        with client_of(server.address) as client:
            client.get_stats()
        url = f"http://{server.application.metrics_address}/metrics"
        with urlopen(url, timeout=60) as answer:
            served = answer.read().decode()
    for name in named:
        assert re.search(rf"^{name}(_bucket)?[{{ ]", served, re.MULTILINE), name


def test_a_second_server_on_the_same_data_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with (
        server_process(data, auth="disabled"),
        pytest.raises(AssertionError, match="another process is using"),
        server_process(data, auth="disabled"),
    ):
        pass


def _open_to_others(folder: Path) -> list[str]:
    return [
        f"{path.stat().st_mode & 0o777:o} {path.relative_to(folder)}"
        for path in [folder, *folder.rglob("*")]
        if not path.is_symlink() and path.stat().st_mode & 0o077
    ]


def test_all_that_a_server_keeps_is_for_its_user_alone_also_what_others_could_read_before(
    tmp_path: Path,
) -> None:
    data = tmp_path / "mneme-data"
    before = os.umask(0o022)
    try:
        for _ in range(2):
            with (
                server_process(data, auth="disabled") as server,
                client_of(server.address) as client,
            ):
                client.remember("The vault opens at nine.", wait_indexed=True)
                client.backup().result(timeout=60)
                assert _open_to_others(data) == []
            for path in data.rglob("*"):
                path.chmod(0o755 if path.is_dir() else 0o644)
            data.chmod(0o755)
    finally:
        os.umask(before)


def test_a_listener_beyond_loopback_that_does_not_encrypt_says_so(tmp_path: Path) -> None:
    addresses = {"listen": "0.0.0.0:0", "http_listen": "127.0.0.1:0"}
    with server_process(tmp_path / "data", **addresses) as server:
        log = server.log
    assert "unencrypted" in log
    assert log.count("MNEME_TLS_CERT") == 1
