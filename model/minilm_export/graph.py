"""The all-MiniLM-L6-v2 network as an ONNX graph, pooling and normalisation included.

The graph is written from the published weights instead of being traced by an exporter. It is the
same network (BertModel, mean pooling over the tokens, L2 norm), with the operators chosen by
measurement:

* In int8, a text's vector depends on that text alone (see `dense.py`), and is nearer to fp32 than
  with dynamic quantisation: cosine 0.996 on average against 0.992.
* LayerNormalization after Add, not SkipLayerNormalization: the fused operator is several times
  slower on CPUs.
* 1/sqrt(head size) is folded into the query's weights, the only token type's embedding into the
  positions.
* In int8 so are the word embeddings (half of all the weights), each word's with a scale of its own:
  35 MB less, no loss that can be measured.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from mneme_server.engine.embedding.minilm import (
    ATTENTION_MASK,
    INPUT_IDS,
    MAX_TOKENS,
    MODEL_NAME,
    OUTPUT,
    WIDTH,
    Precision,
)
from numpy.typing import NDArray
from onnx import TensorProto, helper

from minilm_export.dense import (
    DenseWriter,
    FloatDense,
    Int8Dense,
    KnownRange,
    Linear,
    PerTokenRange,
)
from minilm_export.onnx_writer import GraphWriter
from minilm_export.ranges import (
    CONTEXT_MAX,
    LAYER_INPUT_MAX,
    MIDDLE_MAX,
    MIDDLE_OUTLIERS,
)

LAYERS = 6
HEADS = 12
Weights = Mapping[str, NDArray[Any]]

_LAYER_NORM_EPSILON = 1e-12
_INT8_MAX = 127
_GELU_FLOOR = 0.17  # the function's minimum is -0.16997, at x = -0.7518
_MASKED = 10_000.0  # subtracted from a masked score before the softmax: exp underflows to exactly 0


def build_graph(weights: Weights, precision: Precision) -> onnx.ModelProto:
    """Build the model: (b, s) int64 ids and attention mask in, (b, 384) float32 unit vectors out.

    `weights` are the tensors of the published checkpoint by name. Raises KeyError when one is
    missing.
    """
    graph = GraphWriter()
    dense: DenseWriter = Int8Dense(graph) if precision == "int8" else FloatDense(graph)
    _Network(graph, dense, weights, int8_words=precision == "int8").write()
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
        for name in (INPUT_IDS, ATTENTION_MASK)
    ]
    output = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", WIDTH])
    return graph.model(MODEL_NAME, inputs, output)


class _Network:
    """Writes the network; each method returns the name of what it computes."""

    def __init__(
        self, graph: GraphWriter, dense: DenseWriter, weights: Weights, *, int8_words: bool
    ) -> None:
        self._graph = graph
        self._dense = dense
        self._weights = weights
        self._int8_words = int8_words

    def write(self) -> None:
        hidden = self._embeddings()
        mask = self._graph.op("Cast", [ATTENTION_MASK], "mask_float", to=TensorProto.FLOAT)
        mask = self._graph.op("Unsqueeze", [mask, self._graph.ints(1)], "mask")
        bias = self._attention_bias(mask)
        for layer in range(LAYERS):
            hidden = self._layer(layer, hidden, bias)
        self._pool(hidden, mask)

    def _embeddings(self) -> str:
        graph = self._graph
        words = self._weights["embeddings.word_embeddings.weight"]
        if self._int8_words:
            word = self._int8_words_of(words)
        else:
            word = graph.op("Gather", [graph.const("words", words), INPUT_IDS], "word")
        positions = (
            self._weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
            + self._weights["embeddings.token_type_embeddings.weight"][0]
        )
        length = graph.op("Shape", [INPUT_IDS], "length", start=1, end=2)
        position = graph.op(
            "Slice",
            [graph.const("positions", positions), graph.ints(0), length, graph.ints(0)],
            "position",
        )
        return self._add_and_norm(word, position, "hidden", "embeddings.LayerNorm")

    def _int8_words_of(self, words: NDArray[Any]) -> str:
        graph = self._graph
        scales = np.abs(words).max(axis=1, keepdims=True) / _INT8_MAX
        stored = np.rint(words / scales).astype(np.int8)
        word = graph.op("Gather", [graph.const("words", stored), INPUT_IDS], "word_stored")
        word = graph.op("Cast", [word], "word_unscaled", to=TensorProto.FLOAT)
        scale = graph.op("Gather", [graph.const("word_scales", scales), INPUT_IDS], "word_scale")
        return graph.op("Mul", [word, scale], "word")

    def _attention_bias(self, mask: str) -> str:
        """(b, 1, 1, s): 0 where a token counts, -10000 where it is padding."""
        graph = self._graph
        off = graph.op("Sub", [mask, graph.number(1.0)], "mask_off")
        bias = graph.op("Mul", [off, graph.number(_MASKED)], "mask_bias3")
        return graph.op("Unsqueeze", [bias, graph.ints(1)], "mask_bias")

    def _layer(self, layer: int, hidden: str, bias: str) -> str:
        name, source = f"layer{layer}", f"encoder.layer.{layer}"
        context = self._attention(layer, hidden, bias)
        projected = self._dense(
            context,
            f"{name}/project",
            self._linear(f"{source}.attention.output.dense"),
            KnownRange(CONTEXT_MAX[layer]),
        )
        middle = self._add_and_norm(
            projected, hidden, f"{name}/middle", f"{source}.attention.output.LayerNorm"
        )
        wide = self._dense(
            middle,
            f"{name}/wide",
            self._linear(f"{source}.intermediate.dense"),
            KnownRange(MIDDLE_MAX, MIDDLE_OUTLIERS[layer]),
        )
        # The [CLS] token's maximum is up to ten times the others', which rules out one scale.
        narrow = self._dense(
            self._graph.op("Gelu", [wide], f"{name}/gelu"),
            f"{name}/narrow",
            self._linear(f"{source}.output.dense"),
            PerTokenRange(_GELU_FLOOR),
        )
        return self._add_and_norm(narrow, middle, f"{name}/out", f"{source}.output.LayerNorm")

    def _attention(self, layer: int, hidden: str, bias: str) -> str:
        graph, name = self._graph, f"layer{layer}"
        query = self._heads(layer, hidden, "query", [0, 2, 1, 3], scale=(WIDTH // HEADS) ** -0.5)
        key = self._heads(layer, hidden, "key", [0, 2, 3, 1])  # transposed for the product
        value = self._heads(layer, hidden, "value", [0, 2, 1, 3])
        dot = graph.op("MatMul", [query, key], f"{name}/dot")
        scores = graph.op("Add", [dot, bias], f"{name}/scores")
        shares = graph.op("Softmax", [scores], f"{name}/shares", axis=-1)
        mixed = graph.op("MatMul", [shares, value], f"{name}/mixed")
        rows = graph.op("Transpose", [mixed], f"{name}/rows", perm=[0, 2, 1, 3])
        return graph.op("Reshape", [rows, graph.ints(0, 0, WIDTH)], f"{name}/context")

    def _heads(
        self, layer: int, hidden: str, part: str, order: list[int], *, scale: float = 1.0
    ) -> str:
        """One of query, key and value, (b, s, heads, 32) in the given order of axes."""
        graph, name = self._graph, f"layer{layer}/{part}"
        linear = self._linear(f"encoder.layer.{layer}.attention.self.{part}")
        factor = np.float32(scale)
        flat = self._dense(
            hidden,
            name,
            Linear(linear.weight * factor, linear.bias * factor),
            KnownRange(LAYER_INPUT_MAX[layer]),
        )
        split = graph.op(
            "Reshape", [flat, graph.ints(0, 0, HEADS, WIDTH // HEADS)], f"{name}/split"
        )
        return graph.op("Transpose", [split], f"{name}/heads", perm=order)

    def _add_and_norm(self, a: str, b: str, name: str, source: str) -> str:
        graph = self._graph
        inputs = [
            graph.op("Add", [a, b], f"{name}/sum"),
            graph.const(f"{name}/gain", self._weights[f"{source}.weight"]),
            graph.const(f"{name}/shift", self._weights[f"{source}.bias"]),
        ]
        return graph.op("LayerNormalization", inputs, name, axis=-1, epsilon=_LAYER_NORM_EPSILON)

    def _pool(self, hidden: str, mask: str) -> None:
        """Mean over the tokens, then L2 norm, which cancels the mean's divisor: a sum will do."""
        graph = self._graph
        total = graph.op("MatMul", [mask, hidden], "total_row")
        total = graph.op("Squeeze", [total, graph.ints(1)], "total")
        norm = graph.op("ReduceL2", [total, graph.ints(-1)], "norm", keepdims=1)
        graph.op("Div", [total, norm], OUTPUT)

    def _linear(self, source: str) -> Linear:
        return Linear(self._weights[f"{source}.weight"].T, self._weights[f"{source}.bias"])
