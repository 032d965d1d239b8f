"""Weights that differ by rounding, and nodes whose weights differ because a BatchNormalization is folded in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from onnxsmith.base.report.parts.model_changes import Difference, SameRegions, WeightChanges
from onnxsmith.base.report.parts.written_files import View
from onnxsmith.comparison.graphs import array_differences
from onnxsmith.comparison.graphs.diff import diff
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.view import view
from tests.viewer.test_view import scene_in

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
Floats = npt.NDArray[np.float32]


def numbers(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def text(name: str, array: Floats) -> str:
    values = ",".join(f"{value:.9g}" for value in array.reshape(-1))
    return f"float[{','.join(map(str, array.shape))}] {name} = {{{values}}}"


def conv(weight: Floats, bias: Floats) -> str:
    return (
        HEAD
        + f"""g (float[N,3,8,8] x) => (float[N,4,6,6] y) <{text("w", weight)}, {text("b", bias)}> {{
        [conv] t = Conv(x, w, b) [act] y = Relu(t) }}"""
    )


WEIGHT, BIAS = numbers(4, 3, 3, 3), numbers(4, seed=1)
SCALE, SHIFT, MEAN, VAR = (numbers(4, seed=seed) for seed in (2, 3, 4, 5))
VAR = np.abs(VAR) + np.float32(0.5)
FACTOR = SCALE / np.sqrt(VAR + np.float32(1e-5))
FOLDED = conv(WEIGHT * FACTOR.reshape(4, 1, 1, 1), (BIAS - MEAN) * FACTOR + SHIFT)
ROOT = np.float32(1) / np.sqrt(VAR + np.float32(1e-5))
OTHERWISE = conv(
    (WEIGHT * ROOT.reshape(4, 1, 1, 1)) * SCALE.reshape(4, 1, 1, 1), BIAS * FACTOR + (SHIFT - MEAN * FACTOR)
)
UNFOLDED = (
    HEAD
    + f"""g (float[N,3,8,8] x) => (float[N,4,6,6] y) <{text("w", WEIGHT)}, {text("b", BIAS)}, {text("scale", SCALE)},
        {text("shift", SHIFT)}, {text("mean", MEAN)}, {text("var", VAR)}> {{
        [conv] t = Conv(x, w, b)
        [norm] u = BatchNormalization(t, scale, shift, mean, var)
        [act] y = Relu(u) }}"""
)


def test_weights_that_are_folded_in_another_order_are_equal_up_to_rounding() -> None:
    report = diff(from_text(FOLDED), from_text(OTHERWISE)).report
    rows = report.part(WeightChanges).rows
    assert {row.kind for row in rows} == {"rounding"}
    assert all(row.max_abs and row.max_rel and row.max_rel < 1e-6 for row in rows)
    assert set(report.part(Difference).changes) == {"differently rounded weight"}
    shown = view(from_text(FOLDED), from_text(OTHERWISE))
    assert shown.report.headline == "the model → the model: 1 node equal up to rounding"
    assert shown.report.part(View).pairs is not None
    assert shown.report.part(View).pairs["equal up to rounding"] == 1  # type: ignore[index]
    found = scene_in(shown.page)["difference"]
    assert [state for _, _, state in found["pairs"]] == [0, 0]
    (at,) = found["rounded"]
    assert all("equal up to rounding" in line and "by at most" in line for line in found["changes"][str(at)])


@pytest.mark.parametrize("factor", [1.001, 1 + 1e-5])
def test_a_small_change_of_one_element_is_a_change(factor: float) -> None:
    changed = WEIGHT.copy()
    changed[0, 0, 0, 0] *= np.float32(factor)
    one, other = from_text(conv(WEIGHT, BIAS)), from_text(conv(changed, BIAS))
    assert diff(one, other).report.part(Difference).changes == {"changed weight": 1}
    assert view(one, other).report.headline == "the model → the model: 1 node changed"


def test_a_conv_and_its_batchnorm_compute_what_the_folded_conv_computes() -> None:
    (row,) = diff(from_text(FOLDED), from_text(UNFOLDED)).report.part(SameRegions).rows
    assert [one.op for one in row.old] == ["Conv"]
    assert [one.op for one in row.new] == ["Conv", "BatchNormalization"]
    assert view(from_text(FOLDED), from_text(UNFOLDED)).report.headline.endswith(": 3 nodes computed otherwise")


def test_a_wrong_fold_is_a_change() -> None:
    """The weights of one channel differ by one part in a thousand from what folding gives."""
    wrong = FACTOR.copy()
    wrong[1] *= np.float32(1.001)
    other = conv(WEIGHT * wrong.reshape(4, 1, 1, 1), (BIAS - MEAN) * FACTOR + SHIFT)
    report = diff(from_text(other), from_text(UNFOLDED)).report
    assert not any(isinstance(part, SameRegions) for part in report.parts)
    assert report.part(Difference).changes["changed weight"] >= 1


def test_transposed_and_rounded() -> None:
    square = numbers(12, 12)
    near = np.nextafter(square.T, np.float32(np.inf))
    body = "g (float[N,12] x) => (float[N,12] y) <{}> {{ [m] y = Gemm{}(x, w) }}"
    one = from_text(HEAD + body.format(text("w", square), ""))
    other = from_text(HEAD + body.format(text("w", np.ascontiguousarray(near)), "<transB = 1>"))
    (row,) = diff(one, other).report.part(WeightChanges).rows
    assert (row.kind, row.form) == ("rounding", "transposed (1, 0)")


def test_what_is_rounding() -> None:
    one = numbers(6, 5)
    assert array_differences.within_rounding(one, np.nextafter(one, np.float32(2)))
    assert not array_differences.within_rounding(one, one * np.float32(1 + 1e-5))
    assert not array_differences.within_rounding(one, np.nextafter(one, np.float32(2)).astype(np.float64))
    assert not array_differences.within_rounding(one, one.reshape(5, 6))
    small = one.copy()
    small[0] *= np.float32(1e-12)
    assert not array_differences.within_rounding(small, small * np.linspace(0.999, 1, 6, dtype=np.float32)[:, None])
    for value in (np.inf, np.nan):
        odd = one.copy()
        odd[2, 2] = value
        assert array_differences.within_rounding(odd, odd.copy())
        assert not array_differences.within_rounding(odd, one)
    wide = one.astype(np.float64)
    assert array_differences.within_rounding(wide, np.nextafter(wide, 2))
    assert not array_differences.within_rounding(wide, wide.astype(np.float32).astype(np.float64) * (1 + 1e-9))


def test_a_bias_whose_terms_cancel() -> None:
    bias = np.array([1e3, 1e-6, 5.0], np.float32)
    assert array_differences.within_rounding(bias, bias + np.float32(1e-5) * np.array([0, 1, 0], np.float32))
    assert not array_differences.within_rounding(bias.reshape(3, 1, 1), bias.reshape(3, 1, 1) * np.float32(1.001))


def test_narrow_floats_count_every_difference() -> None:
    one = numbers(4, 4).astype(np.float16)
    assert not array_differences.within_rounding(one, np.nextafter(one, np.float16(9)))
