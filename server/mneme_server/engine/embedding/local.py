"""all-MiniLM-L6-v2 on ONNX Runtime, in this process, without torch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.process_limits import address_space_is_limited
from mneme_server.engine.embedding.minilm import (
    ATTENTION_MASK,
    INPUT_IDS,
    MAX_TOKENS,
    MODEL_NAME,
    OUTPUT,
    WIDTH,
    ExportedModel,
    Precision,
    find_model,
)
from mneme_server.engine.embedding.port import EmbeddingError, ModelUnavailable, give_way

if TYPE_CHECKING:  # They are imported with the model.
    import onnxruntime
    from tokenizers import Tokenizer

# Padded tokens in one run of the network. Few enough that its widest activations (1,536 floats per
# token) stay in a core's second-level cache: runs of 1,500 tokens were a third slower per text.
_TOKENS_PER_RUN = 256

# A text is cut here before it is tokenised: only 256 tokens count, and megabytes take seconds.
_MAX_CHARACTERS = 32_768


class _Model(NamedTuple):
    tokenizer: Tokenizer
    session: onnxruntime.InferenceSession


class LocalEmbedder:
    """Embeds with the exported all-MiniLM-L6-v2.

    The files are checked when it is made, and loaded by `load`, or by who first embeds: a server
    can be there for other calls by then.

    A run of the network uses one thread; texts beyond one run's worth are spread over `threads` of
    them. That keeps a single text's latency steady on busy cores (threads that split one small
    matrix wait for each other), and lets concurrent callers proceed side by side.

    The int8 model's id has a suffix of its own: its vectors are near fp32's (cosine 0.9965 on
    average), not equal.
    """

    in_process = True
    """A short text is computed in the thread that asks, within milliseconds: see `MicroBatcher`."""

    def __init__(
        self,
        model_dir: Path | None = None,
        *,
        precision: Precision = "int8",
        threads: int = 2,
    ) -> None:
        """Use the model in `model_dir`, or that of its package where that is None. Raises
        ModelUnavailable where its files are not whole, ValueError for threads < 1.
        """
        if threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")
        self._files = find_model(model_dir, precision)
        self._model_id = MODEL_NAME if precision == "fp32" else f"{MODEL_NAME}-{precision}"
        self._loading = threading.Lock()
        self._model: _Model | None = None
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="embed")
        self._quiet_pool = ThreadPoolExecutor(
            threads, thread_name_prefix="embed-quietly", initializer=give_way
        )
        self._closed = False

    @property
    def model_id(self) -> str:
        """See Embedder."""
        return self._model_id

    @property
    def dimensions(self) -> int:
        """See Embedder."""
        return WIDTH

    def load(self) -> None:
        """See `engine.embedding.port.load`."""
        self._loaded()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See Embedder. Beyond 256 tokens a text is cut. A vector does not depend on the other
        texts of the call.
        """
        return self._embed(texts, self._pool)

    def embed_quietly(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `embed`, on threads that give way to every other: recording events beside it was
        measured twice as fast.
        """
        return self._embed(texts, self._quiet_pool)

    def _embed(self, texts: Sequence[str], pool: ThreadPoolExecutor) -> NDArray[np.float32]:
        if self._closed:
            raise EmbeddingError("the embedder is closed")
        if not texts:
            return np.empty((0, WIDTH), np.float32)
        model = self._loaded()  # Kept by this call, also if another thread closes this now.
        tokens = _tokenize(model.tokenizer, texts)
        runs = plan_runs([len(ids) for ids in tokens], _TOKENS_PER_RUN)
        vectors = np.empty((len(texts), WIDTH), np.float32)
        if pool is self._pool and (len(runs) == 1 or self._threads == 1):
            for rows in runs:
                vectors[rows] = _run(model.session, _pad([tokens[row] for row in rows]))
            return vectors
        # Arrays are made and read here, not in the pool: a thread that gives way, and is put aside
        # while it holds the interpreter's lock, holds up every other.
        padded = [_pad([tokens[row] for row in rows]) for rows in runs]
        try:
            # Longest first, so that no thread is left with a long run at the end.
            pending = [pool.submit(_run, model.session, inputs) for inputs in reversed(padded)]
        except RuntimeError as error:  # closed by another thread
            raise EmbeddingError("the embedder is closed") from error
        for rows, future in zip(reversed(runs), pending, strict=True):
            vectors[rows] = future.result()
        return vectors

    def close(self) -> None:
        """See Embedder."""
        self._closed = True
        self._pool.shutdown(wait=True)
        self._quiet_pool.shutdown(wait=True)
        self._model = None  # Its memory, at once: what has closed this may still be referred to.

    def _loaded(self) -> _Model:
        model = self._model
        if model is None:
            with self._loading:
                model = self._model = self._model or _load(self._files)
        return model


def _pad(tokens: Sequence[list[int]]) -> dict[str, NDArray[np.int64]]:
    """What the network takes for these texts: ids and mask, (texts, tokens of the longest)."""
    length = max(len(ids) for ids in tokens)
    input_ids = np.zeros((len(tokens), length), np.int64)
    mask = np.zeros_like(input_ids)
    for row, ids in enumerate(tokens):
        input_ids[row, : len(ids)] = ids
        mask[row, : len(ids)] = 1
    return {INPUT_IDS: input_ids, ATTENTION_MASK: mask}


def plan_runs(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group positions of `lengths` by similar length, shortest first, each group at most `budget`
    when padded.

    A length beyond the budget makes a group of its own.
    """
    runs: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Ascending order: the newcomer is the longest, so it sets the padded length of the group.
        if runs and lengths[position] * (len(runs[-1]) + 1) <= budget:
            runs[-1].append(position)
        else:
            runs.append([position])
    return runs


def _tokenize(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    try:
        cut = [text[:_MAX_CHARACTERS] for text in texts]
        return [encoding.ids for encoding in tokenizer.encode_batch_fast(cut)]
    except (TypeError, UnicodeEncodeError) as error:
        raise EmbeddingError(f"a text is not valid Unicode: {error}") from error


def _run(
    session: onnxruntime.InferenceSession, inputs: dict[str, NDArray[np.int64]]
) -> NDArray[np.float32]:
    try:
        (vectors,) = session.run([OUTPUT], inputs)
    except Exception as error:  # ONNX Runtime's exceptions share no public base class
        raise EmbeddingError(f"the embedding model failed: {error}") from error
    result: NDArray[np.float32] = vectors
    return result


def _load(files: ExportedModel) -> _Model:
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(files.tokenizer))
        session = _load_session(files.graph)
    except Exception as error:  # both libraries raise bare Exception subclasses of their own
        raise ModelUnavailable(
            f"cannot load the embedding model in {files.folder}: {error}"
        ) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return _Model(tokenizer, session)


def _load_session(graph: Path) -> onnxruntime.InferenceSession:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The graph is written as it should run. The higher levels would fuse Add with
    # LayerNormalization and with Gelu into operators that are slower here.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    # Nor should quantisation be moved up through Transpose, where it is done in more places.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    # Without the arena, memory after the first runs is 30 MB higher: malloc keeps what the arena
    # would reuse.
    # Where address space is scarce it must not be: the arena doubles, and never shrinks.
    options.enable_cpu_mem_arena = not address_space_is_limited()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
