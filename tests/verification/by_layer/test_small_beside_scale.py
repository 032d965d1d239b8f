"""An error that is small beside the scale of a tensor, and large again after an operation that subtracts the mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

import onnxsmith
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.text import from_text

STEPS = (
    "u{k} = Sub(x{k}, halves)",
    "n{k} = Elu<alpha = {alpha}>(u{k})",
    "m{k} = Mul(n{k}, low)",
    "h{k} = Add(m{k}, one)",
)
FUSED = "i{k} = InstanceNormalization(h{k}, ones, zeros)"
APART = (
    "mean{k} = ReduceMean<keepdims = 1>(h{k}, last)",
    "d{k} = Sub(h{k}, mean{k})",
    "s{k} = Mul(d{k}, d{k})",
    "v{k} = ReduceMean<keepdims = 1>(s{k}, last)",
    "e{k} = Add(v{k}, epsilon)",
    "r{k} = Sqrt(e{k})",
    "i{k} = Div(d{k}, r{k})",
)
CONSTANTS = (
    ("halves", 0.3), ("low", 1e-3), ("one", 1.0), ("epsilon", 1e-5),
)  # fmt: skip


def net(norm: Callable[[int], tuple[str, ...]], alpha: float = 1.0) -> ir.Model:
    """Four blocks that normalise values near 1, which differ by thousandths. `alpha` is that of the third Elu."""
    lines = [f"{name} = Constant<value_float = {value:.6f}>()" for name, value in CONSTANTS]
    lines += ["last = Constant<value_ints = [2]>()", "both = Constant<value_ints = [1, 2]>()"]
    lines += [
        line
        for name, value in (("ones", 1.0), ("zeros", 0.0))
        for line in [f"{name} = Constant<value_floats = [{', '.join([f'{value:.1f}'] * 8)}]>()"]
    ]
    for k in range(4):
        lines += [line.format(k=k, alpha=f"{alpha if k == 2 else 1.0:.6f}") for line in (*STEPS, *norm(k))]
        lines.append(f"x{k + 1} = Add(x{k}, i{k})")
    lines.append("y = ReduceMean<keepdims = 0>(x4, both)")
    body = "\n".join(lines)
    return from_text(f'<ir_version: 10, opset_import: ["": 21]> g (float[n,8,c] x0) => (float[n] y) {{ {body} }}')


def fused(k: int) -> tuple[str, ...]:
    return (FUSED.format(k=k),)


def apart(k: int) -> tuple[str, ...]:
    return tuple(line.format(k=k) for line in APART)


def compared(candidate: ir.Model, seed: int) -> tuple[Layers, onnxsmith.Result]:
    feeds = {"x0": np.random.default_rng(seed).standard_normal((1, 8, 257)).astype(np.float32)}
    result = onnxsmith.compare(net(apart), candidate, inputs=feeds, generate=False, per_layer=True)
    return result.report.part(Layers), result


def test_a_normalisation_computed_in_another_way_is_rounding() -> None:
    """The fused operator and its parts subtract nearly equal numbers, and are about equally far from float64."""
    found, result = compared(net(fused), 0)
    assert result.report.verdict is not Verdict.DIFFERENT
    assert found.culprits == ()
    assert found.layer("i0").verdict == "rounding"
    assert any(note.startswith("rounding explains these") for note in found.notes)


def test_the_wrong_node_is_named_and_not_a_normalisation() -> None:
    found, _ = compared(net(fused, alpha=1.0015), 0)
    assert found.culprits == ("n2",)


def test_an_error_that_agrees_beside_a_large_mean_and_returns_is_an_error() -> None:
    """`h2` is near 1 and agrees; InstanceNormalization subtracts the mean, and the error of `n2` is there again."""
    found, result = compared(net(fused, alpha=1.0015), 4)
    assert not found.layer("h2").differs
    assert found.culprits == ("n2",)
    assert result.report.verdict is Verdict.DIFFERENT
