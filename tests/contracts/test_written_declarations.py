"""Every verb that writes a model declares its outputs and intermediate tensors as its runs give them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError

WRONG = "y was declared as float[batch,16], but is"
INSIDE = "1 intermediate tensor was declared with a wrong shape or dtype"


def weights(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.random.default_rng(len(name)).normal(size=shape).astype(np.float32), name)


def saved(file: Path, *, output: str, inside: int, twice: bool = False) -> Path:
    """Writes a network whose output has twice as many rows as its input. It declares `output` rows, and `inside` as the
    width of a tensor with 64 columns. With `twice`, two nodes have one name, which onnxruntime refuses."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"], name="first" if twice else "second"),
        helper.make_node("MatMul", ["r", "w2"], ["z"], name="third"),
        helper.make_node("Reshape", ["z", "target"], ["y"], name="fourth"),
    ]
    target = numpy_helper.from_array(np.array([-1, 16], np.int64), "target")
    held = [weights("w", 6, 64), weights("w2", 64, 32), weights("b", 64), target]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", ["batch", 6]), ("y", [output, 16]), ("h", ["batch", 64]), ("r", ["batch", inside]))
    ]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:2], held, value_info=ports[2:])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.example.unused", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), file)
    return file


def edited(source: Path, target: Path, steps: Callable[[Any], object]) -> Any:
    with onnxsmith.edit(source, target) as m:
        steps(m)
    return m.result


def merged(source: Path, target: Path) -> Any:
    second = source.with_name("second.onnx")
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[k,16] y) => (float[k,16] v) { v = Relu(y) }'
    onnx.save(onnx.parser.parse_model(text), second)
    return onnxsmith.merge(source, second, target)


def split(source: Path, target: Path) -> Any:
    done = onnxsmith.split(source, target.with_suffix(""), at=["r"])
    (target.with_suffix("") / "piece_1.onnx").rename(target)
    return done


VERBS: dict[str, Callable[[Path, Path], Any]] = {
    "simplify": onnxsmith.simplify,
    "quantize": lambda a, b: onnxsmith.quantize(a, b, to="float16", measure_time=False),
    "prune": lambda a, b: onnxsmith.prune(a, b, multiple=1, measure_time=False),
    "bisect": lambda a, b: onnxsmith.bisect(a, model=b, tolerance=0.01),
    "merge": merged,
    "opset": lambda a, b: edited(a, b, lambda m: m.opset(18)),
    "layout": lambda a, b: edited(a, b, lambda m: m.layout(input="x", to="1,0")),
    "split": split,
}
AXES = {"merge": "v"}


def declared(file: Path) -> dict[str, list[str | int]]:
    graph = onnx.load(file).graph
    return {
        one.name: [dim.dim_param or dim.dim_value for dim in one.type.tensor_type.shape.dim]
        for one in (*graph.output, *graph.value_info)
    }


@pytest.mark.parametrize("verb", VERBS)
def test_a_wrong_output_is_corrected_and_named(verb: str, tmp_path: Path) -> None:
    source = saved(tmp_path / "m.onnx", output="batch", inside=64)
    report = VERBS[verb](source, tmp_path / "n.onnx").report
    name = AXES.get(verb, "y")
    assert declared(tmp_path / "n.onnx")[name] == ["2*batch", 16]
    assert WRONG.replace("y ", f"{name} ", 1) in report.headline


@pytest.mark.parametrize("verb", VERBS)
def test_a_wrong_intermediate_tensor_is_corrected_and_counted(verb: str, tmp_path: Path) -> None:
    source = saved(tmp_path / "m.onnx", output="rows", inside=7)
    report = VERBS[verb](source, tmp_path / "n.onnx").report
    assert INSIDE in report.headline
    assert all(shape[1] != 7 for shape in declared(tmp_path / "n.onnx").values() if len(shape) > 1)


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_right_is_left_alone(verb: str, tmp_path: Path) -> None:
    source = saved(tmp_path / "m.onnx", output="rows", inside=64)
    report = VERBS[verb](source, tmp_path / "n.onnx").report
    assert "declared" not in report.headline


@pytest.mark.parametrize("verb", ["simplify", "prune", "merge", "split", "opset"])
def test_an_opset_import_without_a_node_goes(verb: str, tmp_path: Path) -> None:
    source = saved(tmp_path / "m.onnx", output="rows", inside=64)
    VERBS[verb](source, tmp_path / "n.onnx")
    assert [one.domain for one in onnx.load(tmp_path / "n.onnx").opset_import] == [""]


def test_a_fix_for_a_target_corrects_too(tmp_path: Path) -> None:
    source = saved(tmp_path / "m.onnx", output="batch", inside=64, twice=True)
    report = onnxsmith.check(source, ["onnxruntime"], tmp_path / "n.onnx", fix=True).report
    assert WRONG in report.headline
    assert declared(tmp_path / "n.onnx")["y"] == ["2*batch", 16]


def test_a_bundle_refuses_a_wrong_output(tmp_path: Path) -> None:
    source = saved(tmp_path / "m.onnx", output="batch", inside=64)
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.bundle(source, tmp_path / "bundle", form="python")
    assert caught.value.problem.id == "bundle/declared"
    assert not (tmp_path / "bundle").exists()


def test_a_bundle_names_wrong_intermediate_tensors(tmp_path: Path) -> None:
    source = saved(tmp_path / "m.onnx", output="rows", inside=7)
    report = onnxsmith.bundle(source, tmp_path / "bundle", form="python").report
    assert "1 intermediate tensor is declared with a wrong shape or dtype" in report.headline
