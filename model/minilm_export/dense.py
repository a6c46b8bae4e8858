"""Dense layers (x @ weight + bias) as ONNX nodes, in float32 or int8.

In int8 each weight matrix is quantised per output channel, the activations to uint8 around 128. The
scale of the activations never depends on other rows: it is a constant where their range is known,
and one per token where it is not. ONNX Runtime's own dynamic quantisation takes one scale per
batch: a text's vector would then depend on the texts it happens to share a batch with.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from minilm_export.onnx_writer import CONTRIB, GraphWriter

_LEVELS = 127  # of int8, and of uint8 on each side of its middle


@dataclass(frozen=True)
class KnownRange:
    """Magnitudes stay within `maximum`, in the channels of `outliers` within theirs."""

    maximum: float
    outliers: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PerTokenRange:
    """The range is measured for each token. No value lies below `-floor`, so the maximum tells."""

    floor: float


InputRange = KnownRange | PerTokenRange


@dataclass(frozen=True)
class Linear:
    """Weight (in, out) and bias (out,)."""

    weight: NDArray[Any]
    bias: NDArray[Any]


class DenseWriter(Protocol):
    """Writes dense layers in one number format."""

    def __call__(self, x: str, name: str, linear: Linear, expected: InputRange) -> str:
        """Write x @ weight + bias, x being (b, s, in); returns the name of the result, `name`."""
        ...


class FloatDense:
    """A DenseWriter in float32."""

    def __init__(self, graph: GraphWriter) -> None:
        self._graph = graph

    def __call__(self, x: str, name: str, linear: Linear, expected: InputRange) -> str:
        """See DenseWriter; the expected range does not matter here."""
        graph = self._graph
        product = graph.op(
            "MatMul", [x, graph.const(f"{name}/weight", linear.weight)], f"{name}/product"
        )
        return graph.op("Add", [product, graph.const(f"{name}/bias", linear.bias)], name)


class Int8Dense:
    """A DenseWriter in int8."""

    def __init__(self, graph: GraphWriter) -> None:
        self._graph = graph
        self._middle = graph.const("middle", np.array(128, np.uint8))

    def __call__(self, x: str, name: str, linear: Linear, expected: InputRange) -> str:
        """See DenseWriter."""
        if isinstance(expected, KnownRange):
            return self._with_known_range(x, name, linear, expected)
        return self._with_range_per_token(x, name, linear, expected)

    def _with_known_range(self, x: str, name: str, linear: Linear, expected: KnownRange) -> str:
        graph, weight = self._graph, linear.weight
        if expected.outliers:
            # An outlier channel is divided, its weights multiplied: the product stays the same.
            ratio = np.ones(weight.shape[0], np.float32)
            for channel, maximum in expected.outliers.items():
                ratio[channel] = maximum / expected.maximum
            x = graph.op("Mul", [x, graph.const(f"{name}/shrink", 1 / ratio)], f"{name}/even")
            weight = weight * ratio[:, None]
        step = graph.number(expected.maximum / _LEVELS)
        # Layers with the same input share its quantised form: ONNX Runtime merges equal nodes.
        coded = graph.op("QuantizeLinear", [x, step, self._middle], f"{name}/coded")
        return self._multiply(coded, step, weight, bias=linear.bias, name=name, result=name)

    def _with_range_per_token(
        self, x: str, name: str, linear: Linear, expected: PerTokenRange
    ) -> str:
        graph = self._graph
        largest = graph.op("ReduceMax", [x, graph.ints(-1)], f"{name}/maximum", keepdims=1)
        largest = graph.op("Max", [largest, graph.number(expected.floor)], f"{name}/largest")
        step = graph.op("Mul", [largest, graph.number(1 / _LEVELS)], f"{name}/step")
        scaled = graph.op("Div", [x, step], f"{name}/scaled")
        one = graph.number(1.0)
        coded = graph.op("QuantizeLinear", [scaled, one, self._middle], f"{name}/coded")
        product = self._multiply(
            coded, one, linear.weight, bias=None, name=name, result=f"{name}/in_steps"
        )
        product = graph.op("Mul", [product, step], f"{name}/product")
        return graph.op("Add", [product, graph.const(f"{name}/bias", linear.bias)], name)

    def _multiply(
        self,
        coded: str,
        step: str,
        weight: NDArray[Any],
        *,
        bias: NDArray[Any] | None,
        name: str,
        result: str,
    ) -> str:
        """step * (coded - 128) @ weight, plus the bias if any, as the value `result`."""
        graph = self._graph
        steps = (np.abs(weight).max(axis=0) / _LEVELS).astype(np.float32)
        quantised = np.clip(np.round(weight / steps), -_LEVELS, _LEVELS).astype(np.int8)
        inputs = [
            coded,
            graph.const(f"{name}/weight", quantised),
            step,
            graph.const(f"{name}/weight_steps", steps),
            self._middle,
        ]
        if bias is not None:
            inputs += ["", graph.const(f"{name}/bias", bias)]
        return graph.op("MatMulIntegerToFloat", inputs, result, domain=CONTRIB)
