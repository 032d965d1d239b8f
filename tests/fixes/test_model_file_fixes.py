"""Fixes of files that are no valid model."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnxsmith
from tests.fixes.harness import Call, Case, helps, parameters
from tests.graph.test_function_expansion import TWICE, nested

RELU = """
<ir_version: 10, opset_import: ["": 20]>
g (float[batch,3] x) => (float[batch,3] y) { y = Relu(x) }
"""
BYTES = onnx.parser.parse_model(RELU).SerializeToString()


def proto(text: str, change: Callable[[onnx.ModelProto], object] = lambda model: None) -> Callable[[Path], None]:
    """Writes a model without checking it."""

    def write(path: Path) -> None:
        model = onnx.parser.parse_model(text)
        change(model)
        path.write_bytes(model.SerializeToString())

    return write


def relu(*lines: str) -> Callable[[Path], None]:
    """Writes a model of these nodes, as a script with a mistake in it does."""
    nodes = "\n".join(lines)
    return proto(RELU.replace("{ y = Relu(x) }", f"{{ {nodes} }}"))


def with_data(location: str, data: str = "", *, weights: int = 3) -> Callable[[Path], None]:
    """Writes a model whose weights are at `location`, and the data file, which lies at `data`."""

    def write(path: Path) -> None:
        model = onnx.parser.parse_model(RELU.replace("Relu(x)", "Mul(x, w)"))
        weight = onnx.numpy_helper.from_array(np.ones(3, np.float32), "w")
        onnx.external_data_helper.set_external_data(weight, location, 0, 12)
        weight.ClearField("raw_data")
        weight.data_location = onnx.TensorProto.EXTERNAL
        model.graph.initializer.append(weight)
        path.write_bytes(model.SerializeToString())
        if data:
            file = path.parent / data
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(np.ones(weights, np.float32).tobytes())

    return write


def linked(path: Path) -> None:
    """Writes a model as a cache of downloads holds it: its data file is a link to another folder."""
    with_data("m.onnx.data", "blobs/a1b2")(path)
    (path.parent / "blobs/a1b2").rename(path.parent.parent / "a1b2")
    (path.parent / "m.onnx.data").symlink_to(path.parent.parent / "a1b2")


def hard_linked(path: Path) -> None:
    with_data("m.onnx.data", "m.onnx.data")(path)
    os.link(path.parent / "m.onnx.data", path.parent / "same")


def unlinked(path: Path) -> None:
    """Replaces a link by a copy."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def versions(ir_version: int = 10, **opsets: int) -> Callable[[Path], None]:
    def change(model: onnx.ModelProto) -> None:
        model.ir_version = ir_version
        del model.opset_import[:]
        model.opset_import.extend(onnx.helper.make_opsetid("", version) for version in opsets.values())

    return proto(RELU, change)


def sparse(path: Path) -> None:
    model = onnx.parser.parse_model(RELU)
    node = model.graph.node.add(op_type="Unknown", domain="own", output=["z"])
    one = onnx.helper.make_sparse_tensor(
        onnx.helper.make_tensor("v", 1, [1], [1.0]), onnx.helper.make_tensor("i", 7, [1], [0]), [3]
    )
    node.attribute.append(onnx.helper.make_attribute("list", [one, one]))
    path.write_bytes(model.SerializeToString())


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**31)


def expanding(depth: int) -> Callable[[Path], None]:
    """Writes a model whose functions call each other twice."""

    def write(path: Path) -> None:
        path.write_bytes(nested(depth, TWICE).SerializeToString())

    return write


