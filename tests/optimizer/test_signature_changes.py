"""What a model takes and gives can be narrowed before it is simplified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxsmith
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.cli.commands.simplify import Simplify
from onnxsmith.graph.files.text import from_text
from tests.conftest import Refused

WEIGHTS = ["w", "scale", "bias", "mean", "var"]


def old_file(tmp_path: Path, ir_version: int = 3) -> Path:
    """A Conv and a BatchNormalization, as an old exporter writes them: each initializer is a graph input, too."""
    random = np.random.default_rng(0)
    arrays = {"w": random.normal(size=(4, 3, 3, 3)), **{name: random.uniform(1, 2, 4) for name in WEIGHTS[1:]}}
    stored = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    float_ = TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
            helper.make_node("BatchNormalization", ["c", *WEIGHTS[1:]], ["y"], name="norm"),
            helper.make_node("ReduceMean", ["y"], ["m"], axes=[2, 3], keepdims=0),
            helper.make_node("Exp", ["m"], ["e"]),
        ],
        "old",
        [
            helper.make_tensor_value_info("x", float_, ["N", 3, "H", "W"]),
            *(helper.make_tensor_value_info(one.name, float_, list(one.dims)) for one in stored),
        ],
        [
            helper.make_tensor_value_info("y", float_, ["N", 4, "H_", "W_"]),
            helper.make_tensor_value_info("e", float_, ["N", 4]),
        ],
        stored,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=ir_version)
    onnx.save(model, tmp_path / "old.onnx")
    return tmp_path / "old.onnx"


@pytest.mark.parametrize("ir_version", [3, 8])
def test_defaults_stay_and_are_counted_until_they_may_be_fixed(tmp_path: Path, ir_version: int) -> None:
    file = old_file(tmp_path, ir_version)
    kept = onnxsmith.simplify(file, tmp_path / "kept.onnx", why=["fuse/conv-batchnorm@norm"])
    assert "5 initializers can be replaced by a caller" in kept.report.headline
    assert "--fix-defaults" in kept.report.headline
    assert "is also a graph input" in kept.report.to_json()
    assert len(onnx.load(tmp_path / "kept.onnx").graph.node) == 4
    fixed = onnxsmith.simplify(file, tmp_path / "fixed.onnx", fix_defaults=True)
    made = onnx.load(tmp_path / "fixed.onnx")
    assert fixed.ok
    assert "--fix-defaults" not in fixed.report.headline
    assert [node.op_type for node in made.graph.node] == ["Conv", "ReduceMean", "Exp"]
    assert [value.name for value in made.graph.input] == ["x"]
    assert "defaults of inputs that are constants now: 5" in fixed.report.part(Simplification).notes
    x = {"x": np.random.default_rng(1).normal(size=(2, 3, 8, 8)).astype(np.float32)}
    one, two = (onnxruntime.InferenceSession(path).run(None, x) for path in (file, tmp_path / "fixed.onnx"))
    for old, new in zip(one, two, strict=True):
        np.testing.assert_allclose(old, new, rtol=1e-4, atol=1e-5)


def test_sizes_are_fixed_for_good(tmp_path: Path) -> None:
    file = old_file(tmp_path, 8)
    result = onnxsmith.simplify(file, tmp_path / "out.onnx", set_dim=["N=1", "x:2=32"])
    assert result.ok
    port = onnx.load(tmp_path / "out.onnx").graph.input[0]
    assert [dim.dim_value or dim.dim_param for dim in port.type.tensor_type.shape.dim] == [1, 3, 32, "W"]
    onnxsmith.simplify(tmp_path / "out.onnx", tmp_path / "again.onnx", set_dim=["x:2=32"])


def test_outputs_are_left_out_with_what_only_they_needed(tmp_path: Path) -> None:
    result = onnxsmith.simplify(old_file(tmp_path, 8), tmp_path / "out.onnx", keep_output=["y*"], fix_defaults=True)
    made = onnx.load(tmp_path / "out.onnx")
    assert result.ok
    assert [node.op_type for node in made.graph.node] == ["Conv"]
    assert [value.name for value in made.graph.output] == ["y"]
    assert "outputs left out: e" in result.report.part(Simplification).notes


def test_outputs_go_by_name_or_pattern_and_what_is_left_is_compared(tmp_path: Path) -> None:
    file = old_file(tmp_path, 8)
    for given in ({"drop_output": ["e"]}, {"drop_output": ["e*"], "keep_output": ["?"]}):
        result = onnxsmith.simplify(file, tmp_path / "out.onnx", **given)  # type: ignore[arg-type]
        assert result.ok
        assert [value.name for value in onnx.load(tmp_path / "out.onnx").graph.output] == ["y"]
        assert "outputs left out: e" in result.report.part(Simplification).notes
        assert [one.name for one in result.report.part(Verification).outputs] == ["y"]


def test_the_command_leaves_outputs_out(tmp_path: Path) -> None:
    report = Simplify(str(old_file(tmp_path, 8)), str(tmp_path / "out.onnx"), drop_output=("y",)).run()
    assert report.verdict.exit_code == 0
    assert [value.name for value in onnx.load(tmp_path / "out.onnx").graph.output] == ["e"]


@pytest.mark.parametrize(
    "given", [{"drop_output": ["*"]}, {"drop_output": ["y", "e"]}, {"keep_output": ["y"], "drop_output": ["y"]}]
)
def test_all_outputs_cannot_go(tmp_path: Path, given: dict[str, list[str]]) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.simplify(old_file(tmp_path), tmp_path / "out.onnx", **given)  # type: ignore[arg-type]
    assert caught.value.problem.id == "simplify/all-outputs"
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        ({"set_dim": ["n=1"]}, "'N'"),
        ({"set_dim": ["x"]}, "N=1"),
        ({"set_dim": ["y:0=1"]}, "'x'"),
        ({"set_dim": ["x:4=1"]}, "x:0=1"),
        ({"set_dim": ["x:1=4"]}, "onnxsmith set-dim"),
        ({"keep_output": ["z"]}, "'y'"),
        ({"drop_output": ["z"]}, "'y'"),
    ],
)
def test_what_the_model_lacks_is_refused(tmp_path: Path, given: dict[str, list[str]], fix: str) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.simplify(old_file(tmp_path), tmp_path / "out.onnx", **given)  # type: ignore[arg-type]
    assert caught.value.problem.id == "simplify/no-such-port"
    assert fix in caught.value.problem.fix
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("text", ["n=9223372036854775808", "x:0=9223372036854775808", f"x:{'9' * 5_000}=1"])
def test_sizes_above_int64_are_refused(tmp_path: Path, text: str, refused: Refused) -> None:
    model = from_text('<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) { y = Relu(x) }')
    with refused("input/size-range"):
        onnxsmith.simplify(model, tmp_path / "out.onnx", set_dim=[text])
