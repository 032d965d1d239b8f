"""The difference of two graphs that explains different outputs is found, tried, and undone by the fix."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxsmith
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.comparison.outputs.layer_stage import blamed

Nodes = Sequence[onnx.NodeProto]


def conv(name: str, read: str, made: str, weight: str = "w", **attributes: Any) -> onnx.NodeProto:
    given = {"pads": [1, 1, 1, 1], "name": name, **attributes}
    return helper.make_node("Conv", [read, weight, "b"], [made], **given)


def node(op: str, read: Sequence[str], made: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, list(read), [made], name=f"{op}_{made}", **attributes)


PLAIN = (
    conv("first", "x", "c1"),
    node("LeakyRelu", ["c1"], "l", alpha=0.1),
    node("Mul", ["l", "scale"], "s"),
    conv("second", "s", "c2", "v"),
    node("Add", ["c2", "l"], "a"),
    node("ReduceMean", ["a", "axes"], "y", keepdims=0),
)


def model(nodes: Nodes = PLAIN, **weights: Any) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    held = {
        "w": rng.standard_normal((4, 4, 3, 3)) / 6,
        "v": rng.standard_normal((4, 4, 3, 3)) / 6,
        "b": rng.standard_normal(4),
        "scale": np.array(1.5),
        "axes": np.array([2, 3], np.int64),
        **weights,
    }
    tensors = [
        numpy_helper.from_array(np.asarray(array if array.dtype == np.int64 else array.astype(np.float32)), name)
        for name, array in held.items()
        if any(name in one.input for one in nodes)
    ]
    ports = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        for name, shape in (("x", [1, 4, 12, 12]), ("y", [1, 4]))
    ]
    graph = helper.make_graph(list(nodes), "g", *ports, tensors)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])


def changed(place: int, *nodes: onnx.NodeProto) -> list[onnx.NodeProto]:
    """The nodes with others at a place."""
    return [*PLAIN[:place], *nodes, *PLAIN[place + 1 :]]


def without_names(given: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """The same with other names."""
    copy = onnx.ModelProto()
    copy.CopyFrom(given)
    numbers = iter(np.random.default_rng(seed).permutation(100))
    new = {name: f"t{next(numbers)}" for one in copy.graph.node for name in one.output if name != "y"}
    new |= {one.name: f"t{next(numbers)}" for one in copy.graph.initializer}
    for one in copy.graph.node:
        one.input[:] = [new.get(name, name) for name in one.input]
        one.output[:] = [new.get(name, name) for name in one.output]
    for tensor in copy.graph.initializer:
        tensor.name = new[tensor.name]
    return copy


def found(result: onnxsmith.Result) -> Layers:
    return result.report.part(Layers)


def compared(candidate: onnx.ModelProto, reference: onnx.ModelProto | None = None) -> onnxsmith.Result:
    return onnxsmith.compare(reference or model(), candidate, per_layer=True)


ALPHA = changed(1, node("LeakyRelu", ["c1"], "l", alpha=0.3))
LOST = [*PLAIN[:2], conv("second", "l", "c2", "v"), *PLAIN[4:]]
THERE_AND_BACK = (
    node("Cast", ["l"], "half", to=TensorProto.INT32),
    node("Cast", ["half"], "back", to=TensorProto.FLOAT),
)
CAST = [*PLAIN[:2], *THERE_AND_BACK, node("Mul", ["back", "scale"], "s"), *PLAIN[3:]]
OPERATOR = changed(4, node("Sub", ["c2", "l"], "a"))


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize(
    ("nodes", "named", "said"),
    [
        (ALPHA, "LeakyRelu_l", "alpha 0.1 → 0.3"),
        (LOST, "second", "Mul only in the reference"),
        (CAST, "Cast_half", "2 Cast only in the candidate"),
        (OPERATOR, "Sub_a", "Add → Sub"),
    ],
    ids=["attribute", "a node less", "nodes more", "operator"],
)
def test_the_cause_is_named_and_was_tried(nodes: Nodes, named: str, said: str, renamed: bool) -> None:
    candidate = model(nodes)
    result = compared(without_names(candidate) if renamed else candidate)
    layers = found(result)
    assert result.report.verdict is Verdict.DIFFERENT
    assert layers.layer(layers.culprits[0]).steps[0] == named
    assert layers.cause is not None
    assert (layers.cause.node, layers.cause.agrees) == (named, True)
    assert any(said in change for change in layers.cause.changes), layers.cause.changes
    assert layers.cause.after < 1e-5 < layers.cause.before
    assert said in result.report.headline


def test_a_weight_is_named_with_its_figures() -> None:
    wrong = np.random.default_rng(0).standard_normal((4, 4, 3, 3)) / 6
    wrong[2, 1] *= 3
    layers = found(compared(without_names(model(w=wrong))))
    assert layers.cause is not None
    assert layers.cause.node == "first"
    assert "6.25% of its elements differ" in layers.cause.changes[0]


def test_how_a_tensor_differs_is_said() -> None:
    layers = found(compared(model(scale=np.array(1.8))))
    assert layers.pattern == "times 1.2"
    assert found(compared(model())).pattern == ""


def test_a_shape_that_differs_is_evidence() -> None:
    """All that follows has another shape, until the mean."""
    strided = changed(3, conv("second", "s", "c2", "v", strides=[2, 2]))
    strided[4] = node("Relu", ["c2"], "a")
    right = changed(4, node("Relu", ["c2"], "a"))
    layers = found(compared(without_names(model(strided)), model(right)))
    assert layers.layer(layers.culprits[0]).steps[0] == "second"
    assert (
        "shape [1, 4, 12, 12] in the reference, [1, 4, 6, 6] in the candidate"
        in layers.layer(layers.culprits[0]).reason
    )
    assert layers.cause is not None
    assert layers.cause.agrees


def test_two_faults_are_both_named_and_undone_together() -> None:
    """One change can be written as a patch, the other has to be undone by hand."""
    both = list(ALPHA)
    both[4] = node("Sub", ["c2", "l"], "a")
    layers = found(compared(model(both)))
    assert {"l", "a"} <= set(layers.culprits)
    assert layers.cause is not None
    assert layers.cause.agrees
    assert layers.cause.said() == "alpha 0.1 → 0.3 at LeakyRelu LeakyRelu_l; and Add → Sub at Sub Sub_a"
    (blame,) = blamed(layers, "m.onnx")
    assert blame.what.startswith("2 tensors differ by errors that their own operations add: l, a")
    assert "onnxsmith edit m.onnx fix.toml" in blame.fix
    assert blame.fix.endswith("undo the rest by hand: Add → Sub at Sub Sub_a")


def pasted(fix: str, folder: Path) -> None:
    """Runs the command that a fix begins with."""
    command = fix[1 : fix.index("`", 1)]
    program = f'onnxsmith() {{ "{sys.executable}" -m onnxsmith "$@"; }}\n{command}'
    subprocess.run(["bash", "-euc", program], cwd=folder, check=True, capture_output=True)


def weights(places: int) -> np.ndarray[Any, Any]:
    """The weight of the second convolution, with a few numbers changed."""
    rng = np.random.default_rng(0)
    rng.standard_normal((4, 4, 3, 3))
    held = rng.standard_normal((4, 4, 3, 3)) / 6
    held.reshape(-1)[:places] += 0.5
    return held


@pytest.mark.parametrize(
    ("nodes", "changed_places", "says"),
    [
        (PLAIN, 3, "'at = [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 2]]'"),
        (PLAIN, 144, '\'value = { file = "right.onnx", tensor = "v" }\''),
        (ALPHA, 3, "'attributes = { alpha = 0.1 }'"),
    ],
    ids=["a few numbers", "a whole weight", "two faults"],
)
def test_the_fix_of_a_weight_is_short_and_works(
    nodes: Nodes, changed_places: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(model(), "right.onnx")
    onnx.save(model(nodes, v=weights(changed_places)), "wrong.onnx")
    result = onnxsmith.compare("right.onnx", "wrong.onnx", per_layer=True)
    fix = result.report.problems[-1].fix
    assert says in fix
    assert len(fix) < 500
    pasted(fix, tmp_path)
    assert onnxsmith.compare("right.onnx", "wrong_fixed.onnx").ok


def test_what_changes_nothing_is_not_the_cause() -> None:
    """The first difference of the graphs has no effect; undone, it leaves the outputs as they are."""
    nodes = [conv("first", "x", "c1", auto_pad="NOTSET"), *ALPHA[1:]]
    harmless = [nodes[0], node("Identity", ["c1"], "i"), node("LeakyRelu", ["i"], "l", alpha=0.3), *PLAIN[2:]]
    layers = found(compared(model(harmless)))
    assert layers.cause is not None
    assert layers.cause.node == "LeakyRelu_l"


def test_the_fix_works_when_pasted(tmp_path: Path) -> None:
    onnx.save(model(), tmp_path / "right.onnx")
    onnx.save(model(ALPHA), tmp_path / "wrong.onnx")
    result = onnxsmith.compare(tmp_path / "right.onnx", tmp_path / "wrong.onnx", per_layer=True)
    fix = result.report.problems[-1].fix.strip("`")
    program = f'onnxsmith() {{ "{sys.executable}" -m onnxsmith "$@"; }}\n{fix}'
    subprocess.run(["bash", "-euc", program], cwd=tmp_path, check=True, capture_output=True)
    assert onnxsmith.compare(tmp_path / "right.onnx", tmp_path / "wrong_fixed.onnx").ok


def twins(order: Sequence[int]) -> onnx.ModelProto:
    """Two branches of one shape that meet in an Add, in either order."""
    branches = [
        [conv("one", "x", "p"), node("Mul", ["p", "p"], "pp")],
        [conv("other", "x", "q", "v"), node("Mul", ["q", "q"], "qq")],
    ]
    nodes = [one for place in order for one in branches[place]]
    reads = [("pp", "qq")[place] for place in order]
    return model([*nodes, node("Add", reads, "a"), node("ReduceMean", ["a", "axes"], "y", keepdims=0)])


def test_twins_in_another_order_are_no_difference() -> None:
    result = compared(without_names(twins([1, 0])), twins([0, 1]))
    assert result.ok
    assert found(result).culprits == ()


NORM = node("BatchNormalization", ["c1", "gain", "b", "mean", "var"], "n", epsilon=1e-5)
NORMED = [PLAIN[0], NORM, node("LeakyRelu", ["n"], "l", alpha=0.1), *PLAIN[2:]]


def folded(factor: float = 1.0) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A normalisation, and the same folded into the convolution before it, whose tensor keeps its name."""
    rng = np.random.default_rng(1)
    gain, mean, var = rng.uniform(0.5, 2, 4), rng.standard_normal(4), rng.uniform(0.5, 2, 4)
    right = model(NORMED, gain=gain, mean=mean, var=var)
    w, b = (numpy_helper.to_array(next(t for t in right.graph.initializer if t.name == name)) for name in "wb")
    scale = gain / np.sqrt(var + 1e-5)
    nodes = [
        helper.make_node("Conv", ["x", "w2", "b2"], ["c1"], name="first", pads=[1, 1, 1, 1]),
        node("LeakyRelu", ["c1"], "l", alpha=0.1),
        *PLAIN[2:],
    ]
    weights = {"w2": w * scale[:, None, None, None] * factor, "b2": (b - mean) * scale + b}
    return right, model(nodes, **weights)


