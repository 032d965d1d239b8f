"""What a cause advises works: its command turns a model with the fault into one without it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.checker
import onnx.numpy_helper
import onnx.parser
import onnxruntime
import pytest

import onnxsmith
from onnxsmith.base.report.parts.explanations import MessageCause

OUTPUT_RANK = """<ir_version: 8, opset_import: ["": 15]>
g (float[I, 2] x, float[2] b) => (float[I] y) { y = Add(x, b) }"""
OUTPUT_DTYPE = """<ir_version: 8, opset_import: ["": 17]>
g (float[n, 4] x) => (float[n] y) { [a] y = ArgMax<axis = 1, keepdims = 0>(x) }"""
NEW_ALLOWZERO = """<ir_version: 8, opset_import: ["": 13]>
g (float[2,3] x) => (float[3,2] y) <int64[2] s = {3, 2}> { y = Reshape<allowzero = 0>(x, s) }"""
OLD_AXES = """<ir_version: 7, opset_import: ["": 17]>
g (float[n, 4] x) => (float[n] y) { [s] y = ReduceSum<axes = [1], keepdims = 0>(x) }"""
BOTH = """<ir_version: 8, opset_import: ["": 13]>
g (float[1, 1, 4, 4] x) => (float[1, 1, 8, 8] y)
<float[4] s = {1, 1, 2, 2}, int64[4] z = {1, 1, 8, 8}> { [r] y = Resize(x, "", s, z) }"""
TWICE = """<ir_version: 9, opset_import: ["": 20, "": 12]>
g (float[2] x) => (float[2] y) { y = Relu(x) }"""
CONV = """<ir_version: 8, opset_import: ["": 17]>
g (float[1, 1, 8, 8] x) => (float[1, 2, 6, 6] y) <float[2, 1, 3, 3] w = {1, 1, 1, 1, 1, 1, 1, 1, 1,
2, 2, 2, 2, 2, 2, 2, 2, 2}> { [c] y = Conv(x, w) }"""
NAMES = """<ir_version: 8, opset_import: ["": 17]>
g (float[2] x) => (float[2] y) { [n] a = Relu(x) [n] y = Neg(a) }"""
IDENTITY = """<ir_version: 8, opset_import: ["": 13]>
g (float[1, 4] x) => (float[2, 2] y) <int64[2] w = {2, 2}> { w2 = Identity(w) y = Reshape(x, w2) }"""


def advised(text: str, model: Path, starting: str) -> list[str]:
    """The first command of the cause that starts so, for this model."""
    cause = onnxsmith.explain(text, model).part(MessageCause)
    return next(shlex.split(one.run) for one in cause.helps if one.run.startswith(starting))


def written(tmp_path: Path, graph: str) -> Path:
    model = onnx.parser.parse_model(graph)
    onnx.save(model, str(tmp_path / "model.onnx"))
    return tmp_path / "model.onnx"


def followed(tmp_path: Path, words: list[str]) -> Path:
    """Runs the command in the folder of the model; returns the file that it wrote."""
    before = set(tmp_path.iterdir())
    program = {"python": [sys.executable], "onnxsmith": [sys.executable, "-m", "onnxsmith"]}[words[0]]
    done = subprocess.run(
        [*program, *words[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=120, env=os.environ, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    (made,) = (file for file in set(tmp_path.iterdir()) - before if file.suffix == ".onnx")
    return made


def loads(path: Path) -> onnxruntime.InferenceSession:
    onnx.checker.check_model(str(path), full_check=True)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    ("graph", "text", "starting"),
    [
        (
            OUTPUT_RANK,
            "(op_type:Add): [ShapeInferenceError] Inferred shape and existing shape differ in rank: (2) vs (1)",
            "python",
        ),
        (
            OUTPUT_DTYPE,
            "Type (tensor(float)) of output arg (y) of node (a) does not match expected type (tensor(int64)).",
            "python",
        ),
        (OLD_AXES, "Unrecognized attribute: axes for operator ReduceSum", "python"),
        (NEW_ALLOWZERO, "Unrecognized attribute: allowzero for operator Reshape", "python"),
        (
            BOTH,
            "Node (r) Op (Resize) [ShapeInferenceError] Either sizes or scales must be provided, but not both of them",
            "python",
        ),
    ],
    ids=["output rank", "output dtype", "old attribute", "new attribute", "sizes and scales"],
)
def test_the_command_mends_a_model_that_was_refused(tmp_path: Path, graph: str, text: str, starting: str) -> None:
    path = written(tmp_path, graph)
    with pytest.raises(Exception, match=r"(?s)."):
        loads(path)
    made = followed(tmp_path, advised(text, path, starting))
    session = loads(made)
    shapes = [[size if isinstance(size, int) else 2 for size in given.shape] for given in session.get_inputs()]
    feeds = {given.name: np.ones(shape, np.float32) for given, shape in zip(session.get_inputs(), shapes, strict=True)}
    assert session.run(None, feeds)[0].size


TWO_DTYPES = """<ir_version: 8, opset_import: ["": 17]>
g (float[n, 4] x, int64[4] k) => (float[n, 4] y) { a = Relu(x) [mul] y = Mul(a, k) }"""
CHOICE = """<ir_version: 8, opset_import: ["": 17]>
g (bool[4] c, float[4] x, double[4] z) => (float[4] y) { [pick] y = Where(c, x, z) }"""
CHANNELS_FIRST = """<ir_version: 8, opset_import: ["": 17]>
g (float[1, 3, 8, 8] image) => (float[1, 3, 8, 8] y) { y = Relu(image) }"""
OPEN_SIZES = """<ir_version: 8, opset_import: ["": 17]>
g (float[n, c, h, w] image) => (float[n, 1, h, w] y) <float[1, 3, 1, 1] k = {1, 2, 3}> { [c] y = Conv(image, k) }"""
CHANNELS_LAST = CHANNELS_FIRST.replace("1, 3, 8, 8", "1, 8, 8, 3")


def pasted(tmp_path: Path, command: str) -> Path:
    """Runs the command in a shell, in the folder of the model; returns the file that it wrote."""
    before = set(tmp_path.iterdir())
    whole = command.replace("onnxsmith ", f"{shlex.quote(sys.executable)} -m onnxsmith ")
    done = subprocess.run(
        ["sh", "-c", whole], cwd=tmp_path, capture_output=True, text=True, timeout=120, env=os.environ, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    (made,) = (file for file in set(tmp_path.iterdir()) - before if file.suffix == ".onnx")
    return made


def commands(text: str, model: Path) -> list[str]:
    return [one.run for one in onnxsmith.explain(text, model).part(MessageCause).helps]


@pytest.mark.skipif(os.name != "posix", reason="the command is written for a POSIX shell")
@pytest.mark.parametrize("graph", [TWO_DTYPES, CHOICE], ids=["second operand", "third operand"])
def test_the_cast_is_inserted_as_it_is_pasted(tmp_path: Path, graph: str) -> None:
    path = written(tmp_path, graph)
    with pytest.raises(Exception, match="bound to different types") as caught:
        onnxruntime.InferenceSession(str(path))
    text = str(caught.value)
    cast = next(run for run in commands(text, path) if run.startswith("printf"))
    loads(pasted(tmp_path, cast))


def test_an_attribute_gets_the_type_of_its_operator(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) {
    [e] y = Elu<alpha = 2>(x) }""",
    )
    with pytest.raises(Exception, match="alpha"):
        loads(path)
    text = """Attribute 'alpha' is expected to have field 'f'"""
    made = followed(tmp_path, advised(text, path, "python"))
    assert loads(made).run(None, {"x": np.zeros(2, np.float32)})[0].size


