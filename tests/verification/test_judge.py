"""What is allowed follows from the noise that is there; what a check would not have noticed, it does not call equal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith import compare, simplify
from onnxsmith.base.report.parts.verification import Power, Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.settings import Save, Verify
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.surgery.weights_as_inputs import adjustable
from onnxsmith.verification.probe import planted
from onnxsmith.verification.rounding import roundings
from onnxsmith.verification.sessions import verify_models
from onnxsmith.verification.verification_verdict import ending, problems, verdict

RNG = np.random.default_rng(0)


def network(layers: int = 4, *, width: int = 32, activation: str = "Relu", end: str = "", seed: int = 0) -> ir.Model:
    """Products with an activation between them, weights drawn anew for each seed."""
    rng = np.random.default_rng(seed)
    names = [f"w{index}" for index in range(layers)]
    lines, value = [], "x"
    for index, name in enumerate(names):
        lines.append(f"p{index} = MatMul({value}, {name})")
        lines.append(f"a{index} = {activation}(p{index})")
        value = f"a{index}"
    weights = ", ".join(f"float[{width},{width}] {name}" for name in names)
    last = end or "y = Identity({0})"
    body = "\n".join([*lines, last.format(value)])
    model = from_text(
        f'<ir_version: 10, opset_import: ["": 20]> g (float[batch,{width}] x, {weights}) '
        f"=> (float[batch,k] y) {{ {body} }}"
    )
    for value_ in list(model.graph.inputs)[1:]:
        array = (rng.standard_normal((width, width)) / np.sqrt(width / 2)).astype(np.float32)
        value_.const_value = ir.tensor(array, name=value_.name)
        model.graph.inputs.remove(value_)
        model.graph.register_initializer(value_)
    return model


def changed(model: ir.Model, name: str, array: np.ndarray) -> ir.Model:  # type: ignore[type-arg]
    copy = model.clone()
    copy.graph.initializers[name].const_value = ir.tensor(array, name=name)
    return copy


def weight(model: ir.Model, name: str) -> np.ndarray:  # type: ignore[type-arg]
    tensor = model.graph.initializers[name].const_value
    assert tensor is not None
    return tensor.numpy()


FAR = """
<ir_version: 10, opset_import: ["": 20]>
g (float[batch,3] x) => (bool[batch,3] y) <float[3] w = {100, 110, 120}> { t = Tanh(x) y = Less(t, w) }
"""
"""What is compared with the weight is so far from it that a change of 5% turns no result."""
ROUGH = (
    "s = ReduceMean({0})\n c = Constant<value_float = 3.0>()\n t = Mul(s, c)\n z = Floor(t)\n"
    "k = Constant<value_ints = [1, 1]>()\n y = Reshape(z, k)"
)
"""An output that moves in steps."""


def test_a_fault_of_one_in_ten_thousand_is_seen() -> None:
    model = network()
    array = weight(model, "w1") * np.float32(1.0001)
    found = verify_models(model, changed(model, "w1", array))
    assert found.differs


def test_what_was_noticed_is_reported() -> None:
    model = network()
    found = verify_models(model, model)
    assert found.equal
    assert found.power == Power("weights", 4, 4, 4)
    assert "would notice a change of 1% in each of the 4 weights" in str(found.power)


def test_rounding_in_another_order_is_no_difference() -> None:
    model = network(6)
    array = weight(model, "w2")
    order = np.random.default_rng(1).permutation(array.shape[1])
    other = changed(model, "w2", array[:, order])
    other = changed(other, "w3", weight(model, "w3")[order])
    found = verify_models(model, other)
    assert found.equal
    assert not found.exact


def test_a_check_that_sees_no_fault_cannot_tell() -> None:
    model = from_text(FAR)
    found = verify_models(model, model)
    assert not found.equal
    assert not found.differs
    assert verdict(found) is Verdict.CANNOT_TELL
    assert Verdict.CANNOT_TELL.exit_code == 1
    assert problems(found)[0].id == "verify/cannot-tell"
    assert "CANNOT TELL" in ending(found)


def test_tensors_in_the_middle_decide_where_the_outputs_cannot() -> None:
    sure = network(2, end=ROUGH)
    found = verify_models(sure, sure)
    assert found.equal
    assert any("intermediate tensors also agree" in note for note in found.notes)
    wrong = changed(sure, "w0", weight(sure, "w0") * np.float32(1.02))
    assert not verify_models(sure, wrong).equal


def test_nothing_is_written_unless_asked_where_the_check_cannot_tell(tmp_path: Path) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    save(from_text(FAR), source)
    refused = simplify(source, target)
    assert refused.report.verdict is Verdict.CANNOT_TELL
    assert not target.exists()
    written = simplify(source, target, save=Save(write_unsure=True))
    assert written.report.verdict is Verdict.CANNOT_TELL
    assert target.exists()
    assert written.path == target


def test_a_stated_tolerance_decides() -> None:
    model = network()
    wrong = changed(model, "w1", weight(model, "w1") * np.float32(1.01))
    assert verify_models(model, wrong, Verify(tolerance=0.1)).equal
    assert verify_models(model, wrong, Verify(tolerance=1e-4)).differs


def test_one_cast_adds_its_own_rounding_only() -> None:
    model = from_text("""
    <ir_version: 10, opset_import: ["": 20]>
    g (float[4] x) => (float[4] y) {
        h = Cast<to = 10>(x)
        a = Cast<to = 1>(h)
        b = Tanh(a) c = Tanh(b) d = Tanh(c) e = Tanh(d) f = Tanh(e) i = Tanh(f) j = Tanh(i) y = Tanh(j)
    }
    """)
    tolerance = roundings(inferred(model)[0])["y"].tolerance
    assert 8 * 2.0**-11 < tolerance < 8 * 2.0**-11 * 1.6


def test_interpolation_errs_with_the_length_of_the_axis() -> None:
    text = """
    <ir_version: 10, opset_import: ["": 20]>
    g (float[1,1,%d] x) => (float[1,1,n] y) <int64[3] sizes = {1, 1, 777}>
    { e = Constant<value_floats = [0.0]>()  y = Resize<mode = "linear">(x, , , sizes) }
    """.replace(" e = Constant<value_floats = [0.0]>() ", "")
    short, long = (roundings(from_text(text % size))["y"].tolerance for size in (8, 512))
    assert long > 16 * short


@pytest.mark.parametrize("dropped", [True, False])
def test_a_dropped_cast_is_seen(dropped: bool) -> None:
    """The reference rounds to float16 in its middle. Rounding moves few elements by a step of that; a Cast that is gone
    moves them all."""
    end = "h = Cast<to = 10>({0})\n y = Cast<to = 1>(h)"
    model = network(end=end)
    other = network(end="h = Neg({0})\n y = Neg(h)" if dropped else end)
    assert verify_models(model, other).differs == dropped


def test_an_integer_that_rounding_does_not_move_has_to_be_equal() -> None:
    end = "m = Constant<value_float = 8.0>()\n r = Mul({0}, m)\n f = Floor(r)\n y = Identity(f)"
    model = network(end=end)
    wrong = changed(model, "w3", weight(model, "w3") * np.float32(1.01))
    assert verify_models(model, model).equal
    assert not verify_models(model, wrong).equal


def test_a_fault_in_a_quantised_model_is_seen_or_nobody_can_tell() -> None:
    end = "q, s, z = DynamicQuantizeLinear({0})\n y = DequantizeLinear(q, s, z)"
    model = network(3, end=end)
    for seed in range(4):
        array = weight(model, f"w{seed % 3}")
        signs = np.random.default_rng(seed).choice((-1, 1), array.shape).astype(np.float32)
        wrong = changed(model, f"w{seed % 3}", array * (1 + np.float32(0.05) * signs))
        assert not verify_models(model, wrong).equal


def test_a_wrong_model_is_different_where_the_optimiser_moves_the_reference_too() -> None:
    """onnxruntime quantises what meets a weight of int8 when it optimises: the same model moves by half a percent."""
    text = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[N,16] x, int8[16,16] w, float[16] s) => (float[N,16] y)
    { d = DequantizeLinear<axis = %d>(w, s) m = MatMul(x, d) y = Identity(m) }
    """
    models = []
    for axis in (0, 1):
        model = from_text(text % axis)
        rng = np.random.default_rng(0)
        arrays = {"w": rng.integers(-127, 127, (16, 16)).astype(np.int8), "s": rng.uniform(0.004, 0.012, 16)}
        for value in list(model.graph.inputs)[1:]:
            array = arrays[value.name or ""]
            value.const_value = ir.tensor(array.astype(np.int8 if value.name == "w" else np.float32), name=value.name)
            model.graph.inputs.remove(value)
            model.graph.register_initializer(value)
        models.append(model)
    assert compare(models[0], models[0]).report.verdict is Verdict.DONE
    assert compare(*models).report.verdict is Verdict.DIFFERENT


