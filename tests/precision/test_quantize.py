"""quantize: what is written keeps the score, is smaller, and is measured; everything else is refused."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Facts, Table
from onnxsmith.base.report.parts.measurements import Ratio
from onnxsmith.base.report.parts.quantisation import Quantisation
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.deployment.benching import two_files
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.precision import damage, final, model_preparation, ranges
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.keep_list import read as read_keep
from onnxsmith.precision.methods._gemm import written_out
from onnxsmith.precision.methods.base import Work
from onnxsmith.precision.methods.int8 import Int8, Int8Dynamic
from onnxsmith.precision.model_preparation import prepared
from onnxsmith.precision.quantisation_process import Arithmetic
from onnxsmith.runtimes.base import Options, Session, get
from onnxsmith.runtimes.onnxruntime import OnnxRuntime
from tests.conftest import Refused

WIDTH, CLASSES = 64, 8


def weights(shape: tuple[int, ...], seed: int, scale: float = 1.0) -> np.ndarray[Any, np.dtype[np.float32]]:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def classifier(*, scale: float = 1.0) -> ir.Model:
    """Three matrix products with an activation between; `scale` multiplies the second weight, and its inverse the
    third."""
    model = from_text(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[n,{WIDTH}] x, float[{WIDTH},{WIDTH}] w1, float[{WIDTH},{WIDTH}] w2, float[{WIDTH},{CLASSES}] w3)
        => (float[n,{CLASSES}] y) {{
            a = MatMul(x, w1)
            b = Relu(a)
            c = MatMul(b, w2)
            d = Relu(c)
            y = MatMul(d, w3)
        }}"""
    )
    given = {
        "w1": weights((WIDTH, WIDTH), 1, WIDTH**-0.5),
        "w2": weights((WIDTH, WIDTH), 2, scale * WIDTH**-0.5),
        "w3": weights((WIDTH, CLASSES), 3, WIDTH**-0.5 / scale),
    }
    return named(filled(model, given))


def named(model: ir.Model) -> ir.Model:
    """The model with a name for each node."""
    for node in model.graph:
        node.name = f"layer_{node.outputs[0].name}"
    return model


def stored(model: ir.Model, folder: Path) -> Path:
    path = folder / "model.onnx"
    save(model, path)
    return path


def samples(path: Path, count: int = 40, seed: int = 0) -> list[tuple[dict[str, Any], int]]:
    """Inputs with the classes that the model itself gives."""
    draw = np.random.default_rng(seed)
    found = []
    with get("onnxruntime").prepare(path) as session:
        for _ in range(count):
            x = draw.standard_normal((1, WIDTH)).astype(np.float32)
            found.append(({"x": x}, int(np.argmax(np.asarray(session.run({"x": x})["y"])))))
    return found


def quantized(path: Path, **options: Any) -> Result:
    return onnxsmith.quantize(path, **{"measure_time": False, **options})


def part(result: Result) -> Quantisation:
    return next(one for one in result.report.parts if isinstance(one, Quantisation))


@pytest.mark.parametrize(
    ("to", "ratio", "operator"),
    [
        ("int8", 0.37, "QuantizeLinear"),
        ("int8-dynamic", 0.37, "com.microsoft::DynamicQuantizeMatMul"),
        ("int4", 0.37, "com.microsoft::MatMulNBits"),
        ("float16", 0.53, "Cast"),
        ("bfloat16", 0.53, "Cast"),
    ],
)
def test_each_method_keeps_the_score(tmp_path: Path, to: str, ratio: float, operator: str) -> None:
    path, out = stored(classifier(), tmp_path), tmp_path / "small.onnx"
    result = quantized(path, output=out, to=to, data=samples(path, 200), metric="top1", budget="15%")
    assert result.report.verdict is Verdict.DONE
    told = part(result)
    assert told.after is not None
    assert told.after >= told.bound == pytest.approx(0.85 * told.before)
    assert told.bytes_after is not None
    assert told.bytes_after <= ratio * told.bytes_before
    written = load(out)
    assert {value.name: value.dtype for value in written.graph.inputs} == {"x": ir.DataType.FLOAT}
    ops = walk.histogram(written)
    assert operator in ops or to == "int8-dynamic", ops
    assert not any(layer.kept for layer in told.layers)
    with get("reference" if to == "bfloat16" else "onnxruntime").prepare(out) as session:
        right = [int(np.argmax(np.asarray(session.run(feeds)["y"]))) == label for feeds, label in samples(path)]
    assert np.mean(right) >= 0.8


def test_a_budget_that_nothing_meets_writes_nothing(tmp_path: Path) -> None:
    path, out = stored(classifier(), tmp_path), tmp_path / "small.onnx"

    def strict(found: list[Any], _: list[Any]) -> float:
        return -float(np.sum(np.abs(np.concatenate(found) - exact)))

    with get("onnxruntime").prepare(path) as session:
        exact = np.concatenate([np.asarray(session.run(feeds)["y"]) for feeds, _ in samples(path)])
    result = quantized(path, output=out, to="int4", data=samples(path), calibration=samples(path, seed=1),
                       metric=strict, budget=0.0)  # fmt: skip
    assert result.report.verdict is Verdict.FAILED
    assert [one.id for one in result.report.problems] == ["quantize/budget-not-met"]
    assert not out.exists()
    assert result.model is None
    assert part(result).curve
    assert all(not one.meets for one in part(result).curve)
    told = result.report.problems[0].why
    assert "has 3 layers in 8 bits" in told
    assert "as given" not in told
    assert [one.eight for one in part(result).layers] == ["as in the model with the best score"] * 3
    assert not part(result).kept
    assert {one.eight for one in part(result).curve if not one.kept} >= {0, 3}
    table = next(block for block in part(result).blocks() if isinstance(block, Table) and "in 8 bits" in block.head)
    assert table.head[:2] == ("layers kept", "in 8 bits")
    score = next(block for block in part(result).blocks() if isinstance(block, Facts)).rows[1]
    assert score[1].endswith(" of the given model")


def test_layers_that_the_budget_needs_stay(tmp_path: Path) -> None:
    """Two rows in each block of the second weight are a thousand times larger than the rest, which 4 bits erase. What
    they are multiplied by is always 0."""
    model = classifier()
    first = weights((WIDTH, WIDTH), 1, WIDTH**-0.5)
    first[:, ::16] = 0
    model.graph.initializers["w1"].const_value = ir.tensor(first, name="w1")
    spoilt = weights((WIDTH, WIDTH), 2, WIDTH**-0.5)
    spoilt[::16] *= 1000
    held = model.graph.initializers["w2"]
    held.const_value = ir.tensor(spoilt, name="w2")
    path = stored(model, tmp_path)
    keep = tmp_path / "keep.txt"
    result = quantized(path, to="int4", data=samples(path, 80), metric=None,
                       budget="3%", keep_list=keep)  # fmt: skip
    told = part(result)
    kept = [layer.name for layer in told.kept]
    assert result.report.verdict is Verdict.DONE
    assert "layer_c" in kept
    assert len(kept) < 3
    assert "layer_c" in keep.read_text(encoding="utf-8")
    worst = max(told.layers, key=lambda one: one.damage or 0.0)
    assert worst.name == "layer_c"


