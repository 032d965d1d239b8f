"""Small graphs with the sizes of real layers, each with the rules that make a fused form of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.files.text import from_text

Numbers = Mapping[str, npt.NDArray[Any]]
_WIDTH, _HEADS, _HEAD = 384, 12, 32


@dataclass(frozen=True)
class Form:
    """A graph as ONNX text without its constants, which are drawn: `constants` says their dtype and shape."""

    name: str
    rules: tuple[str, ...]
    text: str
    constants: Mapping[str, npt.NDArray[Any]]
    opset: int = 24

    def model(self) -> ir.Model:
        """The model; large constants are not part of the text."""
        head = f'<ir_version: 10, opset_import: ["": {self.opset}]>\n'
        declared = ", ".join(
            f"{ir.tensor(array).dtype.name.lower()}{list(array.shape) if array.ndim else ''} {name}"
            for name, array in self.constants.items()
        )
        start, inputs, rest = self.text.partition("(")
        model = from_text(f"{head}{start}{inputs}{declared}{', ' if declared else ''}{rest}")
        for value in list(model.graph.inputs):
            if value.name in self.constants:
                value.const_value = ir.tensor(self.constants[value.name], name=value.name)
                model.graph.inputs.remove(value)
                model.graph.register_initializer(value)
        return model

    def feeds(self) -> Numbers:
        """Normal numbers for every input."""
        draws = np.random.default_rng(0)
        ports = self.model().graph.inputs
        return {
            port.name or "": draws.standard_normal(tuple(port.shape or ())).astype(np.float32)  # type: ignore[arg-type]
            for port in ports
        }


def _f(*shape: int) -> npt.NDArray[Any]:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def _u(*shape: int) -> npt.NDArray[Any]:
    return np.random.default_rng(2).integers(0, 255, shape).astype(np.uint8)


def _n(number: float) -> npt.NDArray[Any]:
    return np.array(number, np.float32)


def _i(*numbers: int) -> npt.NDArray[Any]:
    return np.array(numbers, np.int64)


def _forms(batch: int, length: int) -> list[Form]:
    x = f"float[{batch},{length},{_WIDTH}]"
    heads = f"float[{batch},{_HEADS},{length},{_HEAD}]"
    said = f"{batch} by {length}"
    row, ones = {"s": _f(_WIDTH), "b": _f(_WIDTH)}, {"one": _n(1), "half": _n(0.5)}
    norm = {"two": _n(2), "eps": _n(1e-5), "last": _i(-1)}
    tanh = "p = Pow(x, three) a = Mul(p, cubic) t = Add(x, a) e = Mul(t, slope) h = Tanh(e) c = Add(h, one) "
    root = "e = Add(v, eps) r = Sqrt(e) "
    rms = f"q = Pow(x, two) v = ReduceMean(q, last) {root} i = Reciprocal(r) n = Mul(x, i) y = Mul(s, n)"
    layer = f"m = ReduceMean(x, last) d = Sub(x, m) q = Pow(d, two) v = ReduceMean(q, last) {root}"
    scores = "t = Transpose<perm = [0, 1, 3, 2]>(k) z = MatMul(q, t) d = Mul(z, c) "
    angles = np.outer(np.arange(length), 1 / 10000 ** (np.arange(_HEAD // 2) / (_HEAD // 2)))
    twice = np.concatenate([angles, angles], -1).astype(np.float32)[None, None]
    turn = "p = Mul(q, cos) a, b = Split<axis = 3, num_outputs = 2>(q) n = Neg(b) t = Concat<axis = -1>(n, a) "
    turn += "w = Mul(t, sin) y = Add(p, w)"
    return [
        Form(
            f"Gelu, erf, {said}",
            ("fuse/gelu",),
            f"g ({x} x) => ({x} y) {{ a = Div(x, root) e = Erf(a) c = Add(e, one) d = Mul(x, c) y = Mul(d, half) }}",
            {"root": _n(2**0.5), **ones},
        ),
        Form(
            f"Gelu, tanh, {said}",
            ("fuse/gelu",),
            f"g ({x} x) => ({x} y) {{ {tanh} o = Mul(x, half) y = Mul(o, c) }}",
            {"three": _n(3), "cubic": _n(0.044715), "slope": _n((2 / np.pi) ** 0.5), **ones},
        ),
        Form(f"Swish, {said}", ("fuse/swish",), f"g ({x} x) => ({x} y) {{ a = Sigmoid(x) y = Mul(x, a) }}", {}),
        Form(
            f"LayerNormalization, {said}",
            ("fuse/layer-norm",),
            f"g ({x} x) => ({x} y) {{ {layer} n = Div(d, r) p = Mul(n, s) y = Add(p, b) }}",
            {**norm, **row},
        ),
        Form(
            f"RMSNormalization, {said}",
            ("fuse/rms-norm",),
            f"g ({x} x) => ({x} y) {{ {rms} }}",
            {**norm, "s": row["s"]},
        ),
        Form(
            f"RotaryEmbedding, {said}",
            ("fuse/rotary",),
            f"g ({heads} q) => ({heads} y) {{ {turn} }}",
            {"cos": np.cos(twice), "sin": np.sin(twice)},
        ),
        Form(
            f"Attention, {said}",
            ("fuse/attention",),
            f"g ({heads} q, {heads} k, {heads} v) => ({heads} y) {{ {scores} p = Softmax(d) y = MatMul(p, v) }}",
            {"c": _n(_HEAD**-0.5)},
        ),
        Form(
            f"contrib: BiasGelu, {said}",
            ("contrib/bias-gelu",),
            f"g ({x} x) => ({x} y) {{ a = Add(x, b) y = Gelu(a) }}",
            {"b": row["b"]},
        ),
        Form(
            f"contrib: FastGelu, {said}",
            ("contrib/bias-gelu",),
            f'g ({x} x) => ({x} y) {{ a = Add(x, b) y = Gelu<approximate = "tanh">(a) }}',
            {"b": row["b"]},
        ),
        Form(
            f"contrib: QuickGelu, {said}",
            ("contrib/quick-gelu",),
            f"g ({x} x) => ({x} y) {{ a = Sigmoid(x) y = Mul(x, a) }}",
            {},
        ),
        Form(
            f"contrib: FusedMatMul, {said}",
            ("contrib/fused-matmul",),
            f"g ({heads} q, {heads} k) => (float[{batch},{_HEADS},{length},{length}] d) {{ {scores} }}",
            {"c": _n(_HEAD**-0.5)},
        ),
        Form(
            f"contrib: SkipLayerNormalization, {said}",
            ("contrib/skip-layer-norm",),
            f"g ({x} x) => ({x} y) {{ z = Tanh(x) a = Add(x, z) n = LayerNormalization(a, s, b) y = Add(n, a) }}",
            row,
        ),
        Form(
            f"contrib: SkipSimplified…, {said}",
            ("contrib/skip-layer-norm",),
            f"g ({x} x) => ({x} y) {{ z = Tanh(x) a = Add(x, z) n = RMSNormalization(a, s) y = Add(n, a) }}",
            {"s": row["s"]},
        ),
        *_quantised(batch * length, said),
    ]


def _quantised(rows: int, said: str) -> list[Form]:
    x = f"float[{rows},{_WIDTH}]"
    names = ("u", "v", "w")
    constants: dict[str, npt.NDArray[Any]] = {}
    for place, name in enumerate(names):
        constants |= {
            name: _u(_WIDTH, _WIDTH),
            f"{name}z": np.array(120 + place, np.uint8),
            f"{name}s": _n(0.01),
            f"{name}b": _f(_WIDTH),
        }
    each = [
        f"m{n} = MatMulInteger(q, {n}, z, {n}z) c{n} = Cast<to = 1>(m{n}) t{n} = Mul(s, {n}s) "
        f"f{n} = Mul(c{n}, t{n}) y{n} = Add(f{n}, {n}b)"
        for n in names
    ]
    quantise = "q, s, z = DynamicQuantizeLinear(x)"
    outputs = ", ".join(f"{x} y{n}" for n in names)
    three = f"g ({x} x) => ({outputs}) {{ {quantise} {' '.join(each)} }}"
    one = f"g ({x} x) => ({x} yu) {{ {quantise} {each[0]} }}"
    own = {name: constants[name] for name in ("u", "uz", "us", "ub")}
    return [
        Form(f"three quantised products, {said}", ("fuse/parallel-matmul-integer",), three, constants),
        Form(f"contrib: MatMulIntegerToFloat, {said}", ("contrib/matmul-integer-to-float",), three, constants),
        Form(f"contrib: DynamicQuantizeMatMul, {said}", ("contrib/dynamic-quantize-matmul",), one, own),
    ]


def _grouped(rows: int, past: int) -> Form:
    """Attention of 16 heads over 4 heads of keys and values."""
    many, few, size = 16, 4, 64
    length = rows + past
    inputs = f"float[1,{many},{rows},{size}] q, float[1,{few},{length},{size}] k, float[1,{few},{length},{size}] v"
    text = f"""g ({inputs}, float[1,1,{rows},{length}] mask) => (float[1,{many},{rows},{size}] y) {{
        ku = Unsqueeze(k, two) ke = Expand(ku, wide) kr = Reshape(ke, to) vu = Unsqueeze(v, two) ve = Expand(vu, wide)
        vr = Reshape(ve, to) t = Transpose<perm = [0, 1, 3, 2]>(kr) z = MatMul(q, t) d = Mul(z, c) e = Add(d, mask)
        p = Softmax(e) y = MatMul(p, vr) }}"""
    constants = {
        "two": _i(2),
        "wide": _i(1, few, many // few, length, size),
        "to": _i(1, many, length, size),
        "c": _n(size**-0.5),
    }
    return Form(f"repeated heads, {rows} rows after {past}", ("fuse/repeated-heads",), text, constants)


FORMS = [*_forms(1, 128), *_forms(1, 512), *_forms(4, 128), _grouped(1, 256), _grouped(1, 1024), _grouped(128, 0)]
