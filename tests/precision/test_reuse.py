"""A keep-list that `quantize` wrote gives the same file again, whatever the budget is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.quantisation import Quantisation
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.precision import keep_list
from onnxsmith.precision.methods.base import Layer, Work
from onnxsmith.precision.methods.int8 import Int8
from tests.precision.test_weight_storage import HEAD, made, random


def part(result: Result) -> Quantisation:
    return next(one for one in result.report.parts if isinstance(one, Quantisation))


def four_bits_damage() -> ir.Model:
    """Numbers of the second weight are 60 times larger in each block: 4 bits erase the others, 8 bits do not."""
    first, second = random(64, 64, seed=1), random(64, 64, seed=2)
    first[:, ::16] = 0
    second[::16] *= 60
    text = f"{HEAD} g (float[n,64] x, float[64,64] a, float[64,64] b) => (float[n,64] y) "
    return made(text + "{ h = MatMul(x, a) y = MatMul(h, b) }", a=first, b=second)


def eight_bits_damage(step: int) -> ir.Model:
    """The input of the second product has elements of a thousand and of one."""
    large = slice(0, 32) if step == 1 else slice(0, 64, 2)
    first, second = random(64, 64, seed=1, scale=0.125), random(64, 64, seed=2, scale=0.125)
    first[:, large] *= 1000
    second[large] /= 1e6
    text = f"{HEAD} g (float[n,64] x, float[64,64] a, float[64,64] b) => (float[n,64] y) "
    return made(text + "{ h = MatMul(x, a) s = Tanh(h) k = Mul(h, s) y = MatMul(k, b) }", a=first, b=second)


CASES = {
    "int4": (four_bits_damage, 0.01),
    "int8": (lambda: eight_bits_damage(1), 0.003),
    "int8, as floats": (lambda: eight_bits_damage(2), 0.003),
}


@pytest.mark.parametrize("suffix", [".txt", ".json"])
@pytest.mark.parametrize("case", CASES)
def test_a_written_list_gives_the_same_file(tmp_path: Path, case: str, suffix: str) -> None:
    make, budget = CASES[case]
    path, listed = tmp_path / "model.onnx", tmp_path / f"keep{suffix}"
    save(make(), path)
    data = [{"x": random(1, 64, seed=seed)} for seed in range(60)]
    given = {"to": case.partition(",")[0], "data": data, "metric": "cosine", "measure_time": False}
    first = onnxsmith.quantize(path, tmp_path / "first.onnx", budget=budget, keep_list=listed, **given)
    assert first.report.verdict is Verdict.DONE, first.report.problems
    assert part(first).weights or part(first).eight
    for number, other in enumerate((budget, 2.0)):
        again, out = tmp_path / f"again{suffix}", tmp_path / f"{number}.onnx"
        result = onnxsmith.quantize(
            path, out, budget=other, keep=keep_list.read(listed), keep_list=again, write_unsure=True, **given
        )
        assert result.report.verdict is Verdict.DONE, result.report.problems
        assert out.read_bytes() == (tmp_path / "first.onnx").read_bytes()
        assert again.read_text(encoding="utf-8") == listed.read_text(encoding="utf-8")
        assert part(result).evaluations == 1


def test_the_header_is_true(tmp_path: Path) -> None:
    path, listed = tmp_path / "model.onnx", tmp_path / "keep.txt"
    save(four_bits_damage(), path)
    data = [{"x": random(1, 64, seed=seed)} for seed in range(60)]
    onnxsmith.quantize(path, to="int4", data=data, metric="cosine", budget=0.01, measure_time=False, keep_list=listed)
    text = listed.read_text(encoding="utf-8")
    assert "float32" not in text
    assert "# 8-bits: the layer stores its weights in 8 bits, not 4" in text
    assert "\n8-bits: y\n" in text


def test_a_scheme_that_misses_the_budget_is_told_and_others_are_tried(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(eight_bits_damage(1), path)
    data = [{"x": random(1, 64, seed=seed)} for seed in range(60)]
    given: dict[str, Any] = {"to": "int8", "data": data, "metric": "cosine", "measure_time": False}
    result = onnxsmith.quantize(path, budget=0.003, keep=["scheme: ranges that hold each value"], **given)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert any("the scheme that the keep-list names exceeds the budget" in note for note in part(result).notes)
    other = onnxsmith.quantize(
        path, budget=2.0, write_unsure=True, keep=["scheme: blocks of 256", "8-bits: y"], **given
    )
    assert other.report.verdict is Verdict.DONE, other.report.problems
    said = " ".join(part(other).notes)
    assert "the keep-list names the scheme 'blocks of 256', which int8 does not have" in said
    assert "int8 does not support `8-bits:` in a keep-list" in said


@pytest.mark.parametrize(("to", "old", "new"), [("int8", 11, 13), ("int8-dynamic", 10, 11), ("float16", 11, 13)])
def test_a_raised_opset_is_told(tmp_path: Path, to: str, old: int, new: int) -> None:
    head = HEAD.replace("18", str(old))
    model = made(f"{head} g (float[n,64] x, float[64,64] w) => (float[n,64] y) {{ y = MatMul(x, w) }}", w=None)
    path, out = tmp_path / "model.onnx", tmp_path / "small.onnx"
    save(model, path)
    result = onnxsmith.quantize(path, out, to=to, budget="20%", measure_time=False)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert opset_conversion.of(load(out)) == new
    assert any(f"model converted from opset {old} to {new}, because " in note for note in part(result).notes)


def test_an_opset_that_stays_is_not_told(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(eight_bits_damage(1), path)
    result = onnxsmith.quantize(path, to="float16", budget="20%", measure_time=False)
    assert not any("opset" in note for note in part(result).notes)
    assert np.isfinite(part(result).before)


def test_layers_are_listed_once_for_all_variants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, calls = tmp_path / "model.onnx", 0
    save(eight_bits_damage(1), path)
    whole = Int8.layers

    def counted(self: Int8, work: Work) -> list[Layer]:
        nonlocal calls
        calls += 1
        return whole(self, work)

    monkeypatch.setattr(Int8, "layers", counted)
    data = [{"x": random(1, 64, seed=seed)} for seed in range(60)]
    result = onnxsmith.quantize(path, to="int8", data=data, metric="cosine", budget=0.003, measure_time=False)
    assert part(result).evaluations > 3
    assert calls == 2  # before and after the ranges are known


def test_a_list_of_quantize_is_one_of_prune_and_bisect(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(eight_bits_damage(1), path)
    entries = ["scheme: blocks of 256", "model: simplified", "weights-alone: h"]
    result = onnxsmith.bisect(path, keep=entries)
    assert "h" in str(result.report.parts)