def test_a_given_keep_list_is_used(tmp_path: Path) -> None:
    path = stored(classifier(), tmp_path)
    result = quantized(path, to="int8", data=samples(path), metric="top1", budget="20%", keep=["layer_[ac]"])
    kept = "the layer is on the given keep-list"
    assert [(layer.name, layer.kept) for layer in part(result).layers] == [
        ("layer_a", kept), ("layer_c", kept), ("layer_y", ""),
    ]  # fmt: skip


def test_values_that_overflow_stay_wide(tmp_path: Path) -> None:
    path = stored(classifier(scale=1e5), tmp_path)
    result = quantized(path, to="float16", data=samples(path), metric="top1", budget="1%")
    kept = {layer.name: layer.kept for layer in part(result).layers if layer.kept}
    assert "reaches" in kept["layer_c"]
    assert "layer_a" not in kept
    assert part(result).broken == 0


def scaled(factor: float) -> ir.Model:
    """Two products, between which the values are multiplied by a factor and divided by it."""
    model = from_text(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[n,{WIDTH}] x, float[{WIDTH},{WIDTH}] w1, float[{WIDTH},{CLASSES}] w2, float f)
        => (float[n,{CLASSES}] y) {{
            a = MatMul(x, w1)
            b = Mul(a, f)
            c = Relu(b)
            d = Div(c, f)
            y = MatMul(d, w2)
        }}"""
    )
    given = {"w1": weights((WIDTH, WIDTH), 1, WIDTH**-0.5), "w2": weights((WIDTH, CLASSES), 2, WIDTH**-0.5)}
    return named(filled(model, {**given, "f": np.array(factor, np.float32)}))


def test_a_large_factor_is_not_merged_into_weights_that_would_stay_wide(tmp_path: Path) -> None:
    path, out = stored(scaled(3e5), tmp_path), tmp_path / "small.onnx"
    result = quantized(path, output=out, to="float16", data=samples(path), metric="top1", budget="5%")
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert any("not simplified first" in note for note in part(result).notes)
    assert {layer.op for layer in part(result).kept} == {"Mul", "Relu", "Div"}
    assert not any(tensor.dtype == ir.DataType.FLOAT and tensor.size > 1 for tensor in walk.tensors(load(out)))


def test_the_share_of_weights_that_stays_is_in_the_headline(tmp_path: Path) -> None:
    path = stored(classifier(scale=1e6), tmp_path)
    result = quantized(path, to="float16", data=samples(path), metric="top1", budget="5%", allow_slower=True)
    stays = sum(one.nbytes for one in part(result).kept) / sum(one.nbytes for one in part(result).layers)
    assert stays >= 0.5
    assert f"{stays:.0%} of the weights kept as given" in result.report.headline


def test_without_data_accuracy_is_not_claimed(tmp_path: Path) -> None:
    path = stored(classifier(), tmp_path)
    result = quantized(path, to="int8-dynamic", budget="5%")
    assert "accuracy was not measured" in result.report.headline
    assert not part(result).labelled


def test_without_labels_it_is_agreement(tmp_path: Path) -> None:
    path = stored(classifier(), tmp_path)
    result = quantized(path, to="float16", data=[feeds for feeds, _ in samples(path)], metric="top1")
    assert "without labels" in result.report.headline
    assert part(result).before == 1.0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"to": "int7"}, "quantize/unknown-method"),
        ({"to": "int8", "metric": "accuracy"}, "quantize/unknown-metric"),
        ({"to": "int8", "budget": "half"}, "quantize/budget"),
        ({"to": "int8", "budget": "-1%"}, "quantize/budget"),
        ({"to": "int8", "samples": 0}, "quantize/samples"),
        ({"to": "int8", "evaluations": 0}, "quantize/evaluations"),
        ({"to": "int8", "target": "toaster"}, "quantize/target"),
        ({"to": "int8", "keep": ["nobody"]}, "quantize/unknown-layer"),
        ({"to": "int8", "metric": lambda found, labels: float("nan")}, "quantize/metric"),
        ({"to": "int8", "metric": lambda found, labels: 1 / 0}, "quantize/metric"),
        ({"to": "int8", "decode": lambda outputs: outputs["z"]}, "quantize/decode"),
        ({"to": "int8", "metric": "map50"}, "quantize/labels"),
        ({"to": "int8", "sizes": {"foo": 3}}, "quantize/unknown-dim"),
        ({"to": "int8", "data": None}, "quantize/no-data"),
        ({"to": "int8", "data": None, "metric": "map50"}, "quantize/no-data"),
    ],
)
def test_bad_requests(tmp_path: Path, refused: Refused, options: dict[str, Any], problem: str) -> None:
    path = stored(classifier(), tmp_path)
    with refused(problem):
        quantized(path, output=tmp_path / "out.onnx", **{"data": samples(path, 8), "metric": "top1", **options})
    assert not (tmp_path / "out.onnx").exists()


def test_the_same_sample_twice_is_refused(tmp_path: Path, refused: Refused) -> None:
    path = stored(classifier(), tmp_path)
    found = samples(path, 8)
    with refused("quantize/same-data") as refusal:
        quantized(path, to="int8", data=found, calibration=found[3:4], metric="top1")
    assert "[3]" in refusal.problem.where


def test_some_labels_only_are_refused(tmp_path: Path, refused: Refused) -> None:
    path = stored(classifier(), tmp_path)
    found = samples(path, 8)
    with refused("quantize/labels") as refusal:
        quantized(path, to="int8", data=[*found[:7], found[7][0]], metric="top1")
    assert "[7]" in refusal.problem.where


@pytest.mark.parametrize(
    ("label", "said"), [("class3", "is 'class3'"), (100, "is 100"), (3.5, "is 3.5"), ([1, 2], "has 2 numbers")]
)
def test_a_label_that_no_prediction_can_be_is_refused(tmp_path: Path, refused: Refused, label: Any, said: str) -> None:
    path = stored(classifier(), tmp_path)
    found = samples(path, 8)
    found[6] = (found[6][0], label)
    with refused("quantize/labels") as refusal:
        quantized(path, to="int8", data=found, metric="top1")
    assert said in refusal.problem.what
    assert "[6]" in refusal.problem.where


@pytest.mark.parametrize(
    ("labels", "told"),
    [("classes", "--metric top1 uses them"), ("texts", "--metric cer uses them"), ("vectors", "that fits")],
)
def test_labels_that_no_metric_reads_are_told(tmp_path: Path, labels: str, told: str) -> None:
    path = stored(classifier(), tmp_path)
    made: dict[str, Any] = {"classes": 3, "texts": "three", "vectors": [0.5] * CLASSES}
    data = [(feeds, made[labels]) for feeds, _ in samples(path)]
    result = quantized(path, to="float16", data=data, budget="5%")
    notes = [note for note in part(result).notes if "labels" in note]
    assert len(notes) == 1
    assert "not used" in notes[0]
    assert told in notes[0]
    bare = quantized(path, to="float16", data=[feeds for feeds, _ in data], budget="5%")
    assert not any("labels" in note for note in part(bare).notes)
    assert part(bare).before == part(result).before


def test_classes_are_no_vectors_for_the_cosine(tmp_path: Path, refused: Refused) -> None:
    path = stored(classifier(), tmp_path)
    with refused("quantize/labels") as refusal:
        quantized(path, to="float16", data=samples(path), metric="cosine")
    assert "leave metric" in refusal.problem.fix
    assert 'metric="top1"' in refusal.problem.fix
    for options in ({}, {"metric": "top1"}):
        assert quantized(path, to="float16", data=samples(path), **options).report.verdict is Verdict.DONE


def test_a_score_that_cannot_become_worse_is_no_start(tmp_path: Path, refused: Refused) -> None:
    path = stored(classifier(), tmp_path)
    wrong = [(feeds, (label + 1) % CLASSES) for feeds, label in samples(path, 8)]
    with refused("quantize/metric") as refusal:
        quantized(path, to="int8", data=wrong, metric="top1")
    assert "always wrong" in refusal.problem.what


def test_a_sample_without_rows_is_named(tmp_path: Path, refused: Refused) -> None:
    path = stored(classifier(), tmp_path)
    found = samples(path, 8)
    found[6] = ({"x": np.zeros((0, WIDTH), np.float32)}, 0)
    with refused("quantize/data") as refusal:
        quantized(path, to="int8", data=found, metric="top1")
    assert "[6]" in refusal.problem.where
    assert f"x [0, {WIDTH}]" in refusal.problem.why


@pytest.mark.parametrize("metric", ["cosine", lambda found, labels: float(np.mean(found))])
def test_a_sample_whose_score_is_no_number_is_named(tmp_path: Path, refused: Refused, metric: Any) -> None:
    path = stored(classifier(), tmp_path)
    found = [({"x": feeds["x"]}, np.zeros((1, CLASSES))) for feeds, _ in samples(path, 8)]
    found[6][0]["x"][0, 0] = np.nan
    with refused("quantize/metric") as refusal:
        quantized(path, to="int8", data=found, metric=metric)
    assert "[6]" in refusal.problem.where
    assert "not finite on 1 of 6 samples, first on" in refusal.problem.why


def no_number(found: list[Any], labels: list[Any]) -> float:
    """A metric that gives no number where a class is 3."""
    return float("nan") if 3 in [int(np.argmax(one)) for one in found] else 1.0


def test_a_metric_of_the_users_that_gives_no_number_is_to_blame(tmp_path: Path, refused: Refused) -> None:
    path = stored(classifier(), tmp_path)
    found = samples(path)
    with refused("quantize/metric") as refusal:
        quantized(path, to="int8", data=found, calibration=samples(path, seed=1), metric=no_number)
    told = refusal.problem
    bad = [f"[{index}]" for index, (_, label) in enumerate(found) if label == 3]
    assert told.what == "the metric function no_number returned nan for the given model"
    assert f"no number for {len(bad)} of {len(found)} samples" in told.where
    assert all(name in told.where for name in bad[:5])
    assert __file__ in told.where
    assert "the outputs of the model are finite" in told.why
    assert "label" not in f"{told.what}{told.why}{told.fix}"


def test_a_decoding_that_gives_no_number_is_to_blame(tmp_path: Path, refused: Refused) -> None:
    path = stored(classifier(), tmp_path)

    def decode(outputs: Any) -> Any:
        return np.log(np.minimum(outputs["y"], 0))

    with refused("quantize/metric") as refusal, np.errstate(all="ignore"):
        quantized(path, to="int8", data=samples(path), decode=decode, metric=lambda found, _: float(np.sum(found)))
    assert "the decoded predictions are not finite on 30 of these samples" in refusal.problem.why


def test_a_quantised_model_is_refused(tmp_path: Path, refused: Refused) -> None:
    path, out = stored(classifier(), tmp_path), tmp_path / "small.onnx"
    quantized(path, output=out, to="int8", data=samples(path), metric="top1", budget="20%")
    with refused("quantize/quantised"):
        quantized(out, to="int8", data=samples(path), metric="top1")


def test_a_model_without_products_is_refused(tmp_path: Path, refused: Refused) -> None:
    path = stored(
        from_text('<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] y) { y = Relu(x) }'), tmp_path
    )
    with refused("quantize/nothing"):
        quantized(path, to="int8", data=[{"x": weights((4,), at)} for at in range(8)])


def test_auto_takes_one_and_tells_of_the_others(tmp_path: Path) -> None:
    path = stored(classifier(), tmp_path)
    result = quantized(path, output=tmp_path / "small.onnx", data=samples(path), metric="top1", budget="15%")
    told = part(result)
    assert result.report.verdict is Verdict.DONE
    assert told.to in ("int8", "int8-dynamic", "int4")
    assert sum(note.startswith(("int8:", "int8-dynamic:", "int4:", "float16:")) for note in told.notes) == 3


def test_ranges_are_those_of_the_values(tmp_path: Path) -> None:
    model = classifier()
    ready = prepared(model, opset=13)
    draw = np.random.default_rng(5)
    feeds = [{"x": draw.standard_normal((2, WIDTH)).astype(np.float32)} for _ in range(3)]
    found = ranges.measured(ready.model, get("onnxruntime"), (Sample(one) for one in feeds))
    x = np.concatenate([one["x"] for one in feeds])
    a = x @ weights((WIDTH, WIDTH), 1, WIDTH**-0.5)
    assert found.samples == 3
    assert found.by_name["x"].low == pytest.approx(float(x.min()))
    assert found.by_name["a"].high == pytest.approx(float(a.max()), rel=1e-5)
    assert found.by_name["b"].low == 0.0


def test_a_rare_value_is_cut_off(tmp_path: Path) -> None:
    model = classifier()
    ready = prepared(model, opset=13).model
    x = np.random.default_rng(3).standard_normal((1, 2**15)).astype(np.float32).reshape(-1, WIDTH)
    x[0, 0] = 200.0
    feeds = [Sample({"x": x})]
    found = ranges.measured(ready, get("onnxruntime"), feeds)
    narrow = ranges.clipped(ready, found, ["x"], get("onnxruntime"), feeds).by_name["x"]
    errors = {}
    for share in ranges.SHARES:
        low, high = found.by_name["x"].low * share, found.by_name["x"].high * share
        step = (high - low) / 255
        zero = np.clip(np.round(-low / step), 0, 255)
        errors[share] = float(np.mean(((np.clip(np.round(x / step) + zero, 0, 255) - zero) * step - x) ** 2))
    best = min(errors, key=errors.__getitem__)
    assert narrow.high == pytest.approx(200.0 * best)
    assert found.by_name["x"].high == pytest.approx(200.0)


def test_a_scheme_that_meets_the_budget_is_enough(tmp_path: Path) -> None:
    path = stored(classifier(), tmp_path)
    result = quantized(path, to="int8", data=samples(path), metric="top1", budget="20%")
    assert part(result).evaluations == 1


def filled(model: ir.Model, given: dict[str, Any]) -> ir.Model:
    """The model with these inputs as initializers."""
    for value in list(model.graph.inputs):
        if value.name in given:
            value.const_value = ir.tensor(given[value.name], name=value.name)
            model.graph.inputs.remove(value)
            model.graph.initializers[value.name] = value
    return model


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
    result = quantized(path, to="int8", data=[{"x": weights((1, WIDTH), at)} for at in range(40)], budget="5%")
    assert result.report.verdict is Verdict.DONE, result.report.problems
    kept = {layer.name: layer.kept for layer in part(result).layers}
    assert kept["-> y"] == ""  # the first product and the mask are one Gemm when they are simplified
    assert set(kept.values()) <= {"", "a value that it reads or makes is not finite"}


@pytest.mark.parametrize("to", ["int8", "int8-dynamic", "int4"])
def test_a_branch_that_reads_from_outside(tmp_path: Path, to: str) -> None:
    model = from_text(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[n,{WIDTH}] x, bool c, float[{WIDTH},{WIDTH}] w1, float[{WIDTH},{CLASSES}] w2)
        => (float[n,{CLASSES}] y) {{
            a = MatMul(x, w1)
            b = If (c) <then_branch = t () => (p) {{ p = Relu(a) }}, else_branch = e () => (q) {{ q = Neg(a) }}>
            y = MatMul(b, w2)
        }}"""
    )
    given = {"w1": weights((WIDTH, WIDTH), 1, 0.1), "w2": weights((WIDTH, CLASSES), 2, 0.1)}
    path = stored(filled(model, given), tmp_path)
    data = [{"x": weights((1, WIDTH), at), "c": np.array(at % 2 == 0)} for at in range(40)]
    result = quantized(path, to=to, data=data, budget="5%")
    assert result.report.verdict is Verdict.DONE, result.report.problems


