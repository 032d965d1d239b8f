"""`inspect --program` on ONNX files: the lines that nodes record, and pairs with the lines of a program."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith import inspect
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report, Table
from onnxsmith.base.report.parts.capture import Program, ProgramLine
from onnxsmith.cli.commands.inspect import Inspect
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.reading.program_lines import beside, shortened
from onnxsmith.graph.structure import provenance

PREFIX = "pkg.torch.onnx."
MODEL = """<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) {
    [n0] a = Relu(x) [n1] b = Neg(a) [n2] y = Add(a, b) }"""
CALL = "%{0} : [num_users=1] = call_function[target=torch.ops.{1}](args = (%x, 2), kwargs = {{dim: 1}})"


def recorded(*rows: tuple[str, str, str, str]) -> ir.Model:
    """The model, whose nodes record an operation's name, its operator, their module and their source line."""
    model = from_text(MODEL)
    for node, (name, operator, module, source) in zip(model.graph, rows, strict=False):
        props = node.metadata_props
        file, _, line = source.rpartition(":")
        props[f"{PREFIX}name_scopes"] = repr(["", module, name])
        props[f"{PREFIX}class_hierarchy"] = repr(["Net", "Layer", operator])
        props[f"{PREFIX}fx_node"] = CALL.format(name, operator)
        props[f"{PREFIX}stack_trace"] = f'  File "{file}", line {line}, in forward\n    x = torch.relu(x)'
    return model


RECORDED = (
    ("relu", "aten.relu.default", "layer", "net.py:4"),
    ("neg", "aten.neg.default", "layer", "net.py:5"),
    ("add", "aten.add.Tensor", "", "net.py:5"),
)


def line(name: str, source: str, module: str = "", text: str = "") -> ProgramLine:
    return ProgramLine(name, text or name, source, "", module, 0, ())


def pairs(program: Program) -> list[list[tuple[str, str]]]:
    return [[(node.name, node.pairing) for node in one.nodes] for one in program.lines]


def test_the_lines_that_the_nodes_record() -> None:
    report = inspect(recorded(*RECORDED), program=True)
    assert Report.from_json(report.to_json()) == report
    found = report.part(Program)
    assert (found.origin, found.unpaired) == ("the model", ())
    assert [(one.source, one.code, one.module) for one in found.lines] == [
        ("net.py:4", "x = torch.relu(x)", "layer"),
        ("net.py:5", "x = torch.relu(x)", "layer"),
        ("net.py:5", "x = torch.relu(x)", ""),
    ]
    assert found.lines[0].text == "relu = aten.relu.default(x, 2, dim=1)"
    assert pairs(found) == [[("n0", "name")], [("n1", "name")], [("n2", "name")]]
    (table,) = [block for block in found.blocks() if isinstance(block, Table)]
    assert table.rows[2][:2] == ("", "")  # the source line stands once


def test_nodes_of_one_operation_stand_at_one_line_and_others_are_named() -> None:
    found = inspect(recorded(RECORDED[0], RECORDED[0]), program=True).part(Program)
    assert pairs(found) == [[("n0", "name"), ("n1", "name")]]
    assert [node.name for node in found.unpaired] == ["n2"]


def test_a_model_without_records_is_a_problem() -> None:
    with pytest.raises(OnnxsmithError) as caught:
        inspect(from_text(MODEL), program=True)
    assert caught.value.problem.id == "inspect/no-program"


def test_broken_metadata_is_no_record() -> None:
    model = from_text(MODEL)
    for node, text in zip(model.graph, ("[", "{'a': 1}", "3"), strict=True):
        node.metadata_props[f"{PREFIX}name_scopes"] = text
        node.metadata_props[f"{PREFIX}stack_trace"] = text
    with pytest.raises(OnnxsmithError, match="records"):
        inspect(model, program=True)


def test_nodes_are_paired_by_name_then_place() -> None:
    lines = [
        line("relu", "/elsewhere/net.py:4", "layer"),
        line("sub_7", "net.py:5", "other"),
        line("neg_3", "net.py:5", "layer", "neg_3 = aten.neg.default(x)"),
        line("tail", "net.py:9", "end"),
    ]
    found = beside("torch.export", lines, recorded(*RECORDED))
    assert pairs(found) == [[("n0", "name")], [("n2", "source")], [("n1", "source")], []]
    assert found.unpaired == ()


def test_the_same_name_of_another_source_line_is_another_operation() -> None:
    lines = [line("neg", "net.py:4", "layer"), line("add", "net.py:8", "else")]
    found = beside("torch.export", lines, recorded(*RECORDED))
    assert pairs(found) == [[("n0", "source"), ("n1", "module")], []]
    assert [node.name for node in found.unpaired] == ["n2"]


