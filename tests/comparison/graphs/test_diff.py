"""Differences between models that belong together: simplified, re-exported, edited, unrelated."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.model_changes import (
    AttributeChange,
    Difference,
    InterfaceChanges,
    NodeChanges,
    PropertyChanges,
    WeightChanges,
)
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.render.html_report import to_html
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests.comparison.graphs.models import TEXTS, disguised, model
from tests.work import grows_linearly


def report_of(old: ir.Model | str, new: ir.Model | str, ignore: tuple[str, ...] = ()) -> Report:
    """The report on two models, through JSON; also shown as a page."""
    sides = [from_text(one) if isinstance(one, str) else one for one in (old, new)]
    report = onnxsmith.diff(*sides, ignore=ignore).report
    assert to_html(report)
    assert Report.from_json(report.to_json()) == report
    return report


def changes(old: ir.Model | str, new: ir.Model | str) -> dict[str, int]:
    return report_of(old, new).part(Difference).changes


def text(body: str, inputs: str = "float[N, 4] x", outputs: str = "float[N, 4] y", version: int = 20) -> str:
    return f'<ir_version: 10, opset_import: ["": {version}]> g ({inputs}) => ({outputs}) {{ {body} }}'


def test_equal_models() -> None:
    report = report_of(model("nested"), model("nested"))
    assert report.verdict is Verdict.DONE
    assert report.headline.endswith(": equal")
    assert report.part(Difference).changes == {}


def test_two_files_with_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, other = (tmp_path / name for name in ("old.onnx", "new.onnx", "other.onnx"))
    save(model("nested"), old)
    new.write_bytes(old.read_bytes())
    compared = onnxsmith.diff(old, model("nested")).report
    monkeypatch.setattr("onnxsmith.comparison.graphs.diff.paired", lambda _: pytest.fail("the graphs are compared"))
    for report, said in (
        (onnxsmith.diff(old, new).report, "the same bytes"),
        (onnxsmith.diff(old, old).report, "the same file"),
    ):
        assert report.verdict is Verdict.DONE
        assert report.headline.endswith(f"equal, {said}")
        assert report.parts == compared.parts
    renamed = model("nested")
    renamed.graph.name = "renamed"
    save(renamed, other)
    with pytest.raises(pytest.fail.Exception):
        onnxsmith.diff(old, other)


def test_the_order_of_commutative_operands_is_noted() -> None:
    a = text("a = Relu(x) b = Tanh(x) y = Add(a, b)")
    b = text("a = Relu(x) b = Tanh(x) y = Add(b, a)")
    report = report_of(a, b)
    assert report.verdict is Verdict.DONE
    assert report.notes == ("operands in another order, which has no effect: 1 node",)
    wiring = changes(a.replace("Add", "Sub"), b.replace("Add", "Sub"))
    assert wiring == {"changed node": 1}


def test_an_attribute_that_became_an_input() -> None:
    old = text("s = Squeeze <axes = [1]> (x) y = Relu(s)", "float[N, 1] x", "float[N] y", 11)
    new = text("a = Constant <value_ints = [1]> () s = Squeeze (x, a) y = Relu(s)", "float[N, 1] x", "float[N] y", 13)
    report = report_of(old, new)
    assert report.part(Difference).changes == {"version": 1}
    assert report.notes == ("attributes in one model, inputs with equal values in the other: 1 parameter",)
    (row,) = report.part(PropertyChanges).rows
    assert (row.name, row.old, row.new, row.about) == (
        "opset ai.onnx", "11", "13", "defined anew: 1 Squeeze 11 → 13, 1 Relu 6 → 13"
    )  # fmt: skip
    other = new.replace("[1]> ()", "[0]> ()")
    (changed,) = report_of(old, other).part(NodeChanges).changed
    assert changed.attributes == (AttributeChange("axes", "[1]", "[0]"),)


def test_a_default_that_changed_with_the_opset() -> None:
    report = report_of(text("y = Softmax(x)", version=11), text("y = Softmax(x)", version=13))
    (changed,) = report.part(NodeChanges).changed
    assert changed.attributes == (AttributeChange("axis", "1 (default)", "-1 (default)"),)


def test_a_default_that_is_written_out_is_no_difference() -> None:
    assert changes(text("y = Elu(x)"), text("y = Elu <alpha = 1.0> (x)")) == {}


@pytest.mark.parametrize("name", ["chain", "attention"])
def test_a_converted_opset(name: str) -> None:
    old = model(name)
    new = disguised(old)
    new.graph.opset_imports[""] = 22
    report = report_of(old, new)
    assert report.part(Difference).changes == {"version": 1}


def test_simplified() -> None:
    old = from_text(text("a = Identity(x) b = Relu(a) c = Relu(b) k = Constant <value = float {0.0}> () y = Add(c, k)"))
    new = onnxsmith.simplify(old).model
    assert new is not None
    report = report_of(old, new)
    part = report.part(Difference)
    assert (part.new_nodes, part.paired, part.equal) == (1, 1, 1)
    assert set(part.changes) == {"removed node"}


def test_a_region_names_what_replaced_what() -> None:
    old = text("a = Sigmoid(x) b = Mul(x, a) y = Relu(b)", version=24)
    new = text("b = Swish(x) y = Relu(b)", version=24)
    (region,) = report_of(old, new).part(NodeChanges).regions
    assert [node.op for node in region.removed] == ["Sigmoid", "Mul"]
    assert [node.op for node in region.added] == ["Swish"]
    assert [(reader.node, reader.old, reader.new) for reader in region.readers] == [("-> y", "b", "b")]


def test_nodes_across_removed_ones() -> None:
    old = text("a = Neg(x) b = Elu(a) c = Exp(b) d = Floor(c) e = Erf(d) f = Ceil(e) y = Tanh(f)")
    new = text("a = Abs(x) b = Elu(a) e = Erf(b) y = Tanh(e)")
    report = report_of(old, new)
    part = report.part(NodeChanges)
    assert [(one.op, one.new_op) for one in part.changed] == [("Neg", "Abs")]
    assert [[node.op for node in region.removed] for region in part.regions] == [["Exp", "Floor"], ["Ceil"]]
    assert not any(region.added for region in part.regions)


def test_nodes_in_a_replaced_region_are_not_called_changed() -> None:
    head = "x1 = Neg(x) half = Constant <value = float {0.5}> () h = Mul(x1, half) "
    old = text(head + "t = Tanh(x1) u = Exp(t) y = Mul(h, u)")
    new = text("x1 = Neg(x) s = Sigmoid(x1) y = Mul(x1, s)")
    part = report_of(old, new).part(NodeChanges)
    assert part.changed == ()
    assert sorted(node.op for region in part.regions for node in region.removed) == ["Exp", "Mul", "Tanh"]
    assert [node.op for region in part.regions for node in region.added] == ["Sigmoid"]


def layers(order: list[int]) -> ir.Model:
    """A chain of equal layers with the weights of these numbers."""
    value = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["N", 8]))
    nodes, held, source = [], [], value
    for place, number in enumerate(order):
        array = np.random.default_rng(number).standard_normal((8, 8)).astype(np.float32)
        held.append(ir.Value(name=f"w{place}", const_value=ir.Tensor(array, name=f"w{place}")))
        for node in (ir.node("MatMul", [value, held[-1]]), ir.node("Relu", [None])):
            if node.op_type == "Relu":
                node.replace_input_with(0, value)
            value = node.outputs[0]
            value.name = f"{node.op_type}{place}"
            nodes.append(node)
    value.type, value.shape = source.type, source.shape
    return ir.Model(ir.Graph([source], [value], nodes=nodes, initializers=held, opset_imports={"": 20}), ir_version=10)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ([0, 1, 3, 4, 6, 7], {"removed node": 4}),
        ([0, 9, 1, 2, 3, 4, 5, 8, 6, 7], {"added node": 4}),
        ([0, 4, 2, 3, 1, 5, 6, 7], {"changed weight": 2}),
        ([0, 2, 1, 3, 4, 5, 6, 7], {"changed weight": 2}),
        ([10, 11, 12, 13, 14, 15, 16, 17], {"changed weight": 8}),
        ([0, 1, 2, 10, 4, 12, 6, 7], {"changed weight": 2}),
    ],
    ids=["two removed", "two added", "two swapped", "neighbours swapped", "all retrained", "two retrained"],
)
def test_layers_that_are_alike(new: list[int], expected: dict[str, int]) -> None:
    found = changes(layers(list(range(8))), disguised(layers(new)))
    found.pop("interface change", None)
    assert found == expected


def test_retrained_towers_are_told_apart_by_their_weights() -> None:
    def towers(order: list[int], noise: float) -> ir.Model:
        """Two towers whose sum does not say which is which."""
        made = from_text(
            '<ir_version: 10, opset_import: ["": 20]> g (float[N, 4] x) => (float[N, 4] y)'
            "<float[4, 4] a = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}, float[4, 4] b = {1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}>"
            "{ p = MatMul(x, a) q = MatMul(x, b) y = Add(p, q) }"
        )
        for value, number in zip(made.graph.initializers.values(), order, strict=True):
            rng = np.random.default_rng(number)
            array = rng.standard_normal((4, 4)) + noise * np.random.default_rng(99).standard_normal((4, 4))
            value.const_value = ir.Tensor(array.astype(np.float32), name=value.name)
        return made

    rows = report_of(towers([0, 1], 0), towers([1, 0], 0.01)).part(WeightChanges).rows
    assert [(row.name, row.new_name) for row in rows] == [("a", "b"), ("b", "a")]
    assert all(row.max_abs is not None and row.max_abs < 0.1 for row in rows)


def test_interface() -> None:
    old = text("y = Add(x, z)", "float[N, 4] x, float[N, 4] z")
    report = report_of(old, text("y = Add(x, z)", "float[N, 4] z, float[N, 4] x"))
    assert {(row.kind, row.old, row.new) for row in report.part(InterfaceChanges).rows} == {
        ("order", "0", "1"), ("order", "1", "0")
    }  # fmt: skip
    report = report_of(old, old.replace("N, 4] z", "N, 1] z"))
    (row,) = report.part(InterfaceChanges).rows
    assert (row.kind, row.name, row.old, row.new) == ("type", "z", "float[N,4]", "float[N,1]")
    report = report_of(old, old.replace("[N,", "[M,"))
    (row,) = report.part(InterfaceChanges).rows
    assert (row.kind, row.old, row.new) == ("dimension renamed", "N", "M")
    assert report_of(old, old.replace("[N,", "[M,"), ("names",)).verdict is Verdict.DONE
    report = report_of(old, old.replace("float[N, 4] z", "float[N, 4] z, float[2] unused"))
    (row,) = report.part(InterfaceChanges).rows
    assert (row.kind, row.name, row.new) == ("added", "unused", "float[2]")


def test_domains_tell_operators_apart() -> None:
    old = text("a = Gelu(x) y = Relu(a)").replace('"": 20', '"": 20, "other": 1')
    report = report_of(old, old.replace("Gelu", "other.Gelu"))
    (changed,) = report.part(NodeChanges).changed
    assert (changed.op, changed.new_op) == ("Gelu", "other::Gelu")


FUNCTION = """
<ir_version: 10, opset_import: ["": 20, "local": 1]>
g (float[4] x) => (float[4] y) { a = local.act <slope = 0.2> (x) y = local.act <slope = 0.3> (a) }
<domain: "local", opset_import: ["": 20]>
act <slope: float = 0.5> (p) => (r) { l = LeakyRelu <alpha: float = @slope> (p) r = Exp (l) }
"""


def test_functions() -> None:
    inline = """
    <ir_version: 10, opset_import: ["": 20, "local": 1]>
    g (float[4] x) => (float[4] y) {
        l = LeakyRelu <alpha = 0.2> (x) a = Exp (l) m = LeakyRelu <alpha = 0.3> (a) y = Exp (m) }
    """
    report = report_of(FUNCTION, inline)
    assert report.part(Difference).changes == {"function": 1}
    renamed = FUNCTION.replace("local.act", "local.leaky").replace("\nact ", "\nleaky ")
    report = report_of(FUNCTION, renamed)
    assert report.verdict is Verdict.DONE
    assert report.part(Difference).names == {"function": 1}
    inside = report_of(FUNCTION, FUNCTION.replace("Exp (l)", "Tanh (l)")).part(NodeChanges).changed
    assert [(one.path, one.op, one.new_op) for one in inside] == [("local::act", "Exp", "Tanh")]
    assert changes(FUNCTION, FUNCTION.replace("= 0.5>", "= 0.6>")) == {"function": 1}
    assert changes(FUNCTION, FUNCTION.replace("slope = 0.3", "slope = 0.4")) == {"changed node": 1}
    assert changes(FUNCTION, FUNCTION.replace("@slope", "@scope").replace("<slope:", "<scope:")) != {}


def test_metadata_and_descriptions() -> None:
    old, new = model("chain"), model("chain")
    new.metadata_props["author"] = "someone"
    new.doc_string = "a chain"
    for node in new.graph:
        node.metadata_props["line"] = "3"
    report = report_of(old, new)
    assert {(row.kind, row.name, row.about) for row in report.part(PropertyChanges).rows} == {
        ("metadata", "author", ""), ("doc", "description", ""), ("metadata", "line", "and of 10 other nodes")
    }  # fmt: skip
    assert report_of(old, new, ("metadata", "doc")).verdict is Verdict.DONE
    assert report_of(old, new, ("metadata",)).verdict is Verdict.DIFFERENT


def test_declared_shapes() -> None:
    old, new = model("chain"), model("chain")
    middle = next(iter(new.graph)).outputs[0]
    middle.type, middle.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(["N", 8, 8, 8])
    assert report_of(old, new).part(Difference).changes == {"declared shape": 1}
    assert report_of(old, new, ("shapes",)).verdict is Verdict.DONE


def test_unrelated_models() -> None:
    names = list(TEXTS)
    for one, other in itertools.pairwise(names):
        report = report_of(model(one), model(other))
        assert report.verdict is Verdict.DIFFERENT
        assert report.part(Difference).equal < report.part(Difference).old_nodes / 2


def test_the_work_grows_with_the_nodes() -> None:
    def compared(count: int) -> None:
        old, new = layers(list(range(count))), layers(list(range(count)))
        for number, node in enumerate(list(new.graph)):
            if number in (1, count + 1, 2 * count - 5):
                node.op_type = "Sigmoid"
        assert onnxsmith.diff(old, new).report.part(Difference).changes == {"changed node": 3}

    assert grows_linearly(compared, 60)


def test_an_unknown_part() -> None:
    with pytest.raises(OnnxsmithError, match="diff/unknown-part"):
        onnxsmith.diff(model("chain"), model("chain"), ignore=["colours"])


def test_the_command(tmp_path: Path) -> None:
    old, new = model("chain"), model("chain")
    next(iter(new.graph)).attributes["strides"] = ir.AttrInt64s("strides", [1, 1])
    save(old, tmp_path / "old.onnx")
    save(new, tmp_path / "new.onnx")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "onnxsmith", "diff", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = run("old.onnx", "new.onnx", "--html", "page.html")
    assert done.returncode == 1, done.stderr
    assert "strides" in done.stdout
    assert "[2, 2]" in done.stdout
    assert "old.onnx → new.onnx: 1 changed node" in done.stdout
    assert "strides" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert run("old.onnx", "old.onnx").returncode == 0
    assert run("old.onnx", "nothing.onnx").returncode == 2
    assert run("old.onnx", "new.onnx", "--ignore", "colours").returncode == 2
    printed = json.loads(run("old.onnx", "new.onnx", "--json").stdout)
    assert printed["verdict"] == "different"
    assert [part["kind"] for part in printed["parts"]] == ["difference", "node_changes"]
