"""Scores that prove nothing are refused before a search, with the reason; sound scores are taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.quantisation import Quantisation
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.precision import score_power
from onnxsmith.precision.quantisation_request import Request, read
from onnxsmith.precision.scores.agreement import Agreement
from onnxsmith.runtimes import base as runtimes

WIDTH, CLASSES = 64, 8
DRAW = np.random.default_rng(0)
SIZES = f"float[n,{WIDTH}] x, float[{WIDTH},{WIDTH}] w"


def model(text: str, **weights: Any) -> ir.Model:
    made = from_text(f'<ir_version: 10, opset_import: ["": 18]> g {text}')
    for value in [one for one in made.graph.inputs if one.name in weights]:
        value.const_value = ir.tensor(weights[str(value.name)], name=value.name)
        made.graph.inputs.remove(value)
        made.graph.register_initializer(value)
    return made


def weight(*shape: int) -> Any:
    return (DRAW.standard_normal(shape) * shape[0] ** -0.5).astype(np.float32)


W, V, U = weight(WIDTH, WIDTH), weight(WIDTH, CLASSES), weight(WIDTH, 1)
CLASSIFIER = model(
    f"({SIZES}, float[{WIDTH},{CLASSES}] v) => (float[n,{CLASSES}] y) "
    "{ a = MatMul(x, w) b = Relu(a) y = MatMul(b, v) }",
    w=W,
    v=V,
)
DETECTOR = model(
    f"({SIZES}, float[{WIDTH},1] u) => (float[n,1] p) "
    "{ a = MatMul(x, w) b = Relu(a) c = MatMul(b, u) p = Sigmoid(c) }",
    w=W,
    u=U,
)
CONSTANT = model(
    f"({SIZES}, float[{WIDTH},{CLASSES}] v) => (float[n,{CLASSES}] y) "
    "{ a = MatMul(x, w) m = Abs(a) b = Neg(m) r = Relu(b) y = MatMul(r, v) }",
    w=W,
    v=V,
)
TWO = model(
    f"({SIZES}, float[{WIDTH},{CLASSES}] v) => (float[n,{CLASSES}] y, float[n,{CLASSES}] h) "
    "{ a = MatMul(x, w) b = Relu(a) y = MatMul(b, v) s = Mul(y, y) h = Tanh(s) }",
    w=W,
    v=V,
)
XS = [{"x": weight(1, WIDTH) * 8} for _ in range(24)]


def classes() -> list[int]:
    return [int(np.argmax(onnxsmith.run(CLASSIFIER, one).outputs["y"])) for one in XS]


def labelled(label: Callable[[int], Any]) -> list[Any]:
    return [(one, label(at)) for at, one in enumerate(XS)]


def blind(network: ir.Model, data: Any, said: str, **options: Any) -> None:
    with pytest.raises(OnnxsmithError) as raised:
        onnxsmith.quantize(network, to="int8", data=data, measure_time=False, **options)
    assert raised.value.problem.id == "quantize/blind-score"
    assert said in raised.value.problem.what
    assert raised.value.problem.fix


def test_the_cosine_of_one_element_is_always_one() -> None:
    blind(DETECTOR, XS, "the score cannot distinguish", metric="cosine")


def test_labels_of_one_class() -> None:
    labels = classes()
    usual = max(set(labels), key=labels.count)
    given = [pair for pair in labelled(lambda at: labels[at]) if pair[1] == usual]
    blind(CLASSIFIER, [*given, *({"x": one["x"] * 1.01} for one, _ in given)][: len(given)], "the label", metric="top1")


def test_samples_that_are_equal() -> None:
    blind(CLASSIFIER, [XS[0]] * 12, "are equal")


def test_outputs_that_are_the_same_for_all_samples() -> None:
    blind(CONSTANT, XS, "the outputs of the given model are the same")


def test_a_budget_in_another_unit() -> None:
    labels = classes()
    blind(CLASSIFIER, labelled(lambda at: labels[at]), "allows even the worst possible score", metric="top1", budget=5)
    blind(CLASSIFIER, XS, "allows even the worst possible score", budget="100%")


def test_a_score_at_its_cap() -> None:
    blind(CLASSIFIER, XS, "has its largest possible value", metric="psnr")


def test_a_metric_that_gives_a_constant() -> None:
    blind(CLASSIFIER, XS, "the score cannot distinguish", metric=lambda found, labels: 0.9)


def test_a_metric_that_reads_no_labels() -> None:
    blind(CLASSIFIER, XS, "outputs of other samples", metric=lambda found, labels: float(np.mean(found)) + 9)


@pytest.mark.parametrize("seed", range(4))
def test_labels_that_do_not_fit_the_model(seed: int) -> None:
    labels = np.random.default_rng(seed).permutation(classes())
    blind(CLASSIFIER, labelled(lambda at: int(labels[at])), "the score cannot distinguish", metric="top1")


def test_a_decoding_that_gives_one_prediction() -> None:
    options = {"metric": "cer", "decode": lambda outputs: "abc"}
    blind(CLASSIFIER, labelled(lambda at: f"ab{at}"), "gives the same prediction for all", **options)


def test_what_is_accepted_is_in_the_headline(tmp_path: Path) -> None:
    result = onnxsmith.quantize(
        DETECTOR, tmp_path / "q.onnx", to="int8", data=XS, metric="cosine", write_unsure=True, measure_time=False
    )
    assert "the score cannot distinguish a damaged model" in result.report.headline
    path = tmp_path / "m.onnx"
    save(CLASSIFIER, path)
    pruned = onnxsmith.prune(path, data=[XS[0]] * 12, budget="5%", write_unsure=True, measure_time=False)
    assert "the score cannot distinguish a damaged model" in pruned.report.headline


def test_prune_refuses_a_blind_score(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    save(CLASSIFIER, path)
    with pytest.raises(OnnxsmithError, match="are equal") as raised:
        onnxsmith.prune(path, data=[XS[0]] * 12, budget="5%", measure_time=False)
    assert raised.value.problem.id == "quantize/blind-score"


def right_classes(found: list[Any], labels: list[Any]) -> float:
    return float(np.mean([one.argmax() == label for one, label in zip(found, labels, strict=True)]))


@pytest.mark.parametrize("metric", [None, "cosine", "top1", right_classes])
def test_sound_scores_are_taken(metric: Any) -> None:
    labels = classes()
    data = XS if metric in (None, "cosine") else labelled(lambda at: labels[at])
    result = onnxsmith.quantize(CLASSIFIER, to="int8", data=data, metric=metric, budget="10%", measure_time=False)
    notes = result.report.part(Quantisation).notes
    assert any(
        note.startswith("the score notices planted damage: outputs of other samples, the mean output, weights off")
        for note in notes
    )


def test_the_agreement_of_one_element_moves_with_the_decisions() -> None:
    part = onnxsmith.quantize(DETECTOR, to="int8", data=XS, budget="5%", measure_time=False).report.part(Quantisation)
    assert part.before == 1
    assert part.after is not None
    assert part.after < 1


def score(*outputs: tuple[Any, Any], weights: dict[str, float] | None = None) -> float:
    return Agreement(weights).value([({"y": np.asarray(a)}, {"y": np.asarray(b)}) for a, b in outputs])


def test_agreement() -> None:
    assert score(([1.0], [1.0]), ([2.0], [2.0])) == 1
    assert score(([1.5], [1.0]), ([1.5], [2.0])) == 0  # the mean
    assert score(([2.0], [1.0]), ([1.0], [2.0])) == pytest.approx(-3)  # exchanged
    assert score(([1.1], [1.0]), ([2.0], [2.0])) == pytest.approx(1 - 0.01 / 0.5)
    assert score(([1.1, 3.0], [1.0, 3.0])) == pytest.approx(1 - 0.01 / 2)  # one sample: over its elements
    assert score(([5.0], [4.0]), ([4.0], [4.0])) == pytest.approx(1 - 1 / 32)  # constant: of its size
    assert score(([1, 2], [1, 3]), ([4, 5], [4, 5])) == 0.75
    assert np.isnan(score(([np.nan], [1.0]), ([2.0], [2.0])))
    assert np.isnan(score(([1.0, 2.0], [1.0])))
    assert score(([1.1], [1.0]), ([2.0], [2.0]), weights={"y": 0.5}) == pytest.approx(1 - 0.01)


def test_each_output_counts_and_may_have_a_budget_of_its_own() -> None:
    given: dict[str, Any] = {"to": "int8", "data": XS, "measure_time": False}
    both = onnxsmith.quantize(TWO, budget="50%", **given).report.part(Quantisation)
    assert both.also.keys() >= {"output y", "output h"}
    loose = onnxsmith.quantize(TWO, budget="5%,h=80%", **given).report.part(Quantisation)
    assert loose.after is None or loose.after >= loose.bound
    for budget, said in (
        ("5%,hh=80%", "no output is called 'hh'"),
        ("h=0.5", "not a budget of an"),
        ("h=500%", "not a budget of an"),
    ):
        with pytest.raises(OnnxsmithError, match=said):
            onnxsmith.quantize(TWO, budget=budget, **given)
    with pytest.raises(OnnxsmithError, match="only the metric agreement accepts a budget for each output"):
        onnxsmith.quantize(TWO, budget="5%,h=80%", metric="cosine", **given)


def test_weights_are_put_off() -> None:
    made = score_power.off(CLASSIFIER, 0.2)
    assert made is not None
    one, other = (g.graph.initializers["w"].const_value.numpy() for g in (CLASSIFIER, made))  # type: ignore[union-attr]
    assert np.allclose(np.abs(other / one - 1), 0.2, atol=1e-5)
    assert score_power.off(model("(float[n] x) => (float[n] y) { y = Relu(x) }"), 0.2) is None


@pytest.mark.parametrize(("share", "is_ruined"), [("90%", True), ("10%", False)])
def test_a_pruned_file_that_ruins_the_score(share: str, is_ruined: bool, tmp_path: Path) -> None:
    data = [
        (one, int(np.argmax(np.maximum(one @ W, 0) @ V)))
        for one in np.random.default_rng(7).standard_normal((64, 1, WIDTH))
    ]
    data = [({"x": one.astype(np.float32)}, label) for one, label in data]
    out = tmp_path / "s.onnx"
    kwargs: dict[str, Any] = {"share": share, "multiple": 1, "data": data, "metric": "top1", "measure_time": False}
    found = onnxsmith.prune(CLASSIFIER, out, **kwargs)
    assert out.exists() != is_ruined
    if not is_ruined:
        return
    said = next(one for one in found.report.problems if one.id == "prune/ruined")
    smaller = said.fix.partition('give share="')[2].partition('"')[0]
    assert not onnxsmith.prune(CLASSIFIER, out, **{**kwargs, "share": smaller}).report.problems
    found = onnxsmith.prune(CLASSIFIER, out, **kwargs, write_unsure=True)
    assert "the pruned model has lost most of the score" in found.report.headline


def test_labels_that_repeat_in_turn_are_taken() -> None:
    data = turns(64)
    assert powers(CLASSIFIER, data, metric="top1").moves


def turns(count: int) -> list[Any]:
    """Samples of which the classes are 0, 1, 2, … in turn, as the model sees them."""
    found: dict[int, list[Any]] = {}
    while min(map(len, found.values()), default=0) < count // CLASSES or len(found) < CLASSES:
        x = DRAW.standard_normal((1, WIDTH)).astype(np.float32)
        found.setdefault(int(np.argmax(np.maximum(x @ W, 0) @ V)), []).append(x)
    return [({"x": found[at % CLASSES][at // CLASSES]}, at % CLASSES) for at in range(count)]


def powers(model: ir.Model, data: Any, **options: Any) -> score_power.Power:
    runtime = runtimes.get("onnxruntime")
    with runtime.prepare(model) as session:
        given = read(model, Request(data=data, **options), session)
        before = given.scoring.first(session)
    return score_power.measured(model, given, before, runtime)


@pytest.mark.parametrize("verb", ["quantize", "prune"])
def test_a_model_that_draws_random_numbers_is_refused(verb: str, tmp_path: Path) -> None:
    drawing = model(
        f"({SIZES}, float[{WIDTH},{CLASSES}] v) => (float[n,{CLASSES}] y) "
        "{ e = RandomNormalLike(x) s = Add(x, e) a = MatMul(s, w) r = Relu(a) y = MatMul(r, v) }",
        w=W,
        v=V,
    )
    with pytest.raises(OnnxsmithError) as caught:
        getattr(onnxsmith, verb)(drawing, tmp_path / "o.onnx", data=[{"x": one} for one in samples(8)])
    assert caught.value.problem.id == "quantize/random"
    assert "RandomNormalLike" in caught.value.problem.why
    assert not list(tmp_path.iterdir())


def samples(count: int) -> list[Any]:
    return list(DRAW.standard_normal((count, 1, WIDTH)).astype(np.float32))


def test_a_number_of_decibels_below_the_cap_is_named() -> None:
    with pytest.raises(OnnxsmithError) as caught:
        powers(CLASSIFIER, [{"x": one} for one in samples(16)], metric="psnr", budget=2)
    assert caught.value.problem.id == "quantize/blind-score"
    assert "requires PSNR in dB 118" in caught.value.problem.what
    assert "--budget 80" in caught.value.problem.fix