def test_the_form_of_tensorrt_is_symmetric(tmp_path: Path) -> None:
    path, out = stored(classifier(), tmp_path), tmp_path / "small.onnx"
    result = quantized(
        path, output=out, to="int8", target="tensorrt-10", data=samples(path), metric="top1", budget="20%"
    )
    assert result.report.verdict is Verdict.DONE, result.report.problems
    zeros = [node.inputs[2] for node in load(out).graph if node.op_type == "QuantizeLinear"]
    tensors = [ir.convenience.get_const_tensor(value) for value in zeros if value is not None]
    assert tensors
    assert all(tensor is not None and not tensor.numpy().any() for tensor in tensors)


def test_an_output_that_the_score_does_not_read(tmp_path: Path) -> None:
    """A layer's result that is an output and goes through a Relu keeps its negative numbers."""
    model = classifier()
    inner = next(node for node in model.graph if node.name == "layer_c").outputs[0]
    inner.type, inner.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(["n", WIDTH])
    model.graph.outputs.append(inner)
    path, out = stored(model, tmp_path), tmp_path / "small.onnx"
    result = quantized(path, output=out, to="int8", data=samples(path), metric="top1", budget="20%")
    assert "the score does not read" not in result.report.headline
    feeds = samples(path)[0][0]
    with get("onnxruntime").prepare(path) as one, get("onnxruntime").prepare(out) as other:
        assert damage.relative_error(one.run(feeds)["c"], other.run(feeds)["c"]) < 0.05