def test_a_folded_normalisation_is_no_difference() -> None:
    right, made = folded()
    result = compared(made, right)
    assert result.ok
    assert found(result).culprits == ()
    assert {one.reference: one.name for one in found(result).layers}["n"] == "c1"


def test_a_wrong_folding_is_blamed_on_the_convolution() -> None:
    right, made = folded(1.01)
    layers = found(compared(made, right))
    assert layers.layer(layers.culprits[0]).steps[0] == "first"


def halved(to: int = TensorProto.FLOAT16, read: str = "l", **weights: Any) -> onnx.ModelProto:
    """A Cast to a narrower float and back, of an activation or of a weight, whose rounding an output shows."""
    casts = node("Cast", [read], "half", to=to), node("Cast", ["half"], "back", to=TensorProto.FLOAT)
    after = [node("Mul", ["back", "scale"], "s"), *PLAIN[3:]]
    if read != "l":
        after = [PLAIN[2], conv("second", "s", "c2", "back"), *PLAIN[4:]]
    return model([*PLAIN[:2], *casts, *after], **weights)


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("read", ["l", "v"])
@pytest.mark.parametrize("to", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_a_detour_through_a_narrower_dtype_is_the_culprit(to: int, read: str, renamed: bool) -> None:
    """The rounding of float16 would excuse the outputs. Nothing else is computed in float16, so nothing needs it."""
    candidate = halved(to, read)
    result = compared(without_names(candidate) if renamed else candidate)
    layers = found(result)
    assert result.report.verdict is Verdict.DIFFERENT
    assert layers.cause is not None
    assert layers.cause.node == "Cast_half"
    assert layers.cause.agrees
    assert layers.layer(layers.culprits[0]).steps[0] == "Cast_half"
    assert "2 Cast only in the candidate at Cast Cast_half" in result.report.headline


def rounded(name: str, to: int) -> onnx.ModelProto:
    """A Cast to a narrower float and back behind a tensor. What is behind the Casts has the tensor's name."""
    made = model()
    at = next(place for place, one in enumerate(made.graph.node) if name in one.output)
    made.graph.node[at].output[0] = f"{name}_before"
    casts = [node("Cast", [f"{name}_before"], "half", to=to), node("Cast", ["half"], name, to=TensorProto.FLOAT)]
    nodes = [*made.graph.node[: at + 1], *casts, *made.graph.node[at + 1 :]]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


@pytest.mark.parametrize("place", ["inside", "output"])
@pytest.mark.parametrize("to", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_a_detour_whose_end_has_the_old_name_is_the_culprit(to: int, place: str) -> None:
    name = "l" if place == "inside" else model().graph.output[0].name
    result = compared(rounded(name, to))
    assert result.report.verdict is Verdict.DIFFERENT
    assert "2 Cast only in the candidate at Cast Cast_half" in result.report.headline


def test_the_rounding_of_a_layer_in_float16_is_told_and_excused() -> None:
    """A layer that was converted to float16 needs its Casts: they are no detour."""
    there = node("Cast", ["l"], "half", to=TensorProto.FLOAT16), node("Cast", ["scale"], "few", to=TensorProto.FLOAT16)
    product = node("Mul", ["half", "few"], "product"), node("Cast", ["product"], "s", to=TensorProto.FLOAT)
    result = compared(model([*PLAIN[:2], *there, *product, *PLAIN[3:]]))
    assert result.report.verdict is Verdict.DONE
    assert found(result).culprits == ()


def normalised(*between: onnx.NodeProto, read: str, **more: Any) -> onnx.ModelProto:
    """The network with a normalisation in place of the product, and nodes before it."""
    norm = node("InstanceNormalization", [read, "ones", "zeros"], "s")
    return model([*PLAIN[:2], *between, norm, *PLAIN[3:]], ones=np.ones(4), zeros=np.zeros(4), **more)


def test_a_quantiser_that_only_the_candidate_has_is_the_cause() -> None:
    """The rounding of quantisers excuses what follows it; the outputs are wrong all the same."""
    step = node("QuantizeLinear", ["l", "step"], "q"), node("DequantizeLinear", ["q", "step"], "d")
    result = compared(normalised(*step, read="d", step=np.array(0.3)), normalised(read="l"))
    layers = found(result)
    assert result.report.verdict is Verdict.DIFFERENT
    assert layers.cause is not None
    assert layers.cause.agrees
    assert layers.layer(layers.culprits[0]).steps[0] == "QuantizeLinear_q"
    assert "QuantizeLinear, DequantizeLinear only in the candidate" in result.report.headline


def test_an_activation_that_was_stored_as_a_constant_is_found() -> None:
    """The candidate's output depends on no input: the node that reads the constant is named."""
    fixed = np.random.default_rng(1).standard_normal((1, 4, 12, 12))
    baked = model([conv("second", "k", "c2", "v"), node("Add", ["c2", "k"], "a"), PLAIN[-1]], k=fixed)
    result = compared(baked)
    layers = found(result)
    assert result.report.verdict is Verdict.DIFFERENT
    assert layers.layer(layers.culprits[0]).steps[0] in ("second", "Add_a")


def test_a_difference_after_which_shapes_do_not_fit_is_found() -> None:
    """One slice is longer and the other shorter: the reference's value of one does not fit the candidate's other."""
    ends = {name: np.array([at], np.int64) for name, at in (("zero", 0), ("cut", 5), ("end", 12), ("axis", 3))}

    def rolled(cut: str, **more: Any) -> onnx.ModelProto:
        moved = (
            node("Slice", ["l", cut, "end", "axis"], "late"),
            node("Slice", ["l", "zero", cut, "axis"], "early"),
            node("Concat", ["late", "early"], "r", axis=3),
            node("Mul", ["r", "l"], "s"),
        )
        return model([*PLAIN[:2], *moved, *PLAIN[3:]], **ends, **more)

    result = onnxsmith.compare(rolled("cut"), rolled("seven", seven=np.array([7], np.int64)), per_layer=True)
    layers = found(result)
    assert not any(one.id == "runtime/failed" for one in result.report.problems)
    assert layers.layer(layers.culprits[0]).steps[0] in ("Slice_late", "Slice_early")


@pytest.mark.parametrize("id_", ["runtime/failed", "runtime/died"])
def test_a_runtime_that_fails_with_its_optimisations_is_asked_without(
    id_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnxsmith.base.problem import OnnxsmithError, Problem
    from onnxsmith.comparison.outputs import two_sides
    from onnxsmith.comparison.outputs.sides import SideSource

    verify, calls = two_sides.verify, []
    closed, close = [], SideSource.close
    monkeypatch.setattr(SideSource, "close", lambda side: (closed.append(side.options.optimization), close(side)))

    def fails_once(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise OnnxsmithError(Problem(id_, "onnxruntime refused or failed", why="an optimisation"))
        return verify(*args, **options)

    monkeypatch.setattr(two_sides, "verify", fails_once)
    result = compared(model(ALPHA))
    assert result.report.verdict is Verdict.DIFFERENT
    assert any("optimisations" in note for note in result.report.parts[0].notes)  # type: ignore[attr-defined]
    assert closed.count("disable") >= 2, "the sides without optimisations end, too"
