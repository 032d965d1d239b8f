"""quantize: what is written keeps the score, is smaller, and is measured; everything else is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.model.files.load import load
from onnxsmith.model.files.save import save
from onnxsmith.model.files.text import from_text
from onnxsmith.model.graph import walk
from onnxsmith.precision import clipping, damage, final, preparing, ranges
from onnxsmith.precision.arithmetic import Arithmetic
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.keep import read as read_keep
from onnxsmith.precision.methods._gemm import written_out
from onnxsmith.precision.methods.base import Work
from onnxsmith.precision.methods.int8_dynamic import Int8Dynamic
from onnxsmith.precision.preparing import prepared
from onnxsmith.report.parts.quantisation import Quantisation
from onnxsmith.report.verdict import Verdict
from onnxsmith.result import Result
from onnxsmith.runtimes.base import get
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
    result = quantized(path, output=out, to=to, data=samples(path), metric="top1", budget="15%")
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
    assert "the nearest keeps 2 layers" in result.report.problems[0].why


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
                       budget="0.5%", keep_list=keep)  # fmt: skip
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
    assert [(layer.name, layer.kept) for layer in part(result).layers] == [
        ("layer_a", "it is on the given keep-list"), ("layer_c", "it is on the given keep-list"), ("layer_y", ""),
    ]  # fmt: skip


def test_values_that_overflow_stay_wide(tmp_path: Path) -> None:
    path = stored(classifier(scale=1e5), tmp_path)
    result = quantized(path, to="float16", data=samples(path), metric="top1", budget="1%")
    kept = {layer.name: layer.kept for layer in part(result).layers if layer.kept}
    assert "reaches" in kept["layer_c"]
    assert "layer_a" not in kept
    assert part(result).broken == 0


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
        ({"to": "int8", "metric": "map50"}, "quantize/metric"),
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
    with refused("quantize/labels"):
        quantized(path, to="int8", data=[*found[:7], found[7][0]], metric="top1")


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
        quantized(path, to="int8", data=[{"x": np.zeros(4, np.float32)}] * 8)


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
    narrow = clipping.clipped(ready, found, ["x"], get("onnxruntime"), feeds).by_name["x"]
    errors = {}
    for share in clipping.SHARES:
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
    assert "which the score does not read" not in result.report.headline
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
    result = quantized(path, to="int8", data=data, metric="top1", budget="90%")
    assert "output z, which the score does not read: differs by" in result.report.headline


def test_a_variant_that_the_runtime_refuses_is_not_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(classifier(), tmp_path)
    broken = from_text('<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] y) { y = NoSuch(x) }')

    def measured(self: Int8Dynamic, work: Work, keep: frozenset[str], variant: ir.Model) -> ir.Model:
        return variant if keep else broken

    monkeypatch.setattr(Int8Dynamic, "measured", measured)
    result = quantized(path, to="int8-dynamic", data=samples(path), metric="top1", budget="20%")
    assert result.report.verdict is Verdict.DONE
    assert len(part(result).kept) == 1
    assert any(note.startswith("a variant was refused") for note in part(result).notes)


def test_the_score_on_the_target_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = stored(classifier(), tmp_path), tmp_path / "small.onnx"
    bad = ({"on openvino": "0.1, out of budget"}, {"openvino": False})
    monkeypatch.setattr(final, "_also", lambda *_: bad)
    asked = {"output": out, "to": "int8", "data": samples(path), "metric": "top1", "budget": "20%"}
    refused = quantized(path, target="openvino", **asked)
    assert [one.id for one in refused.report.problems] == ["quantize/target-differs"]
    assert not out.exists()
    told = quantized(path, **asked)
    assert "on openvino: 0.1, out of budget" in told.report.headline
    assert out.exists()


def test_a_simplified_model_with_a_worse_score_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(classifier(), tmp_path)
    spoilt = classifier()
    spoilt.graph.initializers["w2"].const_value = ir.tensor(weights((WIDTH, WIDTH), 77, WIDTH**-0.5), name="w2")
    whole = preparing.simplify
    monkeypatch.setattr(preparing, "simplify", lambda _, **options: whole(spoilt, **options))
    result = quantized(path, to="int8", data=samples(path), metric="top1", budget="20%")
    assert result.report.verdict is Verdict.DONE
    assert any("not simplified first" in note for note in part(result).notes)


def test_variants_do_not_fill_the_disk() -> None:
    with Arithmetic(classifier()) as arithmetic:
        for _ in range(3):
            arithmetic.quantised(
                "dynamic", (), operators=["MatMul"], per_channel=True, reduce_range=False, weights="QInt8"
            )
        assert len(list(Path(arithmetic._folder.name).iterdir())) == 1


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
    kept = next(node for node in load(out).graph if node.name == "layer_b")
    assert kept.outputs[0].dtype == ir.DataType.FLOAT


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
    assert any("characters about the origins" in note for note in part(result).notes)
    declared = {value.name for value in load(out).graph.initializers.values() if value.type is not None}
    assert declared >= set(load(out).graph.initializers), "a reader takes types from the tensors"
    assert b"%matmul" in path.read_bytes(), "the given model is not changed"


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
