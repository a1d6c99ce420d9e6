"""Computations written down as an ONNX graph, an operation at a time. All numbers are float64, as in our own inference.

Values are known by their names; their first axis is the batch.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.extras import missing_extra

OPSET: Final = 17
"""Version of the operations: old enough for runtimes of 2022."""
IR_VERSION: Final = 8
"""Version of the file format that goes with it."""


class Graph:
    """An ONNX graph in the making."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError:
            raise missing_extra("an export to ONNX", "onnx") from None
        self._onnx: Any = onnx
        self._nodes: list[Any] = []
        self._constants: dict[tuple[Any, ...], Any] = {}
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, size: int) -> str:
        """A value (batch, size) that is handed in."""
        self._inputs.append(self._described(name, size))
        return name

    def output(self, name: str, value: str, size: int) -> None:
        """Hand out a value (batch, size) under a name."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._described(name, size))

    def _described(self, name: str, size: int) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self._onnx.TensorProto.DOUBLE, ["batch", size])

    def constant(self, values: NDArray[Any]) -> str:
        """An array of numbers or indices, which keeps its type."""
        key = values.dtype.str, values.shape, values.tobytes()
        if key not in self._constants:
            name = f"constant{len(self._constants)}"
            self._constants[key] = self._onnx.numpy_helper.from_array(np.array(values, order="C"), name)
        return str(self._constants[key].name)

    def apply(self, operation: str, *values: str | NDArray[Any] | float, **attributes: Any) -> str:
        """The result of an ONNX operation on values and constants."""
        names = [
            value if isinstance(value, str) else self.constant(np.asarray(value, getattr(value, "dtype", np.float64)))
            for value in values
        ]
        result = f"value{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operation, names, [result], **attributes))
        return result

    def columns(self, value: str, columns: Sequence[int] | NDArray[np.int64]) -> str:
        """These columns of a value."""
        return self.apply("Gather", value, np.asarray(columns, np.int64), axis=1)

    def join(self, *values: str) -> str:
        """Values side by side."""
        return values[0] if len(values) == 1 else self.apply("Concat", *values, axis=1)

    def limit(self, value: str, low: float, high: float) -> str:
        """A value within bounds."""
        return self.apply("Min", self.apply("Max", value, low), high)

    def linear(self, value: str, weights: NDArray[np.float64], bias: NDArray[np.float64] | None = None) -> str:
        """(batch, n) from (batch, m) by weights (m, n) and perhaps a bias (n,)."""
        product = self.apply("MatMul", value, weights)
        return product if bias is None else self.apply("Add", product, bias)

    def file(self, name: str, about: str) -> bytes:
        """The whole graph as the content of a file, checked by ONNX's own rules."""
        onnx = self._onnx
        constants = list(self._constants.values())
        graph = onnx.helper.make_graph(self._nodes, name, self._inputs, self._outputs, constants, about)
        model = onnx.helper.make_model(
            graph,
            producer_name="ncap",
            ir_version=IR_VERSION,
            opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        )
        onnx.checker.check_model(model, full_check=True)
        content: bytes = model.SerializeToString(deterministic=True)
        return content
