"""Writing an ONNX graph node by node."""

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

CONTRIB = "com.microsoft"  # ONNX Runtime's own operators


class GraphWriter:
    """Collects nodes and constants; each value is known by its name."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def op(
        self, kind: str, inputs: list[str], name: str, *, domain: str = "", **attributes: Any
    ) -> str:
        """Add a node with one output, called `name` as the node is; returns `name`."""
        self._nodes.append(
            helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes)
        )
        return name

    def const(self, name: str, value: NDArray[Any]) -> str:
        """Add a constant once; later calls with the same name return it."""
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def ints(self, *values: int) -> str:
        """A constant int64 vector."""
        return self.const(f"ints{list(values)}", np.array(values, np.int64))

    def number(self, value: float) -> str:
        """A constant float32 scalar."""
        return self.const(f"number{value!r}", np.array(value, np.float32))

    def model(
        self, name: str, inputs: list[onnx.ValueInfoProto], output: onnx.ValueInfoProto
    ) -> onnx.ModelProto:
        """The finished model."""
        graph = helper.make_graph(
            self._nodes, name, inputs, [output], list(self._constants.values())
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)