def test_an_output_that_is_far_off_is_in_the_headline(tmp_path: Path) -> None:
    model = from_text(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[n,{WIDTH}] x, float[{WIDTH},{CLASSES}] w) => (float[n,{CLASSES}] y, float[n,{CLASSES}] z) {{
            y = MatMul(x, w)
            s = Round(y)
            z = Sub(y, s)
        }}"""
    )
    path = stored(filled(model, {"w": weights((WIDTH, CLASSES), 1, 4.0)}), tmp_path)
    data = [({"x": weights((1, WIDTH), at)}, 0) for at in range(40)]
    result = quantized(path, to="int8", data=data, metric="top1", budget="90%", write_unsure=True)
    assert (
        "output z (the score does not read it): the root mean square of the differences is " in result.report.headline
    )


def test_a_layer_that_the_runtime_refuses_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(classifier(), tmp_path)
    broken = from_text('<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] y) { y = NoSuch(x) }')

    def measured(self: Int8Dynamic, work: Work, keep: frozenset[str], variant: ir.Model) -> ir.Model:
        return variant if "layer_c" in keep else broken

    monkeypatch.setattr(Int8Dynamic, "measured", measured)
    result = quantized(path, to="int8-dynamic", data=samples(path), metric="top1", budget="20%")
    assert result.report.verdict is Verdict.DONE
    assert [(one.name, "NoSuch" in one.kept) for one in part(result).kept] == [("layer_c", True)]
    assert part(result).evaluations == 1


def test_a_layer_that_the_quantiser_refuses_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(classifier(), tmp_path)
    whole = Int8.variant

    def variant(self: Int8, work: Work, keep: frozenset[str]) -> ir.Model:
        if "layer_y" not in keep:
            raise problem("quantize/refused", "the quantiser refuses the model", why="ValueError: layer_y")
        return whole(self, work, keep)

    monkeypatch.setattr(Int8, "variant", variant)
    result = quantized(path, to="int8", data=samples(path), metric="top1", budget="20%")
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert [(one.name, "ValueError" in one.kept) for one in part(result).kept] == [("layer_y", True)]


def test_a_model_that_the_runtime_refuses_in_any_form_is_no_matter_of_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    path = stored(classifier(), tmp_path)
    broken = from_text('<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] y) { y = NoSuch(x) }')
    monkeypatch.setattr(Int8Dynamic, "measured", lambda *_: broken)
    with refused("quantize/cannot-run") as refusal:
        quantized(path, to="int8-dynamic", data=samples(path), metric="top1")
    assert "NoSuch" in refusal.problem.why


def test_attention_of_onnx_is_not_that_of_onnxruntime(tmp_path: Path) -> None:
    """onnxruntime's quantiser knows operators by name alone, and would make an invalid QAttention of it."""
    model = from_text(
        f"""<ir_version: 11, opset_import: ["": 23]>
        g (float[n,4,{WIDTH}] x, float[{WIDTH},{WIDTH}] w1, float[{WIDTH},{WIDTH}] w2)
        => (float[n,4,{WIDTH}] y) {{
            q = MatMul(x, w1)
            v = MatMul(x, w2)
            y = Attention<q_num_heads = 2, kv_num_heads = 2>(q, q, v)
        }}"""
    )
    given = {"w1": weights((WIDTH, WIDTH), 1, 0.1), "w2": weights((WIDTH, WIDTH), 2, 0.1)}
    path, out = stored(named(filled(model, given)), tmp_path), tmp_path / "small.onnx"
    data = [{"x": weights((1, 4, WIDTH), at)} for at in range(8)]
    result = quantized(path, output=out, to="int8-dynamic", data=data)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    counts = walk.histogram(load(out))
    assert counts["Attention"] == 1
    assert counts["MatMulInteger"] == 2


