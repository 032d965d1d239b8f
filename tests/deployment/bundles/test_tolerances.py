"""How far an output may be from its golden value: from rounding, or as the user says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.deployment.bundles.tolerances import EQUAL, least
from tests.deployment.bundles.models import checks, linear, manifest, written


def chain(folder: Path, layers: int) -> Path:
    """Many matrix products, one after the other."""
    random = np.random.default_rng(0)
    weights = [random.standard_normal((64, 64)).astype(np.float32) / 8 for _ in range(layers)]
    nodes = [helper.make_node("MatMul", [f"t{at}", f"w{at}"], [f"t{at + 1}"]) for at in range(layers)]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 64]) for name in ("t0", f"t{layers}")]
    held = [numpy_helper.from_array(one, f"w{at}") for at, one in enumerate(weights)]
    return written(folder, helper.make_graph(nodes, "chain", ports[:1], ports[1:], held), name=f"chain{layers}")


def allowed(folder: Path) -> list[float | None]:
    return [one["tolerance"] for case in manifest(folder)["cases"] for one in case["outputs"]]


def test_a_deep_model_is_allowed_what_rounding_explains(tmp_path: Path) -> None:
    result = onnxsmith.bundle(chain(tmp_path, 60), tmp_path / "o", form="python")
    found = allowed(tmp_path / "o")
    assert all(one is not None and EQUAL < one < 1e-3 for one in found), found
    check = checks(result.report)["python runner"]
    assert check.tolerance == max(one for one in found if one is not None)
    assert f"equal to {check.tolerance:.2g}".replace("e-0", "e-") in result.report.headline
    assert f"`t60` {check.tolerance}" in (tmp_path / "o" / "README.md").read_text()


def test_a_shallow_model_is_allowed_the_least(tmp_path: Path) -> None:
    assert onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="python").ok
    assert set(allowed(tmp_path / "o")) == {EQUAL}


def test_the_difference_is_still_seen(tmp_path: Path) -> None:
    """A weight that is 1% off differs by more than rounding explains."""
    out = tmp_path / "o"
    assert onnxsmith.bundle(chain(tmp_path, 60), out, form="python").ok
    model = onnx.load(out / "model" / "model.onnx")
    array = numpy_helper.to_array(model.graph.initializer[30]).copy()
    array[0] *= 1.01
    model.graph.initializer[30].CopyFrom(numpy_helper.from_array(array, "w30"))
    onnx.save(model, out / "model" / "model.onnx")
    from tests.deployment.bundles.test_python import verified

    assert "differs on input 1" in verified(out)[1]["wrong"][1]


@pytest.mark.parametrize("given", [0.25, 0.0, 1e-7])
def test_a_tolerance_that_is_given(tmp_path: Path, given: float) -> None:
    result = onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="python", tolerance=given)
    assert set(allowed(tmp_path / "o")) == {given}
    assert checks(result.report)["python runner"].tolerance == given


@pytest.mark.parametrize("given", [-1.0, float("nan"), float("inf")])
def test_a_tolerance_that_is_none(tmp_path: Path, given: float) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="python", tolerance=given)
    assert caught.value.problem.id == "verify/tolerance"
    assert not (tmp_path / "o").exists()


def test_whole_numbers_have_none(tmp_path: Path) -> None:
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])]
    ports += [helper.make_tensor_value_info("y", TensorProto.INT64, ["n", 1])]
    graph = helper.make_graph([helper.make_node("ArgMax", ["x"], ["y"], axis=1)], "g", ports[:1], ports[1:])
    result = onnxsmith.bundle(written(tmp_path, graph), tmp_path / "o", form="python", tolerance=0.5)
    assert set(allowed(tmp_path / "o")) == {None}
    assert "python runner: ran, equal (" in result.report.headline


@pytest.mark.parametrize(
    ("value", "expected"),
    [(np.zeros(2, np.float32), 1e-5), (np.zeros(2, np.float16), 4 * 2.0**-10), (np.zeros(2, np.int64), None),
     ([np.zeros(2, np.float32)], 1e-5), ([np.zeros(2, np.int64)], None), (None, None), ([], None)],
)  # fmt: skip
def test_the_least(value: Any, expected: float | None) -> None:
    assert least(value) == expected
