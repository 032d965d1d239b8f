"""Refusals of edits: they name the true reason, and what they propose works when it is pasted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import onnxsmith
from onnxsmith.base.problem import Problem
from onnxsmith.cli.application import app
from onnxsmith.graph.files.text import from_text
from tests.editor.models import LOOP, saved

BROKEN = """<ir_version: 10, opset_import: ["": 21]>
g (float[3] x) => (float[1] y) <int64[1] at = {7}> { a = Relu(x) y = Gather(a, at) }"""
NOWHERE = """<ir_version: 10, opset_import: ["": 21]>
g (float[2,3,4] x) => (float[2,3,4] y) { a = Identity(x) y = LRN<size = 2>(a) }"""
"""No runtime here normalises three axes, or an even number of channels."""


def refusal(path: Path, change: Any) -> Problem:
    """The problem of an edit; the file is as it was."""
    before = path.read_bytes()
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        change(m)
    assert path.read_bytes() == before
    return caught.value.problem


@pytest.mark.parametrize(
    ("text", "change"),
    [
        (BROKEN, lambda m: m.expose("a")),
        (BROKEN, lambda m: m.insert("Neg", after="a")),
        (NOWHERE, lambda m: m.expose("a")),
        (NOWHERE, lambda m: m.rename("a", "b")),
    ],
)
def test_a_model_that_did_not_run_before_is_not_the_steps_fault(text: str, change: Any, tmp_path: Path) -> None:
    path = saved(text, tmp_path)
    found = refusal(path, change)
    assert found.id == "edit/original-does-not-run"
    assert "correct the step" not in found.fix
    with onnxsmith.edit(path, verify=False) as m:
        change(m)
    assert m.result is not None
    assert "NOT VERIFIED" in m.result.report.headline


FUNCTION = """<ir_version: 10, opset_import: ["": 21, "lib": 1]>
g (float[n,4] x) => (float[n,4] y) { y = lib.Norm(x) }
<opset_import: ["": 21], domain: "lib">
Norm (u) => (v) {
  e = Constant<value_float = 0.5>()
  t = Constant<value = float[1] {1}>()
  s = Add(u, e)
  v = Mul(s, t)
}"""


def test_a_constant_of_a_function_is_said_to_be_there(tmp_path: Path) -> None:
    path = saved(FUNCTION, tmp_path)
    found = refusal(path, lambda m: m.constant("e", 1.5))
    assert (found.id, "inside the local function lib::Norm" in found.what) == ("edit/no-match", True)
    step = found.fix.split(": ", 1)[1].split(" with the new")[0]  # the fix, as a patch file has it
    assert step == 'do = "set", node = { gives = "e" }, attributes = { value_float = 0.5 }'
    (tmp_path / "p.toml").write_text(
        "[[step]]\n" + step.replace(", node", "\nnode").replace(", attributes", "\nattributes")
    )
    with onnxsmith.edit(path, tmp_path / "out.onnx") as m:
        m.apply(tmp_path / "p.toml")


@pytest.mark.parametrize(("name", "said"), [("u", 'function = "lib::Norm"'), ("s", '{ gives = "s" }'), ("t", "gives")])
def test_other_tensors_of_a_function(name: str, said: str, tmp_path: Path) -> None:
    path = saved(FUNCTION, tmp_path)
    assert said in refusal(path, lambda m: m.expose(name)).fix
    with onnxsmith.edit(path) as m:
        m.inline(function="lib::Norm")
        m.expose("*/s")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("i", "it is an input of y/body"),
        ("s2", "it is the result of Add of y/body, and an output of that body"),
        ("inner", "it is the result of Mul of y/body"),
        ("k", "it is a graph input"),
        ("go", "it is an initializer"),
        ("y", "it is the result of Loop, and a graph output"),
    ],
)
def test_a_taken_name_is_said_to_be_where_it_is(name: str, said: str, tmp_path: Path) -> None:
    found = refusal(saved(LOOP, tmp_path), lambda m: m.rename("x", name))
    assert (found.id, found.why) == ("edit/name-taken", said)


CHAIN = """<ir_version: 10, opset_import: ["": 21]>
g (float[n] x, float[n] s) => (float[n] y, float[n] z) { a = Mul(x, s) b = Neg(a) y = Abs(b) z = Relu(x) }"""


def test_a_cut_behind_the_part_comes_first(tmp_path: Path) -> None:
    path = saved(CHAIN, tmp_path)
    found = refusal(path, lambda m: m.extract("b", "a"))
    assert (found.id, found.why) == ("edit/unused-cut", "b comes later in the graph: it is computed from a")
    assert "--from a --to b" in found.fix
    for start in ("a", None):
        with onnxsmith.edit(path, tmp_path / "out.onnx") as m:
            m.extract(start, "b" if start else "a")
    beside = refusal(path, lambda m: m.extract(["z", "a"], "y"))
    assert "no path" in beside.why


def test_missing_inputs_are_many(tmp_path: Path) -> None:
    found = refusal(saved(CHAIN, tmp_path), lambda m: m.extract("b", ["y", "a"]))
    assert "also needs the inputs x, s" in found.what
    assert "--from b --from x --from s" in found.fix


def test_strip_counts_what_it_removes(tmp_path: Path) -> None:
    path = saved(LOOP, tmp_path)
    with onnxsmith.edit(path) as m:
        m.strip(["docs", "provenance", "metadata", "shapes"])
    assert m.result is not None
    done = m.result.report.parts[0].steps[0][1]  # type: ignore[attr-defined]
    assert done == "0 doc strings, 0 provenance texts, 0 metadata texts, 1 declared shape"


def test_a_dimension_taken_for_a_tensor_is_named(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[batch, 4] x) => (float[batch, 4] y) { y = Exp (x) }'
    path = saved(text, tmp_path)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        m.rename("batch", "n")
    assert f"rename {path} batch NEW --kind dim" in caught.value.problem.fix
    result = CliRunner().invoke(
        app, ["rename", str(path), "batch", "n", "--kind", "dim", "-o", str(tmp_path / "n.onnx")]
    )
    assert result.exit_code == 0, result.output


def test_the_headline_says_how_far_an_edit_was_compared(tmp_path: Path) -> None:
    """If all outputs change on purpose, only the tensors that the edited nodes read are compared."""
    text = '<ir_version: 10, opset_import: ["": 20]> g (float[n,3] x) => (float[n,3] y) { a = Exp(x) y = Relu(a) }'
    with onnxsmith.edit(saved(text, tmp_path)) as m:
        m.replace("Relu(x)", "Clip(x, 0.0, 6.0)", changes=True)
    assert m.result.report.headline.endswith(
        ": 1 edit, verified up to the edited nodes, without a run: both models compute the compared tensors with the "
        "same operators and weights; changed on purpose: y"
    )


@pytest.mark.parametrize(
    ("step", "fix"),
    [
        (lambda m: m.dtype(input="w", to="float16", output="y", axis=1), "leave axis out"),
        (lambda m: m.dtype(input="w", to="float16"), "leave the step out"),
        (lambda m: m.drop_input("w"), "leave the step out"),
    ],
)
def test_a_fix_without_a_name_to_write(step: Callable[[Any], Any], fix: str) -> None:
    text = '<ir_version: 10, opset_import: ["": 21]> g () => (float[2] y) <float[2] w = {1, 2}> { y = Neg(w) }'
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(from_text(text)) as m:
        step(m)
    assert caught.value.problem.fix == fix