@pytest.mark.usefixtures("unmeasured_power")
def test_a_variant_that_the_runtime_refuses_is_not_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(classifier(), tmp_path)
    scores = iter([1.0, 0.0, *[1.0] * 20])  # given, all layers changed, two of them kept
    broken = from_text('<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] y) { y = NoSuch(x) }')

    def measured(self: Int8Dynamic, work: Work, keep: frozenset[str], variant: ir.Model) -> ir.Model:
        return broken if len(keep) == 1 else variant

    monkeypatch.setattr(Int8Dynamic, "measured", measured)
    result = quantized(path, to="int8-dynamic", data=samples(path, 8), metric=lambda *_: next(scores))
    assert result.report.verdict is Verdict.DONE
    assert len(part(result).kept) == 2
    assert any(note.startswith("the runtime refused a variant") for note in part(result).notes)


def test_the_score_on_the_target_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = stored(classifier(), tmp_path), tmp_path / "small.onnx"
    bad = ({"on openvino": "0.1, out of budget"}, {"openvino": False}, {})
    monkeypatch.setattr(final, "_also", lambda *_: bad)
    asked = {"output": out, "to": "int8", "data": samples(path), "metric": "top1", "budget": "20%"}
    refused = quantized(path, target="openvino", **asked)
    assert [one.id for one in refused.report.problems] == ["quantize/target-differs"]
    assert not out.exists()
    told = quantized(path, **asked)
    assert "on openvino: 0.1, out of budget" in told.report.headline
    assert out.exists()


def test_the_score_on_openvino_is_that_of_its_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default OpenVINO quantises what products with narrow weights read: the file has to stand that."""
    path, out = stored(classifier(), tmp_path), tmp_path / "small.onnx"
    monkeypatch.setattr(final, "_score", lambda *_, exact: 1.0 if exact else 0.1)
    asked = {"output": out, "to": "int8", "data": samples(path), "metric": "top1", "budget": "20%"}
    told = quantized(path, **asked)
    assert "on openvino: 0.1, out of budget" in told.report.headline
    assert part(told).also["on openvino in float32"] == "1"
    out.unlink()
    refused = quantized(path, target="openvino", **asked)
    assert [one.id for one in refused.report.problems] == ["quantize/target-differs"]
    assert not out.exists()


def test_the_budget_is_met_without_optimisations_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one layer is wrong at one level only, the second search keeps this layer."""
    whole = OnnxRuntime.prepare

    def planted(self: OnnxRuntime, source: Any, options: Options | None = None) -> Session:
        session = whole(self, source, options)
        model = load(source) if isinstance(source, Path) else source
        stored = model.graph.initializers.items()
        narrow = any("w2" in name and one.dtype is not ir.DataType.FLOAT for name, one in stored)
        if narrow and options is not None and options.optimization == "disable":
            run = session.run
            monkeypatch.setattr(session, "run", lambda feeds: {name: -value for name, value in run(feeds).items()})
        return session

    path, out = stored(classifier(), tmp_path), tmp_path / "small.onnx"
    asked = {"output": out, "to": "int8", "data": samples(path), "metric": "top1", "budget": "20%"}
    free = quantized(path, **asked)
    assert free.report.verdict is Verdict.DONE
    monkeypatch.setattr(OnnxRuntime, "prepare", planted)
    result = quantized(path, **asked)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert "layer_c" not in {layer.name for layer in part(free).kept}
    assert "layer_c" in {layer.name for layer in part(result).kept}
    assert len(part(result).kept) < len(part(result).layers)


def test_a_simplified_model_with_a_worse_score_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(classifier(), tmp_path)
    spoilt = classifier()
    spoilt.graph.initializers["w2"].const_value = ir.tensor(weights((WIDTH, WIDTH), 77, WIDTH**-0.5), name="w2")
    whole = model_preparation.simplify
    monkeypatch.setattr(model_preparation, "simplify", lambda _, **options: whole(spoilt, **options))
    result = quantized(path, to="int8", data=samples(path), metric="top1", budget="20%")
    assert result.report.verdict is Verdict.DONE
    assert any("not simplified first" in note for note in part(result).notes)


def test_variants_do_not_fill_the_disk() -> None:
    with Arithmetic(classifier()) as arithmetic:
        for _ in range(3):
            arithmetic.quantised(
                "dynamic", (), operators=["MatMul"], per_channel=True, reduce_range=False, weights="QInt8"
            )
        assert len([one for one in arithmetic._folder.iterdir() if one.is_dir()]) == 1


def test_a_keep_list_of_everything_is_refused(tmp_path: Path, refused: Refused) -> None:
    path = stored(classifier(), tmp_path)
    with refused("quantize/nothing") as refusal:
        quantized(path, to="int8", data=samples(path), metric="top1", keep=["*"])
    assert "keep-list" in refusal.problem.why


def test_gemm_is_written_out_for_four_bits(tmp_path: Path) -> None:
    for transposed in (0, 1):
        shape = (CLASSES, WIDTH) if transposed else (WIDTH, CLASSES)
        model = from_text(
            f"""<ir_version: 10, opset_import: ["": 18]>
            g (float[n,{WIDTH}] x, float[{shape[0]},{shape[1]}] w, float[{CLASSES}] b) => (float[n,{CLASSES}] y) {{
                [head] y = Gemm<transB = {transposed}>(x, w, b)
            }}"""
        )
        for value, seed in zip(list(model.graph.inputs[1:]), (1, 2), strict=True):
            dims = shape if value.name == "w" else (CLASSES,)
            value.const_value = ir.tensor(weights(dims, seed), name=value.name)
            model.graph.inputs.remove(value)
            model.graph.initializers[value.name or ""] = value
        made = written_out(model)
        assert [node.op_type for node in made.graph] == ["MatMul", "Add"]
        x = {"x": weights((3, WIDTH), 4)}
        with get("onnxruntime").prepare(model) as one, get("onnxruntime").prepare(made) as other:
            np.testing.assert_allclose(np.asarray(one.run(x)["y"]), np.asarray(other.run(x)["y"]), rtol=1e-5, atol=1e-5)