def test_names_of_the_torchscript_exporter_give_the_module() -> None:
    model = from_text(MODEL)
    for node, name in zip(model.graph, ("/layers.0/layers.0.act/Relu", "/Neg", "plain"), strict=True):
        node.name = name
    found = beside("TorchScript", [line("x.1", "", "layers.0.act")], model)
    assert pairs(found) == [[("/layers.0/layers.0.act/Relu", "module")]]
    assert [node.name for node in found.unpaired] == ["/Neg", "plain"]


def test_source_ranges_of_torchscript() -> None:
    traced = "/site-packages/torch/nn/functional.py(9): relu\n/home/me/net.py(11): forward\n<stdin>(1): <module>\n"
    scripted = (
        '  File "/home/me/net.py", line 5\n    def f\n        ~~~ <--- HERE\nSerialized   File "code/x.py", line 1\n'
    )
    assert provenance.user_line(provenance.as_trace(traced)) == "/home/me/net.py:11"
    assert provenance.user_line(provenance.as_trace(scripted)) == "/home/me/net.py:5"
    assert provenance.user_line(provenance.as_trace("")) == ""


def test_other_texts_stay_as_they_are() -> None:
    assert shortened("%x : placeholder") == "%x : placeholder"
    assert shortened(CALL.format("r", "aten.relu.default")) == "r = aten.relu.default(x, 2, dim=1)"


def test_onnx_needs_a_torch_model() -> None:
    for command in (
        Inspect("m.onnx", program=True, onnx="n.onnx"),
        Inspect("net.py:net", onnx="n.onnx"),
        Inspect("net.py:net", program=True, costs=True),
    ):
        with pytest.raises(OnnxsmithError) as caught:
            command.run()
        assert caught.value.problem.id == "inspect/program-target"


DOCS = (
    (
        "/v/torch/nn/modules/linear.py(134): forward\n/v/torch/nn/modules/module.py(1): _call\n"
        "/me/net.py(9): forward\n/me/net.py(18): forward\n"
    ),
    (
        '  File "/me/net.py", line 10\n        if f(2): y = x\n        return torch.relu(y) * 2\n'
        '               ~~~~~~~~~~ <--- HERE\nSerialized   File "code/__torch__/net.py", line 25\n    return mul(a)\n'
        "           ~~~ <--- HERE\n"
    ),
    "Normalises its input.py (2): see the paper\nfoo(3): bar baz",
)


def test_doc_strings_of_the_torchscript_exporter_name_source_lines() -> None:
    model = from_text(MODEL)
    for node, doc in zip(model.graph, DOCS, strict=True):
        node.doc_string = doc
    found = inspect(model, program=True).part(Program)
    assert [(line.source, line.code, line.text) for line in found.lines] == [
        ("/me/net.py:9", "", ""),
        ("/me/net.py:10", "return torch.relu(y) * 2", ""),
    ]
    assert [[(node.name, node.pairing) for node in line.nodes] for line in found.lines] == [
        [("n0", "source")],
        [("n1", "source")],
    ]
    assert [node.name for node in found.unpaired] == ["n2"]
    assert [table.head for table in found.blocks() if isinstance(table, Table)] == [("source", "code", "nodes")]


def test_a_trace_without_code_has_no_code() -> None:
    assert provenance.code_of('  File "a.py", line 3, in f\n  File "b.py", line 4, in g') == ""
    assert provenance.code_of('  File "a.py", line 3, in f\n  File "torch/nn/x.py", line 4, in g\n    y') == ""


def test_a_node_of_several_operations_stands_at_each_and_counts_once() -> None:
    lines = [
        ProgramLine("mul", "mul = aten.mul.Tensor(x, 2)", "net.py:3", "", "", 0, ()),
        ProgramLine("relu", "relu = aten.relu.default(mul)", "net.py:4", "", "layer", 0, ()),
    ]
    model = recorded(RECORDED[0])
    model.graph[0].metadata_props["onnxsmith.merged"] = "['mul', 'gone']"
    found = beside("torch.export", lines, model)
    assert [[(node.name, node.pairing) for node in line.nodes] for line in found.lines] == [
        [("n0", "merged")],
        [("n0", "name")],
    ]
    assert found.paired == 1
    (table,) = (block for block in found.blocks() if isinstance(block, Table))
    assert [row[-1] for row in table.rows] == ["part of n0 (Relu)", "n0 (Relu)"]
    elsewhere = [lines[0], ProgramLine("relu", "relu = other(x)", "other.py:4", "", "", 0, ())]
    assert beside("torch.export", elsewhere, model).paired == 0  # the names are those of another trace
