"""Operators that take the place of those of the reference evaluator, held to the standard's formula."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

from onnxsmith.graph.files.load import load
from onnxsmith.runtimes import base as runtimes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)
SCALE, BIAS, MEAN = RNG.normal(size=(3, 3)).astype(np.float32)
VAR = RNG.uniform(0.5, 2, 3).astype(np.float32)


def normalised(opset: int, outputs: int = 1, **attributes: int) -> list[np.ndarray]:
    names = [f"y{number}" for number in range(outputs)]
    held = {"s": SCALE, "b": BIAS, "m": MEAN, "v": VAR}
    graph = helper.make_graph(
        [helper.make_node("BatchNormalization", ["x", *held], names, **attributes)],
        "g",
        [helper.make_tensor_value_info("x", 1, X.shape)],
        [helper.make_tensor_value_info(name, 1, None) for name in names],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    model = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6))
    with runtimes.get("reference").prepare(model) as session:
        found = session.run({"x": X})
    return [np.asarray(found[name]) for name in names]


def formula(mean: np.ndarray, var: np.ndarray) -> np.ndarray:
    scale, bias, mean, var = (one[:, None] for one in (SCALE, BIAS, mean, var))
    return scale * (X - mean) / np.sqrt(var + 1e-5) + bias


@pytest.mark.parametrize("opset", [7, 9, 13, 14, 15, 20])
def test_one_output_is_normalised_by_the_given_statistics(opset: int) -> None:
    np.testing.assert_allclose(normalised(opset)[0], formula(MEAN, VAR), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("opset", "attributes"), [(9, {}), (15, {"training_mode": 1})])
def test_training_uses_the_statistics_of_the_batch(opset: int, attributes: dict[str, int]) -> None:
    mean, var = X.mean((0, 2)), X.var((0, 2))
    y, running_mean, running_var = normalised(opset, 3, **attributes)
    np.testing.assert_allclose(y, formula(mean, var), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(running_mean, MEAN * 0.9 + mean * 0.1, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(running_var, VAR * 0.9 + var * 0.1, rtol=1e-5, atol=1e-6)


def looped(count: int | None, most: float, *, given: bool) -> list[np.ndarray]:
    """Doubles `s` until an element exceeds `most`, and collects each value (two axes)."""
    nodes = [
        helper.make_node("Add", ["s", "s"], ["next"]),
        helper.make_node("ReduceMax", ["next"], ["top"], keepdims=0),
        helper.make_node("Less", ["top", "most"], ["on"]),
        helper.make_node("Identity", ["next"], ["row"]),
    ]
    body = helper.make_graph(
        nodes,
        "body",
        [helper.make_tensor_value_info(*one) for one in (("turn", 7, []), ("c", 9, []), ("s", 1, [2, 3]))],
        [helper.make_tensor_value_info(*one) for one in (("on", 9, []), ("next", 1, [2, 3]), ("row", 1, [2, 3]))],
    )
    held = {"most": np.float32(most), "true": np.array(True)} | ({} if count is None else {"count": np.int64(count)})
    inputs = ["" if count is None else "count", "true" if given else "", "x"]
    graph = helper.make_graph(
        [helper.make_node("Loop", inputs, ["y", "rows"], body=body)],
        "g",
        [helper.make_tensor_value_info("x", 1, [2, 3])],
        [helper.make_tensor_value_info("y", 1, [2, 3]), helper.make_tensor_value_info("rows", 1, ["n", 2, 3])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in held.items()],
    )
    model = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    with runtimes.get("reference").prepare(model) as session:
        found = session.run({"x": np.ones((2, 3), np.float32)})
    return [np.asarray(found[name]) for name in ("y", "rows")]


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize(("count", "most", "turns"), [(3, 1e9, 3), (9, 5, 3), (None, 5, 3), (0, 5, 0)])
def test_a_loop_runs_as_often_as_the_standard_says(count: int | None, most: float, turns: int, given: bool) -> None:
    y, rows = looped(count, most, given=given)
    np.testing.assert_array_equal(y, np.full((2, 3), 2.0**turns))
    np.testing.assert_array_equal(rows, np.ones((turns, 2, 3)) * 2.0 ** np.arange(1, turns + 1)[:, None, None])
