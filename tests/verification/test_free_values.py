"""Outputs that are free up to a sign or an order are compared as that; anything else still differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import parser

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.verification import free_values
from onnxsmith.verification.free_values import read

RNG = np.random.default_rng(0)
V = RNG.standard_normal((2, 5, 3)).astype(np.float32)
U, VH = RNG.standard_normal((6, 4)).astype(np.float32), RNG.standard_normal((4, 5)).astype(np.float32)
BOXES, SCORES = RNG.uniform(0, 600, (300, 4)).astype(np.float32), RNG.random(300).astype(np.float32)
SIGNS = np.array([1, -1, -1, 1], np.float32)


def equal(texts: Any, ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    found = read(texts).aligned(ours, theirs)
    return all(np.allclose(ours[name], found[name], 1e-5, 1e-5) for name in ours)


def test_columns_are_free_up_to_their_signs() -> None:
    turned = V * np.array([[[1, -1, -1]], [[-1, -1, 1]]], np.float32)
    assert not equal((), {"v": V}, {"v": turned})
    assert equal("sign:v", {"v": V}, {"v": turned})
    assert equal("sign:v:-2", {"v": V}, {"v": turned})
    assert equal("sign:v:-1", {"v": V.transpose(0, 2, 1)}, {"v": turned.transpose(0, 2, 1)})
    assert equal("sign:v", {"v": V[0, :, 0]}, {"v": -V[0, :, 0]})


def _inside(v: Any) -> Any:
    v[0, 1, 2] *= -1
    return v


@pytest.mark.parametrize(
    "wrong",
    [
        lambda v: v * 1.01,
        lambda v: v * np.float32([1, 1, 0.9]),
        lambda v: v[..., [1, 0, 2]],
        lambda v: v[:, ::-1],
        _inside,
        lambda v: -np.abs(v),
    ],
)
def test_a_wrong_vector_stays_wrong(wrong: Any) -> None:
    assert not equal("sign:v", {"v": V}, {"v": wrong(-V.copy())})


def test_a_pair_of_vectors_has_one_sign() -> None:
    ours = {"u": U, "vh": VH}
    assert equal("sign:u+vh:-1", ours, {"u": U * SIGNS, "vh": VH * SIGNS[:, None]})
    assert not equal("sign:u+vh:-1", ours, {"u": U * SIGNS, "vh": VH})
    assert equal(["sign:u", "sign:vh:-1"], ours, {"u": U * SIGNS, "vh": VH})


def test_rows_are_free_up_to_their_order() -> None:
    ours, order = {"boxes": BOXES, "scores": SCORES}, RNG.permutation(300)
    rounded = (BOXES * (1 + 1e-6 * RNG.standard_normal(BOXES.shape))).astype(np.float32)
    theirs = {"boxes": rounded[order], "scores": SCORES[order]}
    assert not equal((), ours, theirs)
    assert equal("order:boxes+scores", ours, theirs)
    assert not equal("order:boxes+scores", ours, {**theirs, "scores": SCORES})
    assert not equal("order:boxes", ours, theirs)
    assert equal("order:boxes:1", {"boxes": np.stack([BOXES, BOXES])}, {"boxes": np.stack([BOXES[order], rounded])})


@pytest.mark.parametrize("wrong", [lambda b: b * 1.001, lambda b: b[:, ::-1], lambda b: np.repeat(b[:150], 2, 0)])
def test_a_wrong_row_stays_wrong(wrong: Any) -> None:
    assert not equal("order:boxes", {"boxes": BOXES}, {"boxes": wrong(BOXES[::-1].copy())})


def test_near_rows_are_matched() -> None:
    grid = np.stack(np.meshgrid(np.arange(40), np.arange(40)), -1).reshape(-1, 2).astype(np.float32)
    assert equal("order:b", {"b": grid}, {"b": grid[RNG.permutation(1600)] + np.float32(1e-6)})


@pytest.mark.parametrize("other", [V[:, :, :2], V.astype(np.float64), np.zeros((0, 5, 3), np.float32)])
def test_another_layout_is_left_alone(other: Any) -> None:
    assert read("sign:v").aligned({"v": V}, {"v": other})["v"] is other


@pytest.mark.parametrize("text", ["vectors", "sign", "sign:", "phase:v", "sign:a+", ""])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        read([text])
    assert caught.value.problem.id == "input/free"


def test_an_unknown_output_is_refused() -> None:
    with pytest.raises(OnnxsmithError, match="no output is called 'v'"):
        read("sign:v", ["y"])
    assert str(read("sign:a:b+y:-1", ["a:b", "y"]).freedoms[0]) == "sign:a:b+y:-1"


def model(body: str) -> ir.Model:
    head = '<ir_version: 8, opset_import: ["": 17]> g (float[n,4] x) => (float[n,4] y, float[n] z) '
    return ir.from_proto(parser.parse_model(head + "{ two = Constant<value_ints = [1]>() " + body + " }"))


RIGHT = "y = Sin(x) z = ReduceSum<keepdims = 0>(y, two)"
TURNED = "s = Sin(x) y = Neg(s) z = ReduceSum<keepdims = 0>(s, two)"
WRONG = "s = Sin(x) h = Cos(x) y = Neg(h) z = ReduceSum<keepdims = 0>(s, two)"


COMPARED = [(TURNED, (), "different"), (TURNED, ("sign:y",), "done"), (WRONG, ("sign:y",), "different")]


@pytest.mark.parametrize(("body", "free", "verdict"), COMPARED)
def test_compare_takes_what_is_free(body: str, free: Any, verdict: str) -> None:
    report = onnxsmith.compare(model(RIGHT), model(body), free=free).report
    assert report.verdict.value == verdict
    said = {output.name: output.free for output in report.part(Verification).outputs}
    assert said == {"y": "free up to sign" if free else "", "z": ""}


def test_the_file_keeps_what_is_free() -> None:
    turned = model(TURNED)
    free_values.record(turned, read("sign:y"))
    assert onnxsmith.compare(model(RIGHT), turned).report.verdict.value == "done"
    found = onnxsmith.simplify(turned).report
    assert found.verdict.value == "done"
    assert [output.free for output in found.part(Verification).outputs] == ["free up to sign", ""]


@pytest.mark.parametrize("verb", ["simplify", "check", "split", "merge", "edit"])
def test_every_verb_refuses_an_output_that_the_model_lacks(verb: str, tmp_path: Path) -> None:
    settings = onnxsmith.Verify(free=["sign:w"])
    verbs: dict[str, Callable[[], object]] = {
        "simplify": lambda: onnxsmith.simplify(model(TURNED), verify=settings),
        "check": lambda: onnxsmith.check(model(TURNED), ["onnxruntime"], verify=settings),
        "split": lambda: onnxsmith.split(model(TURNED), tmp_path / "p", into=2, verify=settings),
        "merge": lambda: onnxsmith.merge(model(TURNED), model(TURNED), wires={"y": "x"}, verify=settings),
        "edit": lambda: _edited(settings),
    }
    with pytest.raises(OnnxsmithError, match="no output is called 'w'"):
        verbs[verb]()


def _edited(settings: onnxsmith.Verify) -> None:
    with onnxsmith.edit(model(TURNED), verify=settings) as edit:
        edit.rename(tensor="x", to="input")


def test_a_renamed_output_stays_free(tmp_path: Path) -> None:
    turned = model(TURNED)
    free_values.record(turned, read("sign:y"))
    with onnxsmith.edit(turned, tmp_path / "m.onnx") as edit:
        edit.rename(tensor="y", to="vectors")
    assert free_values.of_model(onnxsmith.load(tmp_path / "m.onnx")).freedoms == read("sign:vectors").freedoms
