import numpy as np
import onnxruntime
from hypothesis import given, settings
from hypothesis import strategies as st
from minilm_export.dense import (
    DenseWriter,
    FloatDense,
    InputRange,
    Int8Dense,
    KnownRange,
    Linear,
    PerTokenRange,
)
from minilm_export.onnx_writer import GraphWriter
from numpy.typing import NDArray
from onnx import TensorProto, helper

INPUTS, OUTPUTS = 48, 32


def run(
    kind: type[FloatDense] | type[Int8Dense],
    x: NDArray[np.float32],
    linear: Linear,
    expected: InputRange,
) -> NDArray[np.float32]:
    graph = GraphWriter()
    dense: DenseWriter = kind(graph)
    dense("x", "y", linear, expected)
    model = graph.model(
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", "s", INPUTS])],
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["b", "s", OUTPUTS]),
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    # The graph is what is tested: processors without VNNI add pairs of products in 16 bits, which
    # overflow where all codes are large.
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (result,) = session.run(["y"], {"x": x})
    found: NDArray[np.float32] = result
    return found


def example(seed: int, largest: float) -> tuple[NDArray[np.float32], Linear]:
    random = np.random.default_rng(seed)
    x = random.uniform(-largest, largest, (2, 5, INPUTS)).astype(np.float32)
    weight = random.normal(size=(INPUTS, OUTPUTS)).astype(np.float32)
    return x, Linear(weight, random.normal(size=OUTPUTS).astype(np.float32))


def exact(x: NDArray[np.float32], linear: Linear) -> NDArray[np.float32]:
    result: NDArray[np.float32] = x @ linear.weight + linear.bias
    return result


def rounding_error(
    x: NDArray[np.float32], linear: Linear, step: NDArray[np.float32] | float
) -> NDArray[np.float32]:
    """What rounding x to `step`, and the weights' columns to 1/127 of their maximum, can cost."""
    half_step = np.asarray(step, np.float32) / 2
    of_x = half_step * np.abs(linear.weight).sum(axis=0)
    column_steps = np.abs(linear.weight).max(axis=0) / 127
    of_weights = (np.abs(x) + half_step).sum(axis=-1, keepdims=True) * column_steps / 2
    bound: NDArray[np.float32] = (of_x + of_weights) * 1.001 + 1e-5
    return bound


def test_in_float_it_is_the_product_plus_the_bias() -> None:
    x, linear = example(1, 3.0)
    found = run(FloatDense, x, linear, KnownRange(1.0))
    np.testing.assert_allclose(found, exact(x, linear), rtol=1e-4, atol=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100))
def test_with_a_known_range_the_error_is_that_of_rounding(seed: int, largest: float) -> None:
    x, linear = example(seed, largest)
    found = run(Int8Dense, x, linear, KnownRange(largest))
    assert (np.abs(found - exact(x, linear)) <= rounding_error(x, linear, largest / 127)).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1, 100))
def test_with_a_range_per_token_each_token_is_rounded_by_its_own_maximum(
    seed: int, largest: float
) -> None:
    x, linear = example(seed, 1.0)
    x[:, 0] *= np.float32(largest)
    x = np.maximum(x, np.float32(-0.17))
    steps = np.maximum(x.max(axis=-1, keepdims=True), np.float32(0.17)) / 127
    found = run(Int8Dense, x, linear, PerTokenRange(0.17))
    assert (np.abs(found - exact(x, linear)) <= rounding_error(x, linear, steps)).all()


def test_a_token_of_zeros_gives_the_bias() -> None:
    x, linear = example(2, 1.0)
    found = run(Int8Dense, np.zeros_like(x), linear, PerTokenRange(0.17))
    np.testing.assert_allclose(found, np.broadcast_to(linear.bias, found.shape), atol=1e-5)


def test_a_declared_outlier_channel_does_not_coarsen_the_others() -> None:
    x, linear = example(3, 1.0)
    x[..., 7] *= 50
    linear.weight[7] *= np.float32(0.02)  # as in the model: what is large is weighed lightly
    declared = run(Int8Dense, x, linear, KnownRange(1.0, {7: 50.0}))
    plain = run(Int8Dense, x, linear, KnownRange(50.0))
    error = np.abs(declared - exact(x, linear)).mean()
    assert error * 5 < np.abs(plain - exact(x, linear)).mean()


def test_values_beyond_the_known_range_saturate() -> None:
    x, linear = example(4, 1.0)
    beyond = run(Int8Dense, x, linear, KnownRange(0.5))
    # Codes reach from -128 to 127 steps.
    inside = np.clip(x, np.float32(-0.5 * 128 / 127), np.float32(0.5))
    np.testing.assert_allclose(beyond, run(Int8Dense, inside, linear, KnownRange(0.5)), atol=1e-4)
