"""quantize with NNCF: the same checks as for the other methods, and what only NNCF does or lacks."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.precision import quantisation_process
from onnxsmith.precision.damage import relative_error
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.forms.base import form
from onnxsmith.precision.methods import nncf
from onnxsmith.precision.methods.base import Work
from onnxsmith.precision.methods.nncf import Int4Nncf, Int8Nncf
from onnxsmith.precision.model_preparation import prepared
from onnxsmith.precision.quantisation_process import NNCF, Arithmetic
from onnxsmith.precision.ranges import measured
from onnxsmith.precision.unsharing import unshare
from onnxsmith.runtimes.base import get
from tests.conftest import Refused
from tests.precision.test_quantize import CLASSES, WIDTH, classifier, filled, part, quantized, samples, stored, weights

BOTH = pytest.mark.parametrize("to", ["int8-nncf", "int4-nncf"])


def inputs(count: int, seed: int = 0) -> list[Sample]:
    draw = np.random.default_rng(seed)
    return [Sample({"x": draw.standard_normal((1, WIDTH)).astype(np.float32)}) for _ in range(count)]


@pytest.mark.parametrize(
    ("to", "ratio", "dtypes"),
    [("int8-nncf", 0.45, {ir.DataType.INT8, ir.DataType.UINT8}), ("int4-nncf", 0.37, {ir.DataType.INT4})],
)
def test_each_method_keeps_the_score(tmp_path: Path, to: str, ratio: float, dtypes: set[ir.DataType]) -> None:
    path, out = stored(classifier(), tmp_path), tmp_path / "small.onnx"
    result = quantized(path, output=out, to=to, data=samples(path), metric="top1", budget="15%")
    assert result.report.verdict is Verdict.DONE, result.report.problems
    told = part(result)
    assert told.after is not None
    assert told.after >= told.bound == pytest.approx(0.85 * told.before)
    assert told.bytes_after is not None
    assert told.bytes_after <= ratio * told.bytes_before
    assert not any(layer.kept for layer in told.layers)
    written = load(out)
    assert {value.name: value.dtype for value in written.graph.inputs} == {"x": ir.DataType.FLOAT}
    narrow = [node.inputs[0] for node in written.graph if node.op_type == "DequantizeLinear"]
    assert {value.dtype for value in narrow if value is not None and value.const_value is not None} <= dtypes
    assert len([value for value in narrow if value is not None and value.const_value is not None]) == 3
    with get("onnxruntime").prepare(out) as session:
        right = [int(np.argmax(np.asarray(session.run(feeds)["y"]))) == label for feeds, label in samples(path)]
    assert np.mean(right) >= 0.8


@BOTH
def test_a_keep_list_is_what_nncf_ignores(tmp_path: Path, to: str) -> None:
    path, out = stored(classifier(), tmp_path), tmp_path / "small.onnx"
    result = quantized(path, output=out, to=to, data=samples(path), metric="top1", budget="20%", keep=["layer_[ac]"])
    assert [layer.name for layer in part(result).layers if not layer.kept] == ["layer_y"]
    wide = [
        tensor.shape[0]
        for tensor in walk.initializer_tensors(load(out))
        if tensor.dtype == ir.DataType.FLOAT and tensor.size >= WIDTH * CLASSES
    ]
    assert len(wide) == 2


@BOTH
def test_a_budget_that_nothing_meets_writes_nothing(tmp_path: Path, to: str) -> None:
    path, out = stored(classifier(), tmp_path), tmp_path / "small.onnx"
    with get("onnxruntime").prepare(path) as session:
        exact = np.concatenate([np.asarray(session.run(feeds)["y"]) for feeds, _ in samples(path)])

    def strict(found: list[Any], _: list[Any]) -> float:
        return -float(np.sum(np.abs(np.concatenate(found) - exact)))

    result = quantized(path, output=out, to=to, data=samples(path), calibration=samples(path, seed=1),
                       metric=strict, budget=0.0, evaluations=4)  # fmt: skip
    assert result.report.verdict is Verdict.FAILED
    assert [one.id for one in result.report.problems] == ["quantize/budget-not-met"]
    assert not out.exists()
    assert part(result).curve


def error_by_scheme(model: ir.Model, given: list[Sample]) -> dict[str, float]:
    """The error of the model's output in each scheme of int8-nncf."""
    ready = prepared(model, opset=13)
    runtime, found = get("onnxruntime"), {}
    with Arithmetic(ready.model, NNCF) as nncf, runtime.prepare(ready.model) as exact:
        work = Work(ready, nncf, form(None), measured(ready.model, runtime, given), runtime, given)
        for scheme in Int8Nncf().schemes(work):
            work.scheme = scheme
            with runtime.prepare(Int8Nncf().variant(work, frozenset())) as session:
                pairs = [(exact.run(dict(one.feeds))["y"], session.run(dict(one.feeds))["y"]) for one in given]
            found[scheme] = relative_error(
                *(np.concatenate([np.asarray(one) for one in side]) for side in zip(*pairs, strict=True))
            )
    return found


