"""A model that is downloaded becomes a file, whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mneme import MnemeClient, models
from mneme.errors import DataLossError, InternalError
from mneme.messages import DownloadModelResponse, ExportedModel
from unit.client.scripted import ScriptedServer, failure

DATA = b"what was learned"
PLAIN = hashlib.sha256(DATA).hexdigest()


def sent(
    name: str = "7-s.npz", sha256: str = PLAIN, fails: bool = False
) -> Callable[[Any, Any], Iterator[DownloadModelResponse]]:
    """Sends a model in two parts."""

    def answers(_request: Any, context: Any) -> Iterator[DownloadModelResponse]:
        model = ExportedModel(name=name, size_bytes=len(DATA), sha256=sha256)
        yield DownloadModelResponse(model=model)
        yield DownloadModelResponse(data=DATA[:5])
        if fails:
            failure(context, "INTERNAL", "broken")
        yield DownloadModelResponse(data=DATA[5:])

    return answers


@pytest.fixture
def client(served: ScriptedServer) -> Iterator[MnemeClient]:
    with MnemeClient(served.address) as client:
        yield client


def test_a_folder_gets_a_file_of_the_servers_name(
    served: ScriptedServer, client: MnemeClient, tmp_path: Path
) -> None:
    served.on("DownloadModel", sent())
    done = models.download(client, "s", tmp_path)
    assert (done.path, done.path.read_bytes()) == (tmp_path / "7-s.npz", DATA)
    assert done.model.size_bytes == len(DATA)
    assert served.last("DownloadModel").session_id == "s"


def test_a_servers_name_leads_nowhere_else(
    served: ScriptedServer, client: MnemeClient, tmp_path: Path
) -> None:
    served.on("DownloadModel", sent(name="../../elsewhere.npz"))
    assert models.download(client, "s", tmp_path).path == tmp_path / "elsewhere.npz"


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        (sent(sha256=hashlib.sha256(b"").hexdigest()), DataLossError),
        (sent(fails=True), InternalError),
    ],
)
def test_what_does_not_arrive_leaves_the_file_of_before(
    served: ScriptedServer, client: MnemeClient, tmp_path: Path, answers: Any, error: Any
) -> None:
    served.on("DownloadModel", answers)
    file = tmp_path / "model.npz"
    file.write_bytes(b"before")
    with pytest.raises(error):
        models.download(client, "s", file)
    assert file.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [file]
