"""The built-in profiles: what they name exists, and single rows say what their source says."""

from __future__ import annotations

import datetime
import warnings
from functools import cache

import onnx
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.load import from_proto
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import schema, walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.targets.profiles.condition_result import Outlook
from onnxsmith.targets.profiles.node_acceptance import Foreseen, foresee
from onnxsmith.targets.profiles.profile_format import Profile
from onnxsmith.targets.profiles.profile_reader import built_in, named

NAMES = [
    "coreml-mlprogram", "coreml-neuralnetwork", "onnxruntime", "openvino", "qnn", "rknn", "tensorrt-10", "tensorrt-11",
    "tensorrt-rtx", "tract", "web", "webgpu",
]  # fmt: skip
COUNTS = {
    "coreml-mlprogram": 58, "coreml-neuralnetwork": 36, "qnn": 132, "rknn": 88, "tensorrt-10": 154, "tensorrt-11": 196,
    "webgpu": 106,
    "onnxruntime": 296, "openvino": 177, "tensorrt-rtx": 152, "tract": 171, "web": 202,
}  # fmt: skip
"""Operators that each table lists, counted in its source; without operators that ONNX does not have."""


def test_the_built_in_profiles() -> None:
    assert list(built_in()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_is_complete(name: str) -> None:
    profile = named(name)  # names of operators, operands and attributes are checked here
    assert profile.id == name
    assert profile.version
    assert isinstance(profile.date, datetime.date)
    assert all(source.startswith("https://") for source in profile.sources)
    assert profile.sources
    assert profile.unsaid
    assert len(profile.listed) == COUNTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_every_operator_exists(name: str) -> None:
    for operator in (*named(name).listed, *named(name).refused):
        domain, _, op = operator.rpartition("::")
        assert domain == "com.microsoft" or schema.versions(op, domain)


@pytest.mark.parametrize("name", NAMES)
def test_every_attribute_of_an_operator_exists_in_one_of_its_versions(name: str) -> None:
    for operator, entry in named(name).listed.items():
        if "::" not in operator:
            versions = [schema.find(operator, "", one) for one in schema.versions(operator, "")]
            known = {attribute for one in versions if one is not None for attribute in one.attributes}
            assert set(entry.attributes) <= known


def outlooks(name: str, graph: str, opset: int = 17) -> list[tuple[str, str]]:
    model = from_text(f'<ir_version: 10, opset_import: ["": {opset}]>\n{graph}')
    return [(str(one.outlook), one.reason) for one in foresee(model, named(name))]


POOL = "g (float[1,3,8%s] x) => (y) { y = MaxPool<kernel_shape = [%s]%s>(x) }"
RESIZE = 'g (float[1,3,8,8] x) => (y) <float[4] s = {1, 1, 2, 2}> { y = Resize<mode = "%s">(x, , s) }'
SOFTMAX = "g (float[%s,4] x) => (y) { y = Softmax(x) }"
GEMM = "g (float[1,4] x, float[4,2] w) => (y) { y = Gemm(x, w) }"


@pytest.mark.parametrize(
    ("name", "graph", "expected"),
    [
        ("tensorrt-10", POOL % ("", "2", ""), ("refused", "X has rank 3; the target accepts one of 4, 5")),
        ("tensorrt-10", POOL % (",8", "2, 2", ", dilations = [2, 2]"),
         ("refused", "the attribute dilations is [2, 2]; the target accepts 1")),
        ("tensorrt-10", POOL % (",8", "2, 2", ""), ("fits", "")),
        ("tensorrt-10", RESIZE % "cubic",
         ("refused", 'the attribute mode is "cubic"; the target accepts one of "nearest", "linear"')),
        ("tensorrt-11", RESIZE % "nearest", ("fits", "with scales, axes must be 0, 1, … up to the rank")),
        ("tensorrt-10", "g (float[4] x) => (y) { y = Det(x) }", ("refused", "Det is not supported")),
        ("tensorrt-11", "g (float[4] x) => (y) { y = Det(x) }",
         ("unknown", "TensorRT 10.15 does not support it; whether version 11 does is not in the table")),
        ("tensorrt-10", "g (uint8[4] x) => (y) { y = Relu(x) }",
         ("refused", "X is uint8; Relu accepts float32, float16, bfloat16, int64 or int32")),
        ("tensorrt-10", "g (double[4] x) => (y) { y = Sqrt(x) }",
         ("unknown", "X is float64: TensorRT converts it to float32 and clamps larger values")),
        ("tensorrt-10", "g (float[4] x) => (y) { y = HammingWindow(x) }", None),
        ("coreml-mlprogram", GEMM, ("refused", "B must be constant")),
        ("coreml-mlprogram", "g (float[4] x) => (y) { y = Pow(x, x) }", ("fits", "")),
        ("coreml-mlprogram", "g (int64[4] x) => (y) { y = Pow(x, x) }",
         ("refused", "X is int64; Pow accepts float32")),
        ("coreml-neuralnetwork", "g (float[4] x) => (y) { y = Softmax(x) }",
         ("refused", "Softmax is not in the table")),
        ("qnn", SOFTMAX % "n", ("refused", "input has the symbolic dimension n; the target accepts fixed shapes only")),
        ("qnn", SOFTMAX % "1", ("fits", "")),
        ("rknn", SOFTMAX % "2", ("unknown", "dimension 0 of input is 2; the target accepts 1")),
        ("rknn", SOFTMAX % "1", ("fits", "")),
        ("rknn", "g (float[3,2,4] x, float[1,12,4] w, float[1,12,4] r) => (y) { y = GRU<hidden_size = 4>(x, w, r) }",
         ("refused", "dimension 1 of X is 2; the target accepts 1")),
        ("rknn", "g (float[2,4] x) => (y) { y = Round(x) }", ("unknown", "Round is not in the table")),
        ("rknn", "g (float[2,4] x) => (y) { y = Neg(x) }", ("refused", "Neg is not supported")),
        ("webgpu", "g (float[1,3,8,8,8] x, float[1,3,1,1,1] w) => (y) { y = Conv(x, w) }",
         ("refused", "X has rank 5; the target accepts one of 3, 4")),
        ("webgpu", "g (float[1,1,4,4] x, float[1,4,4,2] i) => (y) { y = GridSample(x, i) }", ("fits", "")),
    ],
)  # fmt: skip
def test_rows(name: str, graph: str, expected: tuple[str, str] | None) -> None:
    if expected is None:
        graph = graph.replace("float[4] x", "int64 x")
        expected = ("fits", "")
    assert outlooks(name, graph) == [expected]


def test_versions_of_the_web_table() -> None:
    graph = "g (float[1,1,4,4] x, float[1,4,4,2] i) => (y) { y = GridSample(x, i) }"
    assert outlooks("webgpu", graph, 20) == [("refused", "GridSample has version 20; the target accepts from 16 to 19")]


def test_the_newest_opset() -> None:
    graph = "g (float[4] x) => (y) { y = Relu(x) }"
    assert outlooks("rknn", graph, 20)[0] == ("refused", "the model has opset 20; the target accepts at most 19")
    assert outlooks("tensorrt-10", graph, 25)[0][0] == "refused"
    assert outlooks("tensorrt-11", graph, 25) == [("fits", "")]


@pytest.mark.parametrize("name", ["tensorrt-11", "qnn"])
def test_models_of_all_operators(name: str) -> None:
    """Every node test of onnx gets an entry for each node, and no node fits unless its operator is listed."""
    profile, seen = named(name), 0
    for model in node_models():
        entries = [one for one in foresee(model, profile) if one.node is not None]
        assert len(entries) == sum(not is_constant(node) for node in walk.all_nodes(model))
        assert all(fits_only_if_listed(one.node, one.outlook, profile, model) for one in entries)
        seen += len(entries)
    assert seen > len(onnx.defs.get_all_schemas())


@pytest.mark.parametrize("name", ["tensorrt-11", "qnn", "rknn"])
def test_a_node_does_not_fit_for_lack_of_information(name: str) -> None:
    """Where shapes and types are removed, nothing fits that is refused with them. A fourth of the node tests."""
    profile, fits = named(name), 0
    for model in node_models()[::4]:
        bare = cloned(model)
        values = [value for graph in walk.graphs(bare) for value in (*graph.inputs, *graph.outputs)]
        for value in (*values, *(value for node in walk.all_nodes(bare) for value in node.outputs)):
            if value.const_value is None:
                value.shape = value.type = None
        pairs = zip(nodes_of(foresee(bare, profile)), nodes_of(foresee(model, profile)), strict=True)
        both = [(without.outlook, full.outlook) for without, full in pairs]
        assert (Outlook.FITS, Outlook.REFUSED) not in both
        fits += both.count((Outlook.FITS, Outlook.FITS))
    assert fits > 0


def nodes_of(entries: list[Foreseen]) -> list[Foreseen]:
    return [one for one in entries if one.node is not None]


@cache
def node_models() -> list[ir.Model]:
    """The models of onnx's node tests. Making them overflows casts on purpose."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [from_proto(case.model, where=case.name) for case in load_model_tests(kind="node")]


def is_constant(node: ir.Node) -> bool:
    return (node.op_type, node.domain) == ("Constant", "")


def fits_only_if_listed(node: ir.Node, outlook: Outlook, profile: Profile, model: ir.Model) -> bool:
    if node.op_identifier() in model.functions:
        return True
    return outlook is not Outlook.FITS or walk.op_name(node) in profile.listed