def test_compare_says_what_it_cannot_tell() -> None:
    report = compare(from_text(FAR), from_text(FAR)).report
    assert report.verdict is Verdict.CANNOT_TELL
    assert "CANNOT TELL" in report.headline
    assert report.problems[0].id == "verify/cannot-tell"


def test_compare_looks_at_tensors_in_the_middle_too() -> None:
    sure = network(2, end=ROUGH)
    report = compare(sure, sure.clone()).report
    assert report.verdict is Verdict.DONE
    wrong = changed(sure, "w0", weight(sure, "w0") * np.float32(1.02))
    assert compare(sure, wrong).report.verdict is Verdict.DIFFERENT  # on inputs of another seed


def test_weights_become_inputs_with_a_default() -> None:
    model = from_text("""
    <ir_version: 10, opset_import: ["": 20]>
    g (float[2,3] x) => (float[2,2] y)
    <float[3,2] w = {1, 2, 3, 4, 5, 6}, float one = {1.0}, float[2] exponent = {2, 2}, int64[2] shape = {2, 2}> {
        c = Constant<value = float[2] {0.5, 0.25}>()
        p = MatMul(x, w)
        q = Add(p, c)
        r = Pow(q, exponent)
        s = Mul(r, one)
        y = Reshape(s, shape)
    }
    """)
    made, weights = adjustable(model)
    assert [one.name for one in weights] == ["w", "c"]
    assert [value.name for value in made.graph.inputs] == ["x", "w", "c"]
    assert weights[0].terms == 3
    assert [value.name for value in model.graph.inputs] == ["x"]


