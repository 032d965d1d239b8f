"""Names with `*`: they mean what a step can take, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.graph.files.load import load
from tests.editor.models import LOOP, NET, WIDE, saved
from tests.editor.test_edit_messages import refusal

OLD = """<ir_version: 3, opset_import: ["": 9]>
old (float[n,2] x, float[2,2] w, float[2] b, float[2] unread) => (float[n,2] y, float[n,2] z)
  <float[2,2] w = {1,2,3,4}, float[2] b = {5,6}>
{
  p = MatMul(x, w)
  y = Add(p, b)
  two = Constant<value = float {2}>()
  z = Mul(y, two)
}"""


def edited(path: Path, change: Any) -> Edits:
    with onnxsmith.edit(path) as m:
        change(m)
    assert m.result is not None
    part = m.result.report.parts[0]
    assert isinstance(part, Edits)
    return part


def test_weights_of_ir_version_3_become_constants(tmp_path: Path) -> None:
    path = saved(OLD, tmp_path)
    part = edited(path, lambda m: m.drop_input("*"))
    assert part.notes == (
        "x: still graph input, read and without a default",
        "IR version 3 → 4: before version 4, a constant also has to be a graph input",
    )
    model = load(path)
    assert (model.ir_version, [one.name for one in model.graph.inputs]) == (4, ["x"])
    assert np.array_equal(onnxsmith.run(path, {"x": np.ones((1, 2), np.float32)}).outputs["y"], [[9, 12]])


@pytest.mark.parametrize("change", [lambda m: m.drop_input("w"), lambda m: m.drop_input(["b"], 7.0)])
def test_one_weight_of_ir_version_3(change: Any, tmp_path: Path) -> None:
    path = saved(OLD, tmp_path)
    edited(path, change)
    assert load(path).ir_version == 4


def test_an_unread_input_leaves_the_ir_version(tmp_path: Path) -> None:
    path = saved(OLD, tmp_path)
    assert not edited(path, lambda m: m.drop_input("unread")).notes
    assert load(path).ir_version == 3


def test_a_constant_node_of_ir_version_3_becomes_an_input(tmp_path: Path) -> None:
    path = saved(OLD, tmp_path)
    edited(path, lambda m: m.add_input("two"))
    assert [one.name for one in load(path).graph.inputs][-1] == "two"


def test_the_default_of_an_input_changes_and_the_report_says_who_replaces_it(tmp_path: Path) -> None:
    path = saved(OLD, tmp_path)
    assert "graph input too" in str(edited(path, lambda m: m.constant("b", [0.0, 0.0])).notes)


@pytest.mark.parametrize(
    "change", [lambda m: m.outline("my::F", find="Add(MatMul(x, w), b)"), lambda m: m.cast("float16")]
)
def test_what_needs_constants_names_the_step_that_makes_them(change: Any, tmp_path: Path) -> None:
    path = saved(OLD, tmp_path)
    assert 'do = "drop-input", input = "*"' in refusal(path, change).fix

    def both(m: Any) -> None:
        m.drop_input("*")
        change(m)

    edited(path, both)


def test_a_pattern_means_what_the_step_can_take(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    assert edited(path, lambda m: m.drop_output("[xz]")).steps == (("drop-output", "z, with 1 node"),)
    assert edited(path, lambda m: m.constant("*", [1.0, 1.0, 1.0, 1.0])).steps == (("constant", "bias"),)
    part = edited(path, lambda m: m.expose("[acy]"))
    assert (part.new, part.notes) == (("a", "c"), ("y: a graph output already",))
    path = saved(WIDE, tmp_path)
    assert edited(path, lambda m: m.extract(["[sk]", "w"], "[kt]")).steps[0][0] == "extract"


def test_a_cast_of_all_takes_floats(tmp_path: Path) -> None:
    path = saved(
        LOOP.replace("<bool go = {1}>", "<bool go = {1}, float[4] b = {1,2,3,4}>").replace("Tanh(x)", "Add(x, b)"),
        tmp_path,
    )
    assert edited(path, lambda m: m.cast("float16", "*")).steps[0][1].startswith("1 constant as float16")


@pytest.mark.parametrize(
    ("change", "id_", "said"),
    [
        (lambda m: m.drop_output("*"), "edit/no-outputs", 'output = ["y"]'),
        (lambda m: m.drop_output("x*"), "edit/no-match", "the nearest names: y, z"),
        (lambda m: m.drop_input("[xy]"), "edit/input-needed", "value = [[1.0, 1.0, 1.0, 1.0]]"),
        (lambda m: m.drop_input("y*"), "edit/no-match", "the nearest names: x"),
        (lambda m: m.expose("y*"), "edit/no-match", "a, c"),
        (lambda m: m.expose(["a", "y"]), "edit/is-output", "leave it out, and keep a"),
        (lambda m: m.constant("c*", 1.0), "edit/no-match", "bias"),
        (lambda m: m.add_input("c"), "edit/not-constant", "--from c --from x -o part.onnx"),
    ],
)
def test_the_fix_names_what_is_possible(change: Any, id_: str, said: str, tmp_path: Path) -> None:
    found = refusal(saved(NET, tmp_path), change)
    assert (found.id, said in found.fix) == (id_, True), found


def test_an_input_is_of_the_main_graph_only(tmp_path: Path) -> None:
    text = LOOP.replace("inner = Mul(s, a)", "two = Constant<value = float {2}>() inner = Mul(s, two)")
    found = refusal(saved(text, tmp_path), lambda m: m.add_input("two"))
    assert "only the main graph has inputs" in found.why
    edited(tmp_path / "model.onnx", lambda m: m.constant("two", 3.0))  # as the fix says
    assert "constant" in found.fix
