"""Tensors in bodies that hide a tensor of an outer graph get names of their own in every file that is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import onnxsmith
from onnxsmith.deployment.checking.fixes.whole_model import BodyNames
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure import body_names
from tests.conftest import Refused

LOOP = """<ir_version: 8, opset_import: ["": 16]>
g (float[2,3] x) => (float[2,3] y, float[k,2,3] all) <int64 n = {4}, float half = {0.5}, bool c = {1}> {
    state = Relu(x)
    y, all = Loop<body = b (int64 i, bool c, float[2,3] state) => (bool d, float[2,3] p, float[2,3] q) {
        d = Identity(c)  f = Cast<to = 1>(i)  half_1 = Mul(state, half)  p = Add(half_1, f)
        x = If<then_branch = t () => (float[2,3] u) { state = Neg(p)  u = Neg(state) },
               else_branch = e () => (float[2,3] v) { v = Identity(p) }>(d)
        q = Identity(x) }>(n, c, state) }
"""
X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


def expected() -> list[np.ndarray[Any, Any]]:
    state, rows = np.maximum(X, 0), []
    for i in range(4):
        state = state * np.float32(0.5) + np.float32(i)
        rows.append(state)
    return [state, np.stack(rows)]


def file(tmp_path: Path, *, inner: bool) -> Path:
    """Without `inner`, only inputs of bodies hide outer tensors, which onnx's checker and onnxruntime accept."""
    text = LOOP if inner else LOOP.replace("state = Neg(p)  u = Neg(state)", "r = Neg(p)  u = Neg(r)")
    text = text if inner else text.replace("x = If", "w = If").replace("Identity(x)", "Identity(w)")
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


VERBS: dict[str, Callable[[Path, Path], onnxsmith.Result]] = {
    "simplify": lambda path, out: onnxsmith.simplify(path, out),
    "edit": lambda path, out: edited(path, out, lambda m: m.rename("x", "image")),
    "opset": lambda path, out: edited(path, out, lambda m: m.opset(18)),
}


def edited(path: Path, out: Path, step: Callable[[Any], None]) -> onnxsmith.Result:
    with onnxsmith.edit(path, out) as m:
        step(m)
    assert m.result is not None
    return m.result


@pytest.mark.parametrize("verb", VERBS)
def test_a_written_file_hides_no_outer_tensor(verb: str, tmp_path: Path) -> None:
    done = VERBS[verb](file(tmp_path, inner=False), tmp_path / "out.onnx")
    assert "; renamed in bodies, because an outer graph uses the same names: " in done.report.headline
    assert "state → state_1" in done.report.headline
    assert not list(body_names.hidden(load(tmp_path / "out.onnx")))
    assert_right(tmp_path / "out.onnx")


def assert_right(path: Path) -> None:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for ours, right in zip(session.run(None, {session.get_inputs()[0].name: X}), expected(), strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-6)


def test_the_fix_of_a_refused_file_gives_the_names(tmp_path: Path, refused: Refused) -> None:
    path = file(tmp_path, inner=True)
    with refused("model/invalid") as refusal:
        onnxsmith.simplify(path, tmp_path / "out.onnx")
    command = f"onnxsmith check {path} --target onnxruntime --fix -o renamed.onnx"
    assert refusal.problem.fix == f"give them names of their own: `{command}`"
    assert "have the names of outer tensors: c, state, x" in refusal.problem.why
    assert onnxsmith.check(path, ["onnxruntime"], tmp_path / "renamed.onnx", fix=True).path
    assert_right(tmp_path / "renamed.onnx")


def test_every_hidden_name_at_every_depth_gets_a_free_name() -> None:
    model = load(onnx.parser.parse_model(LOOP))
    copy, said = body_names.renamed(model)
    assert said == ("c → c_1", "state → state_1", "state → state_2", "x → x_1")
    assert [value.name for value in body_names.hidden(model)] == ["c", "state", "state", "x"]
    assert not list(body_names.hidden(copy))
    assert body_names.renamed(copy) == (copy, ())


def test_the_name_of_a_later_outer_tensor_stays() -> None:
    text = """<ir_version: 8, opset_import: ["": 16]> g (float[2] x, bool c) => (float[2] y) {
        a = If<then_branch = t () => (float[2] y) { y = Neg(x) }, else_branch = e () => (float[2] a) { a = Abs(x) }>(c)
        y = Relu(a) }"""
    assert not list(body_names.hidden(load(onnx.parser.parse_model(text))))


def test_a_check_asks_about_the_names_as_they_are_and_has_a_fix() -> None:
    model = load(onnx.parser.parse_model(LOOP))
    ((said, made),) = BodyNames().tries(model, ())
    assert said == (
        "tensors in bodies are renamed, as an outer graph has these names, too: c → c_1, state → state_1, "
        "state → state_2 and 1 more"
    )
    assert not list(body_names.hidden(made))
    assert not list(BodyNames().tries(made, ()))