def test_smoothing_helps_where_few_channels_are_large() -> None:
    """Channels of `a` that are 200 times larger than the others, and weights that are as much smaller there."""
    model = classifier()
    first, second = weights((WIDTH, WIDTH), 1, WIDTH**-0.5), weights((WIDTH, WIDTH), 2, WIDTH**-0.5)
    first[:, :3] *= 200
    second[:3] /= 200
    for name, array in (("w1", first), ("w2", second)):
        model.graph.initializers[name].const_value = ir.tensor(array, name=name)
    found = error_by_scheme(model, inputs(32))
    assert found[nncf.SMOOTHED] < 0.5 * found[nncf.PLAIN]


def test_ranges_hold_the_values_of_each_sample() -> None:
    """A single sample is ten times larger than the others."""
    model, given = classifier(), inputs(16)
    given[5] = Sample({"x": 10 * np.asarray(given[5].feeds["x"])})
    with Arithmetic(prepared(model, opset=13).model, NNCF) as nncf:
        files = nncf.samples(given, 16)
        made = nncf.quantised("static", [], samples=files, correct_biases=False, smooth=False, reduce_range=False)
        node = next(one for one in made.graph if one.op_type == "QuantizeLinear")
        scale = ir.convenience.get_const_tensor(node.inputs[1])  # type: ignore[arg-type]
    x = np.concatenate([np.asarray(one.feeds["x"]) for one in given])
    assert node.inputs[0] is not None
    assert node.inputs[0].name == "x"
    assert scale is not None
    assert float(scale.numpy()) == pytest.approx(float(x.max() - x.min()) / 255, rel=0.01)


def test_a_scheme_that_nncf_refuses_is_not_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(classifier(), tmp_path)
    whole = Int8Nncf.variant

    def variant(self: Int8Nncf, work: Work, keep: frozenset[str]) -> ir.Model:
        if work.scheme == nncf.PLAIN:
            raise problem("quantize/refused", "NNCF refuses the model", why="KeyError")
        return whole(self, work, keep)

    monkeypatch.setattr(Int8Nncf, "variant", variant)
    result = quantized(path, to="int8-nncf", data=samples(path), metric="top1", budget="20%")
    assert result.report.verdict is Verdict.DONE
    assert any(note.startswith(f"{nncf.PLAIN}: NNCF refuses") for note in part(result).notes)


@pytest.mark.parametrize("to", ["int8-nncf", "int4-nncf"])
def test_without_nncf_it_is_refused_with_the_line_that_installs_it(
    tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    monkeypatch.setattr(quantisation_process, "find_spec", lambda _: None)
    path = stored(classifier(), tmp_path)
    with refused("quantize/not-installed") as refusal:
        quantized(path, to=to, data=samples(path), metric="top1")
    assert 'pip install "onnxsmith[nncf]"' in refusal.problem.fix


def test_auto_says_that_nncf_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantisation_process, "find_spec", lambda _: None)
    path = stored(classifier(), tmp_path)
    result = quantized(path, data=samples(path), metric="top1", budget="15%")
    assert result.report.verdict is Verdict.DONE
    assert {"int8-nncf: not tried: NNCF is not installed", "int4-nncf: not tried: NNCF is not installed"} <= set(
        part(result).notes
    )


def test_auto_tries_nncf(tmp_path: Path) -> None:
    path = stored(classifier(), tmp_path)
    told = part(quantized(path, data=samples(path), metric="top1", budget="15%"))
    tried = {told.to, *(note.partition(":")[0] for note in told.notes if " of the size" in note)}
    assert {"int8-nncf", "int4-nncf"} <= tried


def test_the_form_of_tensorrt_is_not_offered(tmp_path: Path, refused: Refused) -> None:
    path = stored(classifier(), tmp_path)
    with refused("quantize/target-form") as refusal:
        quantized(path, to="int8-nncf", target="tensorrt-10", data=samples(path), metric="top1")
    assert 'to="int8", target="tensorrt-10"' in refusal.problem.fix


def test_a_model_that_is_too_large_is_refused(refused: Refused) -> None:
    with Arithmetic(classifier(), replace(NNCF, most=1000)) as nncf, refused("quantize/too-large"):
        nncf.quantised("static", [])