def test_the_damage_of_a_layer_is_its_own() -> None:
    model = classifier()
    ready = prepared(model, opset=13).model
    spoilt = classifier()
    held = spoilt.graph.initializers["w2"]
    held.const_value = ir.tensor(weights((WIDTH, WIDTH), 2, 1.1 * WIDTH**-0.5), name="w2")
    feeds = {"x": weights((1, WIDTH), 9)}
    found = damage.damage(ready, spoilt, ["layer_a", "layer_c", "layer_y"], get("onnxruntime"), [feeds])
    assert found["layer_c"] == pytest.approx(0.1, rel=1e-3)
    assert found["layer_a"] == found["layer_y"] == 0.0


@pytest.fixture
def own(tmp_path: Path) -> Callable[[str], str]:
    """Writes a file of functions; gives `file.py:name`."""
    file = tmp_path / "own_functions.py"
    file.write_text(
        "import numpy as np\n"
        "def loss(found, labels):\n"
        "    return float(np.mean([abs(np.argmax(a) - b) for a, b in zip(found, labels)]))\n"
        "loss.better = 'lower'\n",
        encoding="utf-8",
    )
    return lambda name: f"{file}:{name}"


def test_a_metric_of_the_users(tmp_path: Path, own: Callable[[str], str]) -> None:
    path = stored(classifier(), tmp_path)
    result = quantized(path, to="float16", data=samples(path), metric=own("loss"), budget=0.5)
    assert part(result).better == "lower"
    assert part(result).before == 0.0
    assert part(result).after is not None


def with_an_affine() -> ir.Model:
    """A product, then a scale that simplifying merges into it."""
    model = from_text(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[n,{WIDTH}] x, float[{WIDTH},{WIDTH}] w1, float[{WIDTH}] s, float[{WIDTH},{CLASSES}] w2)
        => (float[n,{CLASSES}] y) {{
            a = MatMul(x, w1)
            b = Mul(a, s)
            c = Relu(b)
            y = MatMul(c, w2)
        }}"""
    )
    shapes: dict[str, tuple[int, ...]] = {"w1": (WIDTH, WIDTH), "s": (WIDTH,), "w2": (WIDTH, CLASSES)}
    given = {name: weights(shape, 1, WIDTH**-0.5) for name, shape in shapes.items()}
    return named(filled(model, given))


def test_a_keep_list_of_bisect_is_taken_whole(tmp_path: Path) -> None:
    """The list names a node that simplifying would merge: quantize then works on the model as it is."""
    path, keep, out = stored(with_an_affine(), tmp_path), tmp_path / "keep.txt", tmp_path / "small.onnx"
    found = onnxsmith.bisect(path, keep, tolerance=1.0, keep=["*_b"])
    assert found.ok
    assert keep.read_text(encoding="utf-8").splitlines()[-1] == "layer_b"
    result = quantized(path, output=out, to="float16", data=samples(path), metric="top1", keep=read_keep(keep))
    assert any("not simplified first: layer_b" in note for note in part(result).notes)
    scale = next(node for node in load(out).graph if node.name == "layer_b").inputs[1]
    assert scale is not None
    assert scale.dtype == ir.DataType.FLOAT


@pytest.mark.parametrize("to", ["int8", "float16"])
def test_what_says_nothing_new_is_not_written(tmp_path: Path, to: str) -> None:
    model = classifier()
    for node in model.graph:
        node.metadata_props.update(
            {"pkg.torch.onnx.name_scopes": "['', 'body', 'matmul']", "pkg.torch.onnx.fx_node": "%matmul" * 40}
        )
    path, out = stored(model, tmp_path), tmp_path / "small.onnx"
    result = quantized(path, output=out, to=to, data=samples(path), metric="top1", budget="20%")
    written = out.read_bytes()
    assert b"body" in written
    assert b"%matmul" not in written
    assert any("characters of metadata on the origins" in note for note in part(result).notes)
    declared = {value.name for value in load(out).graph.initializers.values() if value.type is not None}
    assert declared >= set(load(out).graph.initializers), "a reader takes types from the tensors"
    assert b"%matmul" in path.read_bytes(), "the given model is not changed"
    assert not declared_inside(out), "the given model declares none"


def declared_inside(path: Path) -> set[str]:
    """The results of nodes whose types the file declares, but for its outputs."""
    graph = ir.load(path).graph
    made = (value for node in graph for value in node.outputs if not value.is_graph_output())
    return {value.name or "" for value in made if value.type is not None}


def test_types_that_the_given_model_declares_stay(tmp_path: Path) -> None:
    model = classifier()
    for node in model.graph:
        for value in node.outputs:
            value.type, value.shape = ir.TensorType(ir.DataType.FLOAT), value.shape or ir.Shape(["n", WIDTH])
    path, out = stored(model, tmp_path), tmp_path / "small.onnx"
    quantized(path, output=out, to="int8", data=samples(path), metric="top1", budget="20%")
    assert {"a", "b", "c", "d"} & declared_inside(out)


def test_types_behind_operators_that_onnx_does_not_have_stay(tmp_path: Path) -> None:
    path, out = stored(classifier(), tmp_path), tmp_path / "small.onnx"
    quantized(path, output=out, to="int4", budget="50%")
    graph = ir.load(out).graph
    made = {node.outputs[0].name or "" for node in graph if node.domain} - {port.name for port in graph.outputs}
    assert made
    assert made <= declared_inside(out)


def convolution(*, opset: int = 17) -> ir.Model:
    model = from_text(
        f"""<ir_version: 8, opset_import: ["": {opset}]>
        g (float[n,1,8,8] x, float[16,1,3,3] k, float[576,{CLASSES}] w) => (float[n,{CLASSES}] y) {{
            a = Conv(x, k)
            b = Relu(a)
            c = Flatten(b)
            y = MatMul(c, w)
        }}"""
    )
    return named(filled(model, {"k": weights((16, 1, 3, 3), 1), "w": weights((576, CLASSES), 2, 0.05)}))


def test_operators_without_the_narrow_float_are_counted(tmp_path: Path) -> None:
    path = stored(convolution(), tmp_path)
    data = [{"x": weights((1, 1, 8, 8), at)} for at in range(8)]
    result = quantized(path, output=tmp_path / "out.onnx", to="bfloat16", data=data)
    assert "3 of 4 layers became bfloat16" in result.report.headline
    left = part(result).left
    assert [(one.op, one.count) for one in left] == [("Conv", 1)]
    assert "before opset 22" in left[0].why
    assert ("onnxruntime does not load it" in result.report.headline) == ("on onnxruntime" in part(result).also)


@pytest.mark.parametrize(("hidden", "classes", "share"), [(WIDTH, CLASSES, "98%"), (4, 512, "28%")])
def test_operators_that_the_method_does_not_know_are_counted(
    tmp_path: Path, hidden: int, classes: int, share: str
) -> None:
    model = from_text(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[4,1,{WIDTH}] x, float[1,{3 * hidden},{WIDTH}] u, float[1,{3 * hidden},{hidden}] r,
           float[{hidden},{classes}] w) => (float[4,1,1,{classes}] y) {{
            a, last = GRU<hidden_size = {hidden}>(x, u, r)
            y = MatMul(a, w)
        }}"""
    )
    given = {"u": weights((1, 3 * hidden, WIDTH), 1, 0.1), "r": weights((1, 3 * hidden, hidden), 2, 0.1)}
    path = stored(named(filled(model, given | {"w": weights((hidden, classes), 3, 0.1)})), tmp_path)
    data = [{"x": weights((4, 1, WIDTH), at)} for at in range(8)]
    result = quantized(path, output=tmp_path / "out.onnx", to="int8-dynamic", data=data, budget="5%")
    assert f"1 of 2 layers became int8-dynamic, 1 GRU with {share} of the weights stays" in result.report.headline


