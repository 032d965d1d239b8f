"""What a profile says of the model as a whole, of local functions, and in which order."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.targets.profiles.condition_result import Outlook
from onnxsmith.targets.profiles.node_acceptance import Foreseen, foresee, worst
from onnxsmith.targets.profiles.profile_reader import parsed
from tests.targets.profiles.asking import START, foreseen, told

RELU = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
LISTED = '[[operators]]\nnames = ["Relu", "Add"]\n'


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("opset = { max = 16 }", "the model has opset 17; the target accepts at most 16"),
        ("opset = [15, 16]", "the model has opset 17; the target accepts one of 15, 16"),
        ("max_ir_version = 9", "the IR version is 10; the target accepts at most 9"),
    ],
)
def test_versions(limit: str, expected: str) -> None:
    entries = foreseen(f"{limit}\n{LISTED}", RELU)
    assert [(one.node is None, str(one.outlook), one.reason) for one in entries] == [
        (True, "refused", expected),
        (False, "fits", ""),
    ]
    assert worst(entries) is Outlook.REFUSED


def test_versions_that_fit() -> None:
    assert told(f"opset = {{ min = 7, max = 17 }}\nmax_ir_version = 10\n{LISTED}", RELU) == [("fits", "")]


def test_the_bytes_of_all_weights() -> None:
    graph = (
        "g (float[2] x) => (y) <float[2] w = {1, 2}> "
        "{ a = Add(x, w) c = Constant<value_floats = [1.0, 2.0]>() y = Add(a, c) }"
    )
    assert told(f"max_weight_bytes = 15\n{LISTED}", graph)[0] == (
        "refused",
        "the weights have 16 bytes; the target accepts at most 15",
    )
    assert told(f"max_weight_bytes = 16\n{LISTED}", graph) == [("fits", ""), ("fits", "")]


FUNCTION = """<ir_version: 10, opset_import: ["": 17, "own": 1]>
g (float[2] x) => (float[2] y) { a = own.f(x) y = Relu(a) }
<domain: "own", opset_import: ["": %d]> f (p) => (q) { q = %s(p) }
"""


@pytest.mark.parametrize(
    ("keys", "inner", "expected"),
    [
        (
            "functions = false",
            "Relu",
            ("refused", "local functions are not supported; `onnxsmith inline` replaces them"),
        ),
        ("", "Relu", ("unknown", "the table does not say whether local functions are supported")),
        ("functions = true", "Relu", ("fits", "calls the local function f, whose nodes are judged one by one")),
        ("functions = true", "Neg", ("refused", "calls the local function f, whose nodes are judged one by one")),
    ],
)
def test_local_functions(keys: str, inner: str, expected: tuple[str, str]) -> None:
    model = from_text(FUNCTION % (17, inner))
    entries = foresee(model, parsed(f"{START}{keys}\n{LISTED}", "board.toml"))
    assert (str(entries[0].outlook), entries[0].reason) == expected
    assert [entry.node.op_type for entry in entries if entry.node] == ["f", "Relu", inner]


def test_the_opset_of_a_function() -> None:
    model = from_text(FUNCTION % (18, "Relu"))
    entries = foresee(model, parsed(f"{START}opset = 17\nfunctions = true\n{LISTED}", "board.toml"))
    assert entries[0].reason == "the function f has opset 18; the target accepts 17"


def test_entries_are_of_the_model_itself_in_its_order_without_constants() -> None:
    model = from_text(
        '<ir_version: 10, opset_import: ["": 17]> g (float[2] x) => (y) '
        "{ c = Constant<value_floats = [1.0, 2.0]>() a = Add(x, c) y = Relu(a) }"
    )
    entries = foresee(model, parsed(START + LISTED, "board.toml"))
    assert [entry.node for entry in entries] == [node for node in walk.all_nodes(model) if node.op_type != "Constant"]


def test_the_source_of_an_entry() -> None:
    sources = 'sources = ["https://board.example/list"]\n'
    own = '[[operators]]\nnames = ["Relu"]\nrank = 3\nsource = "https://board.example/relu"\n'
    assert [one.source for one in foreseen(sources + own, RELU)] == ["https://board.example/relu"]
    assert [one.source for one in foreseen(sources + LISTED, RELU)] == ["https://board.example/list"]
    assert [one.source for one in foreseen(LISTED, RELU)] == ["board"]


def test_the_model_stays_as_it_was() -> None:
    model = from_text(f'<ir_version: 10, opset_import: ["": 17]> {RELU}')
    before = ir.to_proto(model).SerializeToString()
    foresee(model, parsed(START + LISTED, "board.toml"))
    assert ir.to_proto(model).SerializeToString() == before


def test_the_worst_of_nothing_fits() -> None:
    assert worst([]) is Outlook.FITS
    assert worst([Foreseen(None, Outlook.UNKNOWN, "", ""), Foreseen(None, Outlook.FITS, "", "")]) is Outlook.UNKNOWN
