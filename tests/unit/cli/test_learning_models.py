"""`mneme learning download`."""

from __future__ import annotations

import hashlib
from pathlib import Path

from mneme.messages import DownloadModelResponse, ExportedModel
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer, failure

DATA = b"what was learned"
PLAIN = hashlib.sha256(DATA).hexdigest()


def scripted(served: ScriptedServer) -> None:
    model = ExportedModel(name="7-style.npz", size_bytes=len(DATA), sha256=PLAIN)
    answers = [DownloadModelResponse(model=model), DownloadModelResponse(data=DATA)]
    served.on("DownloadModel", lambda _request, _context: iter(answers))


def test_a_model_is_written_and_named(served: ScriptedServer, tmp_path: Path) -> None:
    scripted(served)
    result = mneme("learning", "download", "style", str(tmp_path))
    file = tmp_path / "7-style.npz"
    assert (result.lines, file.read_bytes()) == ([str(file)], DATA)
    assert PLAIN in result.err
    chosen = tmp_path / "mine.npz"
    (told,) = mneme("learning", "download", "style", str(chosen), "--json").documents
    assert (told["sha256"], chosen.read_bytes()) == (PLAIN, DATA)


def test_what_cannot_be_written_or_is_not_there_is_said(
    served: ScriptedServer, tmp_path: Path
) -> None:
    scripted(served)
    nowhere = mneme("learning", "download", "style", str(tmp_path / "nowhere" / "model.npz"))
    assert nowhere.code == 2
    assert "cannot write" in nowhere.err
    served.on("DownloadModel", lambda _r, context: failure(context, "NOT_FOUND", "nothing"))
    assert mneme("learning", "download", "style", str(tmp_path)).code == 5