def test_scales_that_a_kernel_reads_when_it_is_loaded_are_no_weights() -> None:
    for level, found in ((4, []), (0, ["s"])):
        made = from_text(f"""<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
        g (float[n,32] x) => (float[n,2] y)
        <uint8[2,1,16] w = {{{", ".join(["17"] * 32)}}}, float[2,1] s = {{1.0, 2.0}}> {{
            y = com.microsoft.MatMulNBits<K = 32, N = 2, bits = 4, block_size = 32, accuracy_level = {level}>(x, w, s)
        }}""")
        assert [one.name for one in adjustable(made)[1]] == found


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_a_planted_fault_is_as_large_as_it_says(dtype: str) -> None:
    array = RNG.standard_normal((40, 40)).astype(dtype)
    for share in (0.01, 0.05):
        made = planted(array, share, False, 0)
        assert made is not None
        assert made.dtype == array.dtype
        off = np.abs(made.astype(np.float64) / array.astype(np.float64) - 1)
        assert np.allclose(off, share, rtol=0.2)


def test_a_planted_fault_moves_levels_by_steps() -> None:
    array = RNG.integers(-100, 100, (40, 40)).astype(np.int8)
    made = planted(array, 0.01, True, 0)
    assert made is not None
    steps = np.abs(made.astype(int) - array.astype(int))
    assert steps.max() == 1
    assert 0.2 < steps.mean() < 0.5  # 1% of a root mean square of 58 is .58 of a step: its square of the elements move
    assert planted(np.zeros((3,), np.float32), 0.01, False, 0) is None


def test_power_is_judged_by_what_would_not_have_been_seen() -> None:
    strong = Power("weights", 40, 24, 24)
    assert not strong.shortcoming()
    assert not replace(strong, seen=23, blind=("w",)).shortcoming()
    assert "5% in 2 of 24" in replace(strong, seen=22, blind=("w", "v")).shortcoming()
    assert "1% in 3 of 24" in replace(strong, seen=21, only_large=("w", "v", "u")).shortcoming()
    assert not replace(strong, seen=10, inert=tuple("abcdefghijklmn")).shortcoming()
    assert replace(strong, seen=0, inert=tuple(map(str, range(24)))).shortcoming()


def test_a_verification_that_cannot_tell_is_neither_equal_nor_different() -> None:
    part = Verification("a", "b", verified=True, equal=False, unsure=("why",))
    assert not part.differs
    assert Verification("a", "b", verified=True, equal=False).differs
