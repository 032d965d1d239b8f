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