def test_the_size_before_is_that_of_the_given_file(tmp_path: Path) -> None:
    path, out = stored(classifier(), tmp_path), tmp_path / "out.onnx"
    with path.open("ab") as file:  # a field that no reader knows, number 15 of a model
        file.write(b"\x7a\xff\x01" + b" " * 255)
    told = part(quantized(path, output=out, to="int8", data=samples(path), metric="top1", budget="20%"))
    assert told.bytes_before == path.stat().st_size
    assert told.bytes_after == out.stat().st_size


@pytest.mark.usefixtures("unmeasured_power")
def test_after_a_failure_the_layers_are_those_of_the_nearest_list(tmp_path: Path) -> None:
    path = stored(classifier(), tmp_path)
    data = [({"x": feeds["x"]}, label) for feeds, label in samples(path)]
    scores = iter([1.0, 0.2, 0.9, *[0.1] * 40])
    result = quantized(path, to="int8-dynamic", data=data, metric=lambda *_: next(scores), budget="1%", evaluations=2)
    assert [one.id for one in result.report.problems] == ["quantize/budget-not-met"]
    assert "evaluations=" in result.report.problems[0].fix
    kept = part(result).kept
    assert len(kept) == 1
    assert kept[0].kept == "the model with the best score keeps this layer"


@pytest.mark.usefixtures("unmeasured_power")
def test_more_evaluations_are_no_fix_where_some_are_left(tmp_path: Path) -> None:
    path = stored(classifier(), tmp_path)
    scores = iter([1.0, *[0.1] * 40])
    result = quantized(path, to="int8-dynamic", data=samples(path), metric=lambda *_: next(scores), budget="1%")
    assert [one.id for one in result.report.problems] == ["quantize/budget-not-met"]
    assert "evaluations" not in result.report.problems[0].fix


def test_the_time_is_that_of_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(classifier(), tmp_path)
    asked: list[Any] = []

    def time_ratio(_: Path, __: Path, runtime: str, ___: Any) -> Ratio:
        asked.append(runtime)
        return Ratio("b", 0.5, 0.4, 0.6, True, "", True, "")

    monkeypatch.setattr(two_files, "time_ratio", time_ratio)
    request = {"to": "int8", "data": samples(path), "metric": "top1", "budget": "20%", "measure_time": True}
    assert part(quantized(path, target="openvino", **request)).times == "0.50 of the time on openvino"
    assert part(quantized(path, target="tensorrt-10", **request)).times.endswith("on onnxruntime")
    assert asked[0] == "openvino"


def test_biases_stay_floats_for_tensorrt(tmp_path: Path) -> None:
    model = from_text(
        f"""<ir_version: 10, opset_import: ["": 18, "unused": 1]>
        g (float[n,3,{WIDTH}] x, float[{WIDTH},{WIDTH}] w1, float[{WIDTH}] b1, float[{WIDTH},{CLASSES}] w2,
           float[{CLASSES}] b2) => (float[n,3,{CLASSES}] y) {{
            a = MatMul(x, w1)
            b = Add(a, b1)
            c = Relu(b)
            d = MatMul(c, w2)
            y = Add(b2, d)
        }}"""
    )
    given = {"w1": weights((WIDTH, WIDTH), 1, 0.1), "b1": weights((WIDTH,), 2), "w2": weights((WIDTH, CLASSES), 3, 0.1)}
    path = stored(named(filled(model, given | {"b2": weights((CLASSES,), 4)})), tmp_path)
    out = tmp_path / "out.onnx"
    data = [{"x": weights((1, 3, WIDTH), at)} for at in range(8)]
    result = quantized(path, output=out, to="int8", target="tensorrt-10", data=data, budget="5%")
    assert result.report.verdict is Verdict.DONE, result.report.problems
    made = load(out)
    adds = [node for node in made.graph if node.op_type == "Add"]
    biases = [value.const_value for node in adds for value in node.inputs if value is not None and value.const_value]
    assert [one.dtype for one in biases] == [ir.DataType.FLOAT] * 2
    assert walk.histogram(made)["DequantizeLinear"] >= 4
    assert "unused" not in made.opset_imports
    assert "not tried" in part(result).also["on tensorrt-10"]