@pytest.mark.skipif(os.name != "posix", reason="the command is written for a POSIX shell")
def test_the_tensor_in_front_of_a_zipmap_becomes_the_output(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]>
    g (float[1, 2] x) => (seq(map(int64, float)) z) { p = Softmax(x)
    z = ai.onnx.ml.ZipMap<classlabels_int64s = [0, 1]>(p) }""",
    )
    text = "Reading data from non-tensor typed value is not supported"
    command = next(run for run in commands(text, path) if run.startswith("printf"))
    made = pasted(tmp_path, command.replace("TENSOR", "p").replace("OUTPUT", "z"))
    assert [one.name for one in loads(made).get_outputs()] == ["p"]


@pytest.mark.parametrize(
    ("graph", "shape"),
    [(CHANNELS_FIRST, (1, 8, 8, 3)), (CHANNELS_LAST, (1, 3, 8, 8)), (OPEN_SIZES, (1, 8, 8, 3))],
    ids=["NHWC given", "NCHW given", "NHWC given to symbolic sizes"],
)
def test_the_model_takes_the_layout_of_the_array(tmp_path: Path, graph: str, shape: tuple[int, ...]) -> None:
    path = written(tmp_path, graph)
    feeds = {"image": np.ones(shape, np.float32)}
    with pytest.raises(Exception, match=r"Got: |Input channels C") as caught:
        loads(path).run(None, feeds)
    runs = commands(str(caught.value), path)
    assert not any(run.startswith("onnxsmith set-dim") for run in runs)
    layout = next(run for run in runs if run.startswith("onnxsmith layout"))
    assert loads(followed(tmp_path, shlex.split(layout))).run(None, feeds)[0].size


def test_one_opset_is_left(tmp_path: Path) -> None:
    path = written(tmp_path, TWICE)
    made = onnx.load(str(followed(tmp_path, advised("Failed to find proper ai.onnx domain", path, "python"))))
    assert [(one.domain, one.version) for one in made.opset_import] == [("", 20)]


def test_after_the_older_opset_the_model_converts_to_a_newer_one(tmp_path: Path) -> None:
    path = written(tmp_path, OLD_AXES)
    text = "Unrecognized attribute: axes for operator ReduceSum"
    assert followed(tmp_path, advised(text, path, "python")).name == "fixed.onnx"
    newer = followed(tmp_path, advised(text, path, "onnxsmith opset"))
    assert onnx.load(str(newer)).opset_import[0].version == 17
    loads(newer)


def test_kernel_shape_is_written(tmp_path: Path) -> None:
    path = written(tmp_path, CONV)
    text = "in get_weights_constant_or_variable values = values.transpose(table) ValueError: axes don't match array"
    made = onnx.load(str(followed(tmp_path, advised(text, path, "python"))))
    (shape,) = (attribute for attribute in made.graph.node[0].attribute if attribute.name == "kernel_shape")
    assert list(shape.ints) == [3, 3]


def test_nodes_get_unique_names(tmp_path: Path) -> None:
    path = written(tmp_path, NAMES)
    made = onnx.load(str(followed(tmp_path, advised("Error: two nodes with same node name (n).", path, "python"))))
    assert len({node.name for node in made.graph.node}) == 2


def test_initializers_become_inputs_for_an_old_tensorrt(tmp_path: Path) -> None:
    path = written(tmp_path, CONV)
    made = onnx.load(str(followed(tmp_path, advised("Assertion failed: tensors.count(input_name)", path, "python"))))
    assert [given.name for given in made.graph.input] == ["x", "w"]


def test_shapes_are_written_for_the_tensorrt_provider(tmp_path: Path) -> None:
    path = written(tmp_path, NAMES)
    made = onnx.load(str(followed(tmp_path, advised("TensorRT input: a has no shape specified", path, "python"))))
    assert [value.name for value in made.graph.value_info] == ["a"]


def test_simplify_removes_the_node_that_reads_constants_only(tmp_path: Path) -> None:
    path = written(tmp_path, IDENTITY)
    text = "Node [Identity]:(w2) parse error: (-215:Assertion failed) inputs.size() in function 'a::getMemoryShapes'"
    made = onnx.load(str(followed(tmp_path, advised(text, path, "onnxsmith simplify"))))
    assert [node.op_type for node in made.graph.node] == ["Reshape"]


def test_a_fault_of_the_file_is_said_even_if_the_message_names_nothing(tmp_path: Path) -> None:
    report = onnxsmith.explain("ValueError: Failed to find proper ai.onnx domain", written(tmp_path, TWICE))
    assert any("imports two versions" in found.what for found in report.problems)


def test_a_data_file_that_is_short_is_said(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    model = onnx.parser.parse_model(CONV)
    for tensor in model.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), tensor.name))
    onnx.save(model, str(path), save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "m.data").write_bytes((tmp_path / "m.data").read_bytes()[:40])
    text = (
        "External initializer: w offset: 0 size to read: 72 given file_length: 40 are out of bounds or can not be read"
    )
    report = onnxsmith.explain(text + " in full.", path)
    assert report.part(MessageCause).names["length"] == "40"
    assert [found.id for found in report.problems] == ["model/external-damaged"]
