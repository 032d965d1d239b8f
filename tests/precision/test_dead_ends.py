"""Where quantize cannot go on, it says why, where, and what works; and what a file cannot do stands in its headline."""

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
from onnxsmith.graph.structure import walk
from onnxsmith.precision import keep_list
from onnxsmith.precision.damage import relative_error
from onnxsmith.runtimes.base import get
from tests.conftest import Refused
from tests.precision.test_weight_storage import HEAD, made, random


def written(model: ir.Model, folder: Path) -> Path:
    path = folder / "model.onnx"
    save(model, path)
    return path


def part(result: Result) -> Quantisation:
    return next(one for one in result.report.parts if isinstance(one, Quantisation))


def product(rows: int = 64, columns: int = 64, dtype: str = "float") -> ir.Model:
    weight = random(rows, columns).astype({"float": "float32", "double": "float64"}.get(dtype, dtype))
    text = f"{HEAD} g ({dtype}[n,{rows}] x, {dtype}[{rows},{columns}] w) => ({dtype}[n,{columns}] y) "
    return made(text + "{ y = MatMul(x, w) }", w=weight)


def quantized(path: Path, **options: Any) -> Result:
    return onnxsmith.quantize(path, **{"measure_time": False, "budget": "5%", **options})


@pytest.mark.parametrize("to", ["int8", "int8-dynamic", "int4", "float16"])
def test_a_model_in_float64_is_quantised(tmp_path: Path, to: str) -> None:
    path, out = written(product(dtype="double"), tmp_path), tmp_path / "small.onnx"
    result = quantized(path, output=out, to=to)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert any("the model is in float64" in note for note in part(result).notes)
    new = load(out)
    assert [value.dtype for value in (*new.graph.inputs, *new.graph.outputs)] == [ir.DataType.DOUBLE] * 2
    assert not any(tensor.dtype == ir.DataType.DOUBLE for tensor in walk.tensors(new))
    feeds = {"x": random(3, 64, seed=9).astype(np.float64)}
    outputs = []
    for file in (path, out):
        with get("onnxruntime").prepare(file) as session:
            outputs.append(np.asarray(session.run(feeds)["y"]))
    assert outputs[0].dtype == outputs[1].dtype == np.float64
    assert relative_error(*outputs) < 0.2


def test_what_no_method_changes_is_shown(tmp_path: Path, refused: Refused) -> None:
    half = written(product(dtype="float16"), tmp_path)
    with refused("quantize/nothing") as refusal:
        quantized(half, to="int8", data=[{"x": np.full((1, 64), at, np.float16)} for at in range(8)])
    assert "w float16 [64, 64]" in refusal.problem.where
    assert "int4" in refusal.problem.fix
    text = f"{HEAD} g (int64[n,64] x, int64[64] w) => (int64[n,64] y) {{ y = Add(x, w) }}"
    whole = made(text, w=np.ones(64, np.int64))
    with refused("quantize/nothing") as refusal:
        quantized(written(whole, tmp_path), to="auto")
    assert refusal.problem.where == "the model has no weights in floats"
    assert refusal.problem.fix.startswith("keep the model as it is")


def test_the_fix_names_a_method_that_works(tmp_path: Path, refused: Refused) -> None:
    convolution = made(
        f"{HEAD} g (float[n,8,9,9] x, float[64,8,3,3] w) => (float[n,64,7,7] y) {{ y = Conv(x, w) }}", w=None
    )
    path = written(convolution, tmp_path)
    with refused("quantize/nothing") as refusal:
        quantized(path, to="int4")
    assert "--to int8" in refusal.problem.fix or 'to="int8"' in refusal.problem.fix
    assert quantized(path, to="int8").report.verdict is Verdict.DONE


@pytest.mark.parametrize("width", [None, 8])
def test_a_model_with_few_weights_is_to_be_kept(tmp_path: Path, refused: Refused, width: int | None) -> None:
    if width is None:
        model = made(f"{HEAD} g (float[n,4] x) => (float[n,4] y) {{ a = Relu(x) y = Add(a, x) }}")
    else:
        model = made(
            f"{HEAD} g (float[n,{width}] x, float[{width}] w) => (float[n,{width}] y) {{ y = Mul(x, w) }}", w=None
        )
    path = written(model, tmp_path)
    for to in ("int8-dynamic", "int4"):
        with refused("quantize/nothing") as refusal:
            quantized(path, to=to)
        assert (
            refusal.problem.fix
            == "keep the model as it is: it has so few weights that the file would not become smaller"
        )


def test_odd_sizes_for_tensorrt_have_a_fix_that_works(tmp_path: Path, refused: Refused) -> None:
    path = written(product(100, 70), tmp_path)
    with refused("quantize/nothing") as refusal:
        quantized(path, to="int4", target="tensorrt-10")
    assert "100 rows of its weight are not a multiple of the block size 128, 64" in refusal.problem.why
    assert "int8" in refusal.problem.fix
    assert "keep-list" not in refusal.problem.fix
    assert quantized(path, to="int8", target="tensorrt-10").report.verdict is Verdict.DONE


def test_a_file_that_onnxruntime_does_not_load_is_told_in_the_headline(tmp_path: Path) -> None:
    path, out = written(product(256, 256), tmp_path), tmp_path / "small.onnx"
    told = quantized(path, output=out, to="bfloat16")
    assert told.report.verdict is Verdict.DONE, told.report.problems
    assert "onnxruntime does not load it" in told.report.headline
    assert "openvino runs it" in told.report.headline
    out.unlink()
    refused = quantized(path, output=out, to="bfloat16", target="onnxruntime")
    assert [one.id for one in refused.report.problems] == ["quantize/target-refuses"]
    assert "no kernel" in refused.report.problems[0].why
    assert not out.exists()


@pytest.mark.parametrize("verb", ["quantize", "prune", "bisect"])
def test_unknown_names_are_all_told_with_their_lines(tmp_path: Path, refused: Refused, verb: str) -> None:
    path, listed = written(product(), tmp_path), tmp_path / "keep.txt"
    names = ["# of another model", "y", "yy", *(f"block.{index}" for index in range(12))]
    listed.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    given = {"keep": keep_list.read(listed)}
    kind = {"bisect": "bisect/unknown-node"}.get(verb, f"{verb}/unknown-layer")
    with refused(kind) as refusal:
        if verb == "quantize":
            quantized(path, to="int8", **given)
        else:
            getattr(onnxsmith, verb)(path, **given)
    told = refusal.problem
    assert "13 names of the keep-list are unknown: 'yy', 'block.0'" in told.what
    assert "'block.8' and 3 more" in told.what
    assert told.where.startswith(f"{listed}, lines 3, 4, 5, ")
    assert told.where.endswith(" and 3 more")
    assert "near to 'yy': 'y'" in told.why


def test_one_unknown_name_in_json_has_its_file(tmp_path: Path, refused: Refused) -> None:
    path, listed = written(product(), tmp_path), tmp_path / "keep.json"
    listed.write_text('{"keep": ["weights-alone: z"]}', encoding="utf-8")
    with refused("quantize/unknown-layer") as refusal:
        quantized(path, to="int8", keep=keep_list.read(listed))
    assert refusal.problem.what == "no node is called 'z'"
    assert refusal.problem.where == str(listed)
