"""Where the server finds its model, and what it says when it does not."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from mneme_server.engine.embedding import minilm
from mneme_server.engine.embedding.minilm import find_model
from mneme_server.engine.embedding.port import ModelUnavailable


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package for models, installed and empty."""
    folder = tmp_path / "site-packages" / "installed_models"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise AssertionError('data is not imported')")
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setattr(minilm, "PACKAGE", folder.name)
    return folder


def test_the_installed_package_has_the_model(package: Path, exported_int8: Path) -> None:
    shutil.copytree(exported_int8, package / exported_int8.name)
    found = find_model(None, "int8")
    assert found.folder == package / exported_int8.name
    assert found.graph.is_file()
    assert found.tokenizer.is_file()
    assert package.name not in sys.modules


def test_a_folder_that_is_named_comes_before_the_package(
    package: Path, exported_int8: Path
) -> None:
    shutil.copytree(exported_int8, package / exported_int8.name)
    assert find_model(exported_int8.parent, "int8").folder == exported_int8


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(minilm, "PACKAGE", "no_such_package_of_models")
    with pytest.raises(ModelUnavailable, match="no package mneme-minilm; install the wheel"):
        find_model(None, "int8")


def test_a_folder_without_the_model_is_named_with_the_setting(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=f"MNEME_MODEL_DIR={tmp_path} .*unset"):
        find_model(tmp_path, "int8")


@pytest.mark.usefixtures("package")
def test_the_exact_model_is_not_in_the_package_and_the_error_says_how_to_make_it() -> None:
    with pytest.raises(ModelUnavailable, match="make model PRECISION=fp32"):
        find_model(None, "fp32")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "missing"])
def test_a_damaged_model_is_refused_and_the_file_is_named(
    tmp_path: Path, exported_int8: Path, name: str, damage: str
) -> None:
    folder = tmp_path / exported_int8.name
    shutil.copytree(exported_int8, folder)
    file = folder / name
    content = file.read_bytes()
    middle = len(content) // 2
    if damage == "missing":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(content[:middle])
    else:
        file.write_bytes(content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :])
    with pytest.raises(ModelUnavailable, match=f"{folder} cannot be used: .*{name}"):
        find_model(tmp_path, "int8")


def test_a_model_of_another_version_is_refused(tmp_path: Path, exported_int8: Path) -> None:
    folder = tmp_path / exported_int8.name
    shutil.copytree(exported_int8, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "graph_version": 0}))
    with pytest.raises(ModelUnavailable, match="exported by another version"):
        find_model(tmp_path, "int8")