def test_what_nncf_raises_is_a_problem(refused: Refused) -> None:
    with Arithmetic(classifier(), NNCF) as nncf:
        files = nncf.samples(inputs(2), 2)
        with refused("quantize/refused") as refusal:
            nncf.quantised("static", ["nobody"], samples=files, correct_biases=False, smooth=False, reduce_range=False)
    assert "nobody" in refusal.problem.why


def test_nncf_has_a_time_limit(tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    with Arithmetic(classifier(), NNCF) as nncf:
        files = nncf.samples(inputs(2), 2)
        monkeypatch.setenv("ONNXSMITH_TIME_LIMIT", "0.01")
        with refused("runtime/timeout"):
            nncf.quantised("static", [], samples=files, correct_biases=False, smooth=False, reduce_range=False)


def test_nncf_has_a_memory_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with Arithmetic(classifier(), NNCF) as nncf:
        files = nncf.samples(inputs(2), 2)
        monkeypatch.setenv("ONNXSMITH_MEMORY_LIMIT", "100MB")
        with pytest.raises(OnnxsmithError) as refusal:
            nncf.quantised("static", [], samples=files, correct_biases=False, smooth=False, reduce_range=False)
    # A library that gets no memory says so, or it crashes.
    found = refusal.value.problem
    if found.id != "runtime/memory":
        assert found.id == "runtime/died", str(found)
        assert "if memory was short (the process may use 100 MB), allow more: ONNXSMITH_MEMORY_LIMIT=" in found.fix
    else:
        assert found.what.startswith("NNCF needed more than")


def test_samples_on_disk_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    with Arithmetic(classifier(), NNCF) as nncf:
        assert len(nncf.samples(inputs(9), 4)) == 4
    size = len(inputs(1)[0].feeds["x"].tobytes())
    monkeypatch.setattr(quantisation_process, "_SAMPLE_BYTES", 3 * size)
    with Arithmetic(classifier(), NNCF) as nncf:
        assert len(nncf.samples(inputs(9), 9)) == 3


def test_the_report_says_on_how_many_samples_nncf_ran(tmp_path: Path) -> None:
    path = stored(classifier(), tmp_path)
    result = quantized(path, to="int8-nncf", data=samples(path), calibration=samples(path, 70, seed=1), metric="top1",
                       budget="20%")  # fmt: skip
    assert "NNCF ran the model on the first 64 of 70 samples for calibration" in part(result).notes


def test_nncf_needs_neither_torch_nor_openvino_and_sends_nothing(tmp_path: Path) -> None:
    path = stored(classifier(), tmp_path)
    with Arithmetic(classifier(), NNCF) as nncf:
        files = nncf.samples(inputs(2), 2)
        options = {"samples": files, "correct_biases": True, "smooth": True, "reduce_range": False}
        asked = {"do": "static", "path": str(path), "out": str(tmp_path / "o.onnx"), "exclude": [], "options": options}
        code = (
            "import sys; from onnxsmith.precision._nncf_host import answer; "
            f"answer({asked!r}, {{}}); "
            "print('loaded:', [n for n in ('torch', 'openvino', 'openvino_telemetry') if sys.modules.get(n)])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_a_matrix_that_does_not_divide_into_blocks_stays() -> None:
    model = from_text(
        """<ir_version: 10, opset_import: ["": 21]>
        g (float[n,64] x, float[64,40] w1, float[40,64] w2, float[8,64] w3) => (float[n,8] y) {
            a = MatMul(x, w1) b = MatMul(a, w2) y = Gemm<transB = 1>(b, w3)
        }"""
    )
    given = {"w1": weights((64, 40), 1), "w2": weights((40, 64), 2), "w3": weights((8, 64), 3)}
    ready = prepared(filled(model, given), opset=21)
    with Arithmetic(ready.model, NNCF) as nncf:
        work = Work(ready, nncf, form(None))
        assert [layer.name for layer in Int4Nncf().layers(work)] == ["-> a", "-> y"]


@BOTH
def test_a_branch_that_reads_from_outside(tmp_path: Path, to: str) -> None:
    """A weight that a branch reads, too, is there afterwards."""
    model = from_text(
        f"""<ir_version: 10, opset_import: ["": 21]>
        g (float[n,{WIDTH}] x, bool c, float[{WIDTH},{WIDTH}] w1, float[{WIDTH},{4 * WIDTH}] w2)
        => (float[n,{4 * WIDTH}] y) {{
            a = MatMul(x, w1)
            b = If (c) <then_branch = t () => (p) {{ p = MatMul(a, w1) }}, else_branch = e () => (q) {{ q = Neg(a) }}>
            y = MatMul(b, w2)
        }}"""
    )
    given = {"w1": weights((WIDTH, WIDTH), 1, 0.1), "w2": weights((WIDTH, 4 * WIDTH), 2, 0.1)}
    path = stored(filled(model, given), tmp_path)
    data = [{"x": weights((1, WIDTH), at), "c": np.array(at % 2 == 0)} for at in range(40)]
    result = quantized(path, to=to, data=data, budget="5%")
    assert result.report.verdict is Verdict.DONE, result.report.problems


def test_a_mask_of_infinity_keeps_its_neighbours_wide(tmp_path: Path) -> None:
    model = from_text(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[n,{WIDTH}] x, float[{WIDTH},{WIDTH}] w1, float[{WIDTH},{CLASSES}] w2, float[{WIDTH}] mask)
        => (float[n,{CLASSES}] y) {{
            a = MatMul(x, w1) b = Add(a, mask) c = Softmax<axis = 1>(b) y = MatMul(c, w2)
        }}"""
    )
    mask = np.where(np.arange(WIDTH) % 4 == 0, -np.inf, 0).astype(np.float32)
    given = {"w1": weights((WIDTH, WIDTH), 1, 0.1), "w2": weights((WIDTH, CLASSES), 2, 4.0), "mask": mask}
    path = stored(filled(model, given), tmp_path)
    result = quantized(path, to="int8-nncf", data=[{"x": weights((1, WIDTH), at)} for at in range(40)], budget="5%")
    assert result.report.verdict is Verdict.DONE, result.report.problems
    kept = {layer.name: layer.kept for layer in part(result).layers}
    assert kept["-> y"] == ""


def test_an_output_that_the_score_does_not_read(tmp_path: Path) -> None:
    """A layer's result that is an output and goes through a Relu keeps its negative numbers."""
    model = classifier()
    inner = next(node for node in model.graph if node.name == "layer_c").outputs[0]
    inner.type, inner.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(["n", WIDTH])
    model.graph.outputs.append(inner)
    path, out = stored(model, tmp_path), tmp_path / "small.onnx"
    quantized(path, output=out, to="int8-nncf", data=samples(path), metric="top1", budget="20%")
    feeds = samples(path)[0][0]
    with get("onnxruntime").prepare(path) as one, get("onnxruntime").prepare(out) as other:
        assert relative_error(one.run(feeds)["c"], other.run(feeds)["c"]) < 0.05


def shared() -> ir.Model:
    """Two products with one weight and one bias."""
    model = from_text(
        f"""<ir_version: 10, opset_import: ["": 21]>
        g (float[n,{WIDTH}] x, float[{WIDTH},{WIDTH}] w1, float[{WIDTH}] b, float[{WIDTH},{4 * WIDTH}] w2)
        => (float[n,{4 * WIDTH}] y) {{
            a = MatMul(x, w1) c = Add(a, b) d = Relu(c) e = MatMul(d, w1) f = Add(e, b) y = MatMul(f, w2)
        }}"""
    )
    w1, w2 = weights((WIDTH, WIDTH), 1, WIDTH**-0.5), weights((WIDTH, 4 * WIDTH), 2, WIDTH**-0.5)
    return filled(model, {"w1": w1, "b": weights((WIDTH,), 3), "w2": w2})


@BOTH
@pytest.mark.parametrize("keep", [(), ("node_Gemm_1",)])
def test_a_weight_with_several_readers(tmp_path: Path, to: str, keep: tuple[str, ...]) -> None:
    """Those that are kept have it in float32, and the bias of one is not corrected for the other."""
    path, out = stored(shared(), tmp_path), tmp_path / "small.onnx"
    data = [{"x": weights((1, WIDTH), at)} for at in range(40)]
    result = quantized(path, output=out, to=to, data=data, metric="cosine", budget="5%", keep=keep)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert [layer.name for layer in part(result).layers if layer.kept] == list(keep)
    wide = [tensor for tensor in walk.initializer_tensors(load(out)) if tensor.dtype == ir.DataType.FLOAT]
    assert sum(tensor.size == WIDTH**2 for tensor in wide) == bool(keep)


def test_a_vector_is_copied_for_each_reader() -> None:
    """The bias of one node is corrected without the other's."""
    model = shared()
    unshare(model, {"nobody"})
    w1, b = (
        [node.inputs[1] for node in model.graph if node.op_type == op and node.inputs[0].name != "f"]  # type: ignore[union-attr]
        for op in ("MatMul", "Add")
    )
    assert len({id(value) for value in w1}) == 1
    assert len({id(value) for value in b}) == 2
    arrays = [value.const_value.numpy() for value in b if value is not None and value.const_value is not None]
    np.testing.assert_array_equal(*arrays)