@pytest.mark.parametrize("to", ["int8", "float16"])
def test_the_dtype_of_a_model_that_is_not_in_float32_is_named(tmp_path: Path, refused: Refused, to: str) -> None:
    dtype = "float16"
    model = from_text(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g ({dtype}[n,{WIDTH}] x, {dtype}[{WIDTH},{CLASSES}] w) => ({dtype}[n,{CLASSES}] y) {{ y = MatMul(x, w) }}"""
    )
    numbers = weights((WIDTH, CLASSES), 1).astype(np.float16)
    path = stored(named(filled(model, {"w": numbers})), tmp_path)
    with refused("quantize/nothing") as refusal:
        quantized(path, to=to, data=[{"x": weights((1, WIDTH), at).astype(numbers.dtype)} for at in range(8)])
    assert f"in {dtype}" in refusal.problem.what


def test_an_output_that_cannot_be_written_is_found_first(tmp_path: Path, refused: Refused) -> None:
    path = stored(classifier(), tmp_path)

    def unread() -> Any:
        raise AssertionError("the data was read")

    (tmp_path / "folder").mkdir()
    for name, problem_id in (("no/x.onnx", "save/no-folder"), ("folder", "save/failed"), ("x.onnxtxt", "save/failed")):
        with refused(problem_id):
            quantized(path, output=tmp_path / name, to="int8", data=unread, metric="top1")
    with refused("save/no-folder"):
        quantized(path, keep_list=tmp_path / "no" / "keep.txt", to="int8", data=unread, metric="top1")


def test_a_single_pattern_is_one_entry(tmp_path: Path) -> None:
    path = stored(classifier(), tmp_path)
    result = quantized(path, to="int8-dynamic", keep="layer_c*", data=samples(path), metric="top1", budget="20%")
    assert [one.name for one in part(result).kept] == ["layer_c"]


def test_the_sample_of_a_wrong_shape_is_named(tmp_path: Path, refused: Refused) -> None:
    path = stored(classifier(), tmp_path)
    found = samples(path, 8)
    found[6] = ({"x": np.zeros((1, WIDTH + 1), np.float32)}, 0)
    with refused("run/wrong-shape") as refusal:
        quantized(path, to="int8", data=found, metric="top1")
    assert "[6]" in refusal.problem.where
    assert "preprocess=" in refusal.problem.fix


def test_a_metric_needs_data(tmp_path: Path, refused: Refused) -> None:
    path = stored(classifier(), tmp_path)
    with refused("quantize/no-data"):
        onnxsmith.quantize(path, to="int8", metric="top1")


def test_all_files_or_none(tmp_path: Path, refused: Refused) -> None:
    path, out = stored(classifier(), tmp_path), tmp_path / "q.onnx"
    with refused("save/failed"):
        onnxsmith.quantize(path, out, to="float16", keep_list="/proc/keep.txt", measure_time=False)
    assert not out.exists()
    with refused("save/failed") as refusal:
        onnxsmith.quantize(path, tmp_path, to="float16")
    assert refusal.problem.what == "the target is a folder"


def test_a_metric_that_is_neither_higher_nor_lower_is_refused(tmp_path: Path, refused: Refused) -> None:
    def error(found: list[Any], labels: list[Any]) -> float:
        return 0.5

    error.better = "smaller"  # type: ignore[attr-defined]
    path = stored(classifier(), tmp_path)
    with refused("quantize/metric") as refusal:
        quantized(path, to="int8", data=samples(path, 8), metric=error)
    assert "'smaller'" in refusal.problem.what


@pytest.mark.parametrize("to", ["float16", "int4"])
def test_weights_alone_mean_nothing_to_other_methods(tmp_path: Path, to: str) -> None:
    path = stored(classifier(), tmp_path)
    keep = ["weights-alone: layer_a"]
    result = quantized(path, to=to, data=samples(path, 8), metric="top1", budget="90%", keep=keep, write_unsure=True)
    assert any("does not support `weights-alone:`" in note for note in part(result).notes)


def test_a_file_on_which_the_runtime_crashes_at_the_end_is_a_problem_of_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """onnxruntime 1.32 crashes on an LSTM of float16 with all optimisations; the layer stays in float32 then. Here all
    layers are to blame."""
    path = stored(classifier(), tmp_path)
    refused: list[ir.Model] = []

    def crashes(*_: Any, **__: Any) -> Any:
        raise problem("runtime/died", "onnxruntime crashed (signal SIGSEGV)")

    def refusal(_: str, model: ir.Model, __: Any) -> str:
        refused.append(model)
        return "crashed" if len(refused) > 1 else ""  # the given model is asked first

    room = importlib.import_module("onnxsmith.precision.quantize")
    monkeypatch.setattr(room, "final", crashes)
    monkeypatch.setattr(room, "refusal", refusal)
    result = quantized(path, to="float16", data=samples(path))
    assert result.report.verdict is Verdict.FAILED
    assert [one.id for one in result.report.problems] == ["quantize/target-refuses"]
    assert "crashes on the float16 file" in result.report.problems[0].what


def test_scales_of_features_are_not_folded_into_a_product_of_8_bits(tmp_path: Path) -> None:
    scale = np.ones((1, WIDTH), np.float32)
    scale[0, 3] = 1000.0
    given = from_text(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[n,{WIDTH}] x, float[1,{WIDTH}] s, float[{WIDTH},{WIDTH}] w)
        => (float[n,{WIDTH}] y) {{ a = Div(x, s) y = MatMul(a, w) }}"""
    )
    for name, array in {"s": scale, "w": weights((WIDTH, WIDTH), 1)}.items():
        value = next(one for one in given.graph.inputs if one.name == name)
        value.const_value = ir.tensor(array, name=name)
        given.graph.inputs.remove(value)
        given.graph.register_initializer(value)
    onnxsmith.quantize(given, tmp_path / "o.onnx", to="int8-dynamic", measure_time=False)
    x = (np.random.default_rng(0).standard_normal((32, WIDTH)) * scale).astype(np.float32)
    want = (x / scale) @ weights((WIDTH, WIDTH), 1)
    found = onnxsmith.run(tmp_path / "o.onnx", {"x": x}).outputs["y"]
    assert np.abs(found - want).max() < 0.05 * np.abs(want).max()


def test_a_weight_that_several_products_share_is_stored_once(tmp_path: Path) -> None:
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[n,{WIDTH}] x, float[{WIDTH},{WIDTH}] w)
        => (float[n,{WIDTH}] y) {{ a = Gemm<transB = 1>(x, w) b = Tanh(a) c = Gemm<transB = 1>(b, w) d = Tanh(c)
        y = Gemm<transB = 1>(d, w) }}"""
    given = from_text(text)
    value = given.graph.inputs[1]
    value.const_value = ir.tensor(weights((WIDTH, WIDTH), 1), name="w")
    given.graph.inputs.remove(value)
    given.graph.register_initializer(value)
    assert len(written_out(given).graph.initializers) == 1


def test_a_runtime_on_which_doubles_lose_digits_refuses_nothing(tmp_path: Path) -> None:
    given = from_text(
        f"""<ir_version: 8, opset_import: ["": 17]> g (double[n,{WIDTH}] x, double[{WIDTH},{WIDTH}] w)
        => (double[n,{WIDTH}] y) {{ y = MatMul(x, w) }}"""
    )
    value = given.graph.inputs[1]
    value.const_value = ir.tensor(weights((WIDTH, WIDTH), 1).astype(np.float64), name="w")
    given.graph.inputs.remove(value)
    given.graph.register_initializer(value)
    found = onnxsmith.quantize(
        given, tmp_path / "o.onnx", to="int8-dynamic", target="openvino", measure_time=False, budget="5%"
    )
    assert (tmp_path / "o.onnx").exists(), found.report.problems
    part = next(one for one in found.report.parts if isinstance(one, Quantisation))
    assert "fewer digits" in part.also["on openvino"]


def test_a_file_for_a_target_that_does_not_run_here_may_be_slower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time on onnxruntime says nothing about TensorRT, which needs the quantised activations to be fast."""
    from onnxsmith.precision import final

    honest = final.final

    def slower(*args: Any, **options: Any) -> Any:
        return replace(honest(*args, **options), is_slower=True)

    monkeypatch.setattr("onnxsmith.precision.quantize.final", slower)
    path, out = stored(classifier(), tmp_path), tmp_path / "small.onnx"
    here = quantized(path, to="int8", data=samples(path), metric="top1", budget="5%")
    assert [one.id for one in here.report.problems] == ["quantize/slower"]
    result = quantized(
        path, output=out, to="int8", data=samples(path), metric="top1", budget="5%", target="tensorrt-11"
    )
    assert result.ok, result.report.problems
    assert any(node.op_type == "QuantizeLinear" for node in onnxsmith.load(out).graph)