CASES = [
    Case(
        "model/empty",
        "onnxsmith inspect m.onnx",
        {"m.onnx": b""},
        changes={"m.onnx": RELU},
        says=["export or download"],
    ),
    Case(
        "model/not-a-file",
        "onnxsmith inspect exported",
        {"exported/model.onnx": RELU},
        by_hand="onnxsmith inspect exported/model.onnx",
        says=["exported/model.onnx"],
    ),
    Case(
        "model/package",
        "onnxsmith inspect package",
        {
            "package/cpu/m.onnx": RELU,
            "package/manifest.json": '{"schema_version": "1.0", "components": {"net": {"variants": {"cpu": '
            '{"executor_info": {"ort": {"model_file": "m.onnx"}}}}}}}',
        },
        by_hand="onnxsmith inspect package/cpu/m.onnx",
        says=["'package/cpu/m.onnx'"],
    ),
    Case(
        "model/garbage",
        "onnxsmith inspect m.onnx",
        {"m.onnx": b"version https://git-lfs.github.com/spec/v1"},
        changes={"m.onnx": RELU},
        says=["`git lfs pull`"],
    ),
    Case(
        "model/garbage",
        "onnxsmith inspect notes.txt",
        {"notes.txt": "a note", "m.onnx": RELU},
        by_hand="onnxsmith inspect m.onnx",
        says=["m.onnx"],
        name="another file",
    ),
    Case(
        "model/truncated",
        "onnxsmith inspect m.onnx",
        {"m.onnx": BYTES[:-20]},
        changes={"m.onnx": BYTES},
        says=["copy, download or export it again"],
    ),
    Case(
        "model/too-large",
        "onnxsmith inspect m.onnx",
        {"m.onnx": large},
        changes={"m.onnx": with_data("m.onnx.data", "m.onnx.data")},
        says=["save_as_external_data=True"],
    ),
    Case(
        "model/unreadable",
        f"onnxsmith inspect {'m' * 300}.onnx",
        {"m.onnx": RELU},
        by_hand="onnxsmith inspect m.onnx",
        says=["check the path"],
    ),
    Case(
        "model/text-syntax",
        "onnxsmith inspect m.onnxtxt",
        {"m.onnxtxt": RELU.replace("}", "")},
        changes={"m.onnxtxt": RELU},
        says=["the notation"],
    ),
    Case(
        "model/text-syntax",
        "onnxsmith inspect m.onnxtxt",
        {"m.onnxtxt": b"\xff\xfe" + BYTES},
        changes={"m.onnx": BYTES},
        by_hand="onnxsmith inspect m.onnx",
        says=["`mv m.onnxtxt m.onnx`"],
        name="bytes",
    ),
    Case(
        "model/ir-too-new",
        "onnxsmith inspect m.onnx",
        {"m.onnx": versions(99, main=20)},
        nth=1,
        then="onnxsmith inspect m-fixed.onnx",
    ),
    Case(
        "model/opset-too-new",
        "onnxsmith inspect m.onnx",
        {"m.onnx": versions(main=99)},
        changes={"m.onnx": RELU},
        says=["export again with opset"],
    ),
    Case(
        "model/no-opset",
        "onnxsmith inspect m.onnx",
        {"m.onnx": versions()},
        changes={"m.onnx": RELU},
        says=["export the model again"],
    ),
    Case(
        "model/invalid",
        "onnxsmith inspect m.onnx",
        {"m.onnx": versions(one=20, other=18)},
        changes={"m.onnx": RELU},
        says=["export the model again"],
        name="two opsets",
    ),
    Case(
        "model/invalid",
        "onnxsmith simplify m.onnx -o s.onnx",
        {"m.onnx": proto(RELU.replace("20", "17").replace("Relu", "Gelu"))},
        then="onnxsmith simplify m-fixed.onnx -o s.onnx",
        name="an operator that is newer than the opset",
    ),
    Case("model/external-missing", "onnxsmith inspect m.onnx", {"m.onnx": with_data("old.onnx.data", "m.onnx.data")}),
    Case(
        "model/external-missing",
        "onnxsmith inspect model/m.onnx",
        {"model/m.onnx": with_data("m.onnx.data")},
        changes={"model/m.onnx.data": np.ones(3, np.float32).tobytes()},
        says=["copy 'm.onnx.data' into the folder", "/model'"],
        name="not copied",
    ),
    Case(
        "model/external-damaged",
        "onnxsmith inspect m.onnx",
        {"m.onnx": with_data("m.onnx.data", "m.onnx.data", weights=2)},
        changes={"m.onnx": with_data("m.onnx.data", "m.onnx.data")},
        says=["again, together"],
    ),
    Case(
        "model/external-outside",
        "onnxsmith inspect model/m.onnx",
        {"model/m.onnx": linked},
        changes={"model/m.onnx.data": unlinked},
        says=["a1b2'", "replace the link by a copy"],
        name="a link",
    ),
    Case(
        "model/external-outside",
        "onnxsmith inspect m.onnx",
        {"m.onnx": hard_linked},
        changes={"m.onnx.data": unlinked},
        says=["m.onnx.data'", "replace the link by a copy"],
        name="a hard link",
    ),
    Case(
        "model/external-outside",
        "onnxsmith inspect m.onnx",
        {"m.onnx": with_data("weights/../w.bin", "w.bin")},
        then="onnxsmith inspect m-fixed.onnx",
        name="a path",
    ),
    Case(
        "model/unsorted",
        "onnxsmith inspect m.onnx",
        {"m.onnx": relu("y = Relu(a)", "a = Relu(x)")},
        then="onnxsmith inspect sorted.onnx",
    ),
    Case(
        "model/cyclic",
        "onnxsmith inspect m.onnx",
        {"m.onnx": relu("a = Relu(b)", "b = Relu(a)", "y = Add(x, b)")},
        changes={"m.onnx": RELU},
        says=["undo the edit"],
    ),
    Case(
        "model/expands",
        "onnxsmith inspect m.onnx",
        {"m.onnx": expanding(30)},
        changes={"m.onnx": expanding(3)},
        says=["less often where the model is made"],
    ),
    Case(
        "model/duplicate-name",
        "onnxsmith inspect m.onnx",
        {"m.onnx": relu("y = Relu(x)", "y = Neg(x)")},
        changes={"m.onnx": relu("y = Relu(x)", "z = Neg(x)")},
        says=["nodes[1].output[0] = 'y_2'"],
    ),
    Case(
        "model/undefined-input",
        "onnxsmith inspect m.onnx",
        {"m.onnx": relu("relu_out = Relu(x)", "y = Neg(relu_ouput)")},
        changes={"m.onnx": relu("relu_out = Relu(x)", "y = Neg(relu_out)")},
        says=["'relu_out'"],
    ),
    Case(
        "model/undefined-output",
        "onnxsmith inspect m.onnx",
        {"m.onnx": proto(RELU.replace(") {", ", float z) {"))},
        nth=1,
        then="onnxsmith inspect m-fixed.onnx",
    ),
    Case(
        "model/undefined-output",
        "onnxsmith inspect m.onnx",
        {
            "m.onnx": relu(
                "c = Constant<value_int = 1>()",
                "k = Cast<to = 9>(c)",
                "y = If<then_branch = t () => (float[batch,3] x) {}, "
                "else_branch = e () => (float[batch,3] v) { v = Neg(x) }>(k)",
            )
        },
        changes={
            "m.onnx": relu(
                "c = Constant<value_int = 1>()",
                "k = Cast<to = 9>(c)",
                "y = If<then_branch = t () => (float[batch,3] u) { u = Identity(x) }, "
                "else_branch = e () => (float[batch,3] v) { v = Neg(x) }>(k)",
            )
        },
        says=['"Identity"'],
        name="in a branch",
    ),
    Case(
        "model/unnamed",
        "onnxsmith inspect m.onnx",
        {"m.onnx": proto(RELU, lambda model: model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(3))))},
        changes={"m.onnx": RELU},
        says=["name it"],
    ),
    Case(
        "model/no-graph",
        "onnxsmith inspect m.onnx",
        {"m.onnx": proto(RELU, lambda model: model.ClearField("graph"))},
        changes={"m.onnx": RELU},
        says=["export the model again"],
    ),
    Case(
        "model/not-carried",
        "onnxsmith inspect m.onnx",
        {"m.onnx": sparse},
        changes={"m.onnx": RELU},
        says=["dense"],
    ),
    Case(
        "model/unknown-tensor",
        "onnxsmith dump m.onnx -o d.npz --tensor relu",
        {"m.onnx": RELU},
        by_hand="onnxsmith dump m.onnx -o d.npz --tensor y",
        says=["lists the names"],
    ),
    Call("model/not-given", lambda: onnxsmith.inspect(None), lambda: None, ["give the path of a file"]),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case | Call, tmp_path: Path) -> None:
    helps(one, tmp_path)
