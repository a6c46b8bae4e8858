"""The all-MiniLM-L6-v2 network as an ONNX graph, pooling and normalisation included.

The graph is written from the published weights instead of being traced by an exporter. It is the
same network (BertModel, mean pooling over the tokens, L2 norm), with the operators chosen by
measurement:

* Every weight matrix is int8 per output channel; activations are uint8 around 128 with one scale
  per *token*. ONNX Runtime's own dynamic quantisation takes one scale per batch, so that a text's
  vector would depend on the texts it happens to share a batch with, and one outlier would coarsen
  all of them. Per token, a vector depends on its text alone (and is nearer to fp32: cosine 0.9965
  on average against 0.992).
* LayerNormalization after Add, not SkipLayerNormalization: the fused operator is several times
  slower on CPUs.
* Query, key and value share one matrix product and one quantisation of its input; 1/sqrt(head size)
  is folded into the query's weights, the only token type's embedding into the positions.
* The word embeddings (half of all the weights) are stored as float16: 23 MB less, no loss that can
  be measured.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from mneme_server.embedding.minilm import (
    ATTENTION_MASK,
    INPUT_IDS,
    MAX_TOKENS,
    MODEL_NAME,
    OUTPUT,
    WIDTH,
    Precision,
)

LAYERS = 6
HEADS = 12
Weights = Mapping[str, NDArray[Any]]

_CONTRIB = "com.microsoft"
_LAYER_NORM_EPSILON = 1e-12
_GELU_MINIMUM = -0.17  # the function's minimum is -0.16997, at x = -0.7518
_TINY = 1e-12
_MASKED = 10_000.0  # subtracted from a masked score before the softmax: exp underflows to exactly 0


def build_graph(weights: Weights, precision: Precision) -> onnx.ModelProto:
    """Build the model: (b, s) int64 token ids and attention mask in, (b, 384) float32 unit vectors
    out.

    `weights` are the tensors of the published checkpoint by name. Raises KeyError when one is
    missing.
    """
    return _GraphBuilder(weights, precision).build()


class _GraphBuilder:
    def __init__(self, weights: Weights, precision: Precision) -> None:
        self._weights = weights
        self._precision = precision
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def build(self) -> onnx.ModelProto:
        hidden = self._embeddings()
        mask_row = self._op("Unsqueeze", [self._mask_as_float(), self._ints("axis1", [1])], "mask")
        bias = self._attention_bias(mask_row)
        for layer in range(LAYERS):
            hidden = self._layer(layer, hidden, bias)
        self._pool(hidden, mask_row)
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in (INPUT_IDS, ATTENTION_MASK)
        ]
        output = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", WIDTH])
        graph = helper.make_graph(
            self._nodes, MODEL_NAME, inputs, [output], list(self._constants.values())
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(_CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    # -- the network
    # -----------------------------------------------------------------------------------------

    def _embeddings(self) -> str:
        words = self._weights["embeddings.word_embeddings.weight"]
        if self._precision == "int8":
            half = self._op(
                "Gather", [self._const("words", words.astype(np.float16)), INPUT_IDS], "word16"
            )
            word = self._op("Cast", [half], "word", to=TensorProto.FLOAT)
        else:
            word = self._op("Gather", [self._const("words", words), INPUT_IDS], "word")
        positions = (
            self._weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
            + self._weights["embeddings.token_type_embeddings.weight"][0]
        )
        length = self._op("Shape", [INPUT_IDS], "length", start=1, end=2)
        start, axis = self._ints("start", [0]), self._ints("axis0", [0])
        position = self._op(
            "Slice", [self._const("positions", positions), start, length, axis], "position"
        )
        return self._layer_norm(
            self._op("Add", [word, position], "embedded"), "hidden", "embeddings.LayerNorm"
        )

    def _mask_as_float(self) -> str:
        return self._op("Cast", [ATTENTION_MASK], "mask_float", to=TensorProto.FLOAT)

    def _attention_bias(self, mask_row: str) -> str:
        """(b, 1, 1, s): 0 where a token counts, -10000 where it is padding."""
        zero_or_minus_one = self._op("Sub", [mask_row, self._float("one", 1.0)], "mask_off")
        bias = self._op("Mul", [zero_or_minus_one, self._float("masked", _MASKED)], "mask_bias3")
        return self._op("Unsqueeze", [bias, self._ints("axis1", [1])], "mask_bias")

    def _layer(self, layer: int, hidden: str, bias: str) -> str:
        name, source = f"layer{layer}", f"encoder.layer.{layer}"
        attention = self._attention(name, f"{source}.attention.self", hidden, bias)
        projected = self._dense(
            attention, f"{name}/project", *self._linear(f"{source}.attention.output.dense")
        )
        middle = self._layer_norm(
            self._op("Add", [projected, hidden], f"{name}/attended"),
            f"{name}/middle",
            f"{source}.attention.output.LayerNorm",
        )
        wide = self._dense(middle, f"{name}/wide", *self._linear(f"{source}.intermediate.dense"))
        active = self._op("Gelu", [wide], f"{name}/gelu")
        narrow = self._dense(
            active,
            f"{name}/narrow",
            *self._linear(f"{source}.output.dense"),
            lower_bound=_GELU_MINIMUM,
        )
        return self._layer_norm(
            self._op("Add", [narrow, middle], f"{name}/sum"),
            f"{name}/out",
            f"{source}.output.LayerNorm",
        )

    def _attention(self, name: str, source: str, hidden: str, bias: str) -> str:
        parts = [self._linear(f"{source}.{part}") for part in ("query", "key", "value")]
        scale = np.float32((WIDTH // HEADS) ** -0.5)
        parts[0] = (parts[0][0] * scale, parts[0][1] * scale)
        joined = self._dense(
            hidden,
            f"{name}/qkv",
            np.concatenate([weight for weight, _ in parts], axis=1),
            np.concatenate([offset for _, offset in parts]),
        )
        names = [f"{name}/{part}" for part in ("query", "key", "value")]
        self._nodes.append(
            helper.make_node("Split", [joined, self._ints("thirds", [WIDTH] * 3)], names, axis=-1)
        )
        to_heads = self._ints("to_heads", [0, 0, HEADS, WIDTH // HEADS])
        orders = (
            [0, 2, 1, 3],
            [0, 2, 3, 1],
            [0, 2, 1, 3],
        )  # the key comes transposed for its product
        query, key, value = (
            self._op(
                "Transpose",
                [self._op("Reshape", [part, to_heads], f"{part}4")],
                f"{part}t",
                perm=order,
            )
            for part, order in zip(names, orders, strict=True)
        )
        scores = self._op(
            "Add", [self._op("MatMul", [query, key], f"{name}/dot"), bias], f"{name}/scores"
        )
        shares = self._op("Softmax", [scores], f"{name}/shares", axis=-1)
        mixed = self._op("MatMul", [shares, value], f"{name}/mixed")
        rows = self._op("Transpose", [mixed], f"{name}/rows", perm=[0, 2, 1, 3])
        return self._op(
            "Reshape", [rows, self._ints("from_heads", [0, 0, WIDTH])], f"{name}/context"
        )

    def _pool(self, hidden: str, mask_row: str) -> None:
        """Mean over the tokens, then L2 norm. The norm cancels the mean's divisor, so a sum will
        do.
        """
        total = self._op("MatMul", [mask_row, hidden], "total3")
        total = self._op("Squeeze", [total, self._ints("axis1", [1])], "total")
        norm = self._op("ReduceL2", [total, self._ints("last", [-1])], "norm", keepdims=1)
        self._op("Div", [total, norm], OUTPUT)

    # -- building blocks
    # -------------------------------------------------------------------------------------

    def _dense(
        self,
        x: str,
        name: str,
        weight: NDArray[Any],
        bias: NDArray[Any],
        *,
        lower_bound: float | None = None,
    ) -> str:
        """x @ weight + bias for weight (in, out); `lower_bound` is what no element of x falls
        below.
        """
        if self._precision == "int8":
            product = self._product_int8(x, name, weight, lower_bound)
        else:
            product = self._op(
                "MatMul", [x, self._const(f"{name}/weight", weight)], f"{name}/product"
            )
        return self._op("Add", [product, self._const(f"{name}/bias", bias)], name)

    def _product_int8(
        self, x: str, name: str, weight: NDArray[Any], lower_bound: float | None
    ) -> str:
        steps = (np.abs(weight).max(axis=0) / 127).astype(np.float32)
        quantised = np.clip(np.round(weight / steps), -127, 127).astype(np.int8)
        one, middle = self._float("one", 1.0), self._const("middle", np.array(128, np.uint8))
        # The largest magnitude of each row. Where the negative side is bounded, the maximum will
        # do, which saves a pass over the widest tensor. The floor also gives a row of zeros a
        # scale.
        size = x if lower_bound is not None else self._op("Abs", [x], f"{name}/abs")
        largest = self._op("ReduceMax", [size, self._ints("last", [-1])], f"{name}/max", keepdims=1)
        floor = _TINY if lower_bound is None else -lower_bound
        largest = self._op("Max", [largest, self._float(f"floor{floor}", floor)], f"{name}/largest")
        step = self._op("Mul", [largest, self._float("per127", 1 / 127)], f"{name}/step")
        scaled = self._op("Div", [x, step], f"{name}/scaled")
        coded = self._op("QuantizeLinear", [scaled, one, middle], f"{name}/coded")
        product = self._op(
            "MatMulIntegerToFloat",
            [
                coded,
                self._const(f"{name}/weight", quantised),
                one,
                self._const(f"{name}/weight_steps", steps),
                middle,
            ],
            f"{name}/product_in_steps",
            domain=_CONTRIB,
        )
        return self._op("Mul", [product, step], f"{name}/product")

    def _layer_norm(self, x: str, name: str, source: str) -> str:
        gain = self._const(f"{name}/gain", self._weights[f"{source}.weight"])
        shift = self._const(f"{name}/shift", self._weights[f"{source}.bias"])
        return self._op(
            "LayerNormalization", [x, gain, shift], name, axis=-1, epsilon=_LAYER_NORM_EPSILON
        )

    def _linear(self, source: str) -> tuple[NDArray[Any], NDArray[Any]]:
        return self._weights[f"{source}.weight"].T, self._weights[f"{source}.bias"]

    def _op(
        self, kind: str, inputs: list[str], name: str, *, domain: str = "", **attributes: Any
    ) -> str:
        self._nodes.append(
            helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes)
        )
        return name

    def _const(self, name: str, value: NDArray[Any]) -> str:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def _ints(self, name: str, values: list[int]) -> str:
        return self._const(name, np.array(values, np.int64))

    def _float(self, name: str, value: float) -> str:
        return self._const(name, np.array(value, np.float32))
