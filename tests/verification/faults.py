"""Planted faults: a right model and a wrong one as ONNX text, and the torch function that the right one stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import torch
from torch import nn
from torch.nn import functional

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.signature import signature

Array = npt.NDArray[Any]
_RNG = np.random.default_rng(7)
_SHAPES = {"W": (4, 4), "V": (4, 4), "B": (4,), "G": (4,), "K": (3, 2, 3, 3), "S": (4, 4)}
_SCALES = {"S": 0.02, "K": 0.3}
WEIGHTS: dict[str, Array] = {
    name: (_RNG.standard_normal(shape) * _SCALES.get(name, 0.7)).astype(np.float32) for name, shape in _SHAPES.items()
}
"""The weights, by the names that the texts use."""
_ROWS, _IMAGES, _MAPS = "float[n,4] x", "float[n,2,6,6] x", "float[n,4,4] x"
_DTYPES = {"float": torch.float32, "float16": torch.float16, "int64": torch.int64, "bool": torch.bool}


class Net(nn.Module):
    """A torch module that computes a function of weights and inputs."""

    def __init__(self, function: Callable[..., torch.Tensor], weights: Mapping[str, Array]) -> None:
        super().__init__()
        self.function = function
        for name, value in weights.items():
            self.register_parameter(name, nn.Parameter(torch.tensor(value), requires_grad=False))

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(self, *inputs)


@dataclass(frozen=True)
class Fault:
    """`nodes` are those of the right model; `wrong` is what stands in the wrong one in the place of `right`. `spoil`
    changes weights. `function` computes the right model in torch."""

    nodes: str
    function: Callable[..., torch.Tensor]
    right: str = ""
    wrong: str = ""
    inputs: str = _ROWS
    output: str = "float[n,k] y"
    spoil: Mapping[str, Callable[[Array], Array]] = field(default_factory=dict)

    @property
    def dtype(self) -> str:
        return "float16" if "float16" in self.inputs else "float"

    def weights(self, *, wrong: bool = False) -> dict[str, Array]:
        """The weights that the nodes read."""
        used = [name for name in WEIGHTS if re.search(rf"\b{name}\b", self.nodes)]
        kind = np.float16 if self.dtype == "float16" else np.float32
        changed = {name: self.spoil[name] if wrong and name in self.spoil else np.copy for name in used}
        return {name: changed[name](WEIGHTS[name]).astype(kind) for name in used}

    def model(self, *, wrong: bool = False, held: Mapping[str, Array] | None = None) -> ir.Model:
        """The right model, or the wrong one, with its own weights or those `held`."""
        assert not self.right or self.right in self.nodes
        nodes = self.nodes.replace(self.right, self.wrong) if wrong and self.right else self.nodes
        held = self.weights(wrong=wrong) if held is None else held
        ports = [f"{self.dtype}[{','.join(map(str, value.shape))}] {name}" for name, value in held.items()]
        made = from_text(
            f'<ir_version: 10, opset_import: ["": 20]> g ({", ".join([self.inputs, *ports])}) '
            f"=> ({self.output}) {{ {nodes} }}"
        )
        for value in [one for one in made.graph.inputs if one.name in held]:
            value.const_value = ir.tensor(held[value.name or ""], name=value.name)
            made.graph.inputs.remove(value)
            made.graph.register_initializer(value)
        return made

    def module(self) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        """The module that the right model stands for, and an example."""
        rng = torch.Generator().manual_seed(3)
        args: list[torch.Tensor] = []
        for port in signature(self.model()).inputs:
            shape = [size if isinstance(size, int) else 3 for size in port.shape or ()]
            drawn = torch.randn(shape, generator=rng)
            dtype = _DTYPES[port.dtype]
            args.append(drawn > 0 if dtype is torch.bool else (drawn * 3 if dtype is torch.int64 else drawn).to(dtype))
        return Net(self.function, self.weights()), tuple(args)


def _element(value: Array) -> Array:
    changed = value.copy()
    changed.flat[5 % changed.size] *= 1.1
    return changed


def _one_column(value: Array) -> Array:
    return np.concatenate([-value[:, :1], value[:, 1:]], axis=1)


def _image(body: str, function: Callable[..., torch.Tensor], right: str, wrong: str) -> Fault:
    return Fault(body, function, right, wrong, inputs=_IMAGES, output="float[n,c,h,w] y")


def _maps(body: str, function: Callable[..., torch.Tensor], right: str, wrong: str) -> Fault:
    return Fault(body, function, right, wrong, inputs=_MAPS, output="float[n,a,b] y")


def _rows(nodes: str, function: Callable[..., torch.Tensor], right: str = "", wrong: str = "", **spoil: Any) -> Fault:
    return Fault(nodes, function, right, wrong, spoil=spoil)


def _constant(value: str) -> str:
    return f"c = Constant<value_float = {value}>()"


def _loop(w: Any, x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = torch.tanh(x + w.B)
    return x


def _branch(w: Any, c: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return x * 2.0 if bool(c) else x @ w.W


_BRANCHES = """y = If(c) <then_branch = a () => (float[n,4] p) { t = Constant<value_float = 2.0>() p = Mul(x, t) },
    else_branch = b () => (float[n,4] q) { q = MatMul(x, W) }>"""
_BODY = """m = Constant<value_int = 3>() k = Constant<value = bool {1}>()
    y = Loop(m, k, x) <body = b (int64 i, bool go, float[n,4] s) => (bool on, float[n,4] r)
    { on = Identity(go) a = Add(s, B) r = Tanh(a) }>"""
_ONE_SIZE = """l = Shape<end = 1>(x) o = Constant<value_ints = [5]>() e = Equal(l, o) c = Constant<value_float = 1.0>()
    p = MatMul(x, W) t = Cast<to = 1>(e) u = Mul(t, c) z = Constant<value_float = 0.0>() v = Mul(u, z) y = Add(p, v)"""

FAULTS: dict[str, Fault] = {
    # Weights
    "weight-one-percent": _rows("y = MatMul(x, W)", lambda w, x: x @ w.W, W=lambda v: v * 1.01),
    "weight-sign-of-a-column": _rows("y = MatMul(x, W)", lambda w, x: x @ w.W, W=_one_column),
    "weight-one-element": _rows("y = MatMul(x, W)", lambda w, x: x @ w.W, W=_element),
    "weight-transposed": _rows("y = MatMul(x, W)", lambda w, x: x @ w.W, W=np.transpose),
    "weight-rows-in-other-order": _rows("y = MatMul(x, W)", lambda w, x: x @ w.W, W=np.flipud),
    "weight-zero": _rows("a = MatMul(x, W) y = Add(a, B)", lambda w, x: x @ w.W + w.B, W=np.zeros_like),
    "weight-of-another-layer": _rows(
        "a = MatMul(x, W) b = Relu(a) y = MatMul(b, V)", lambda w, x: torch.relu(x @ w.W) @ w.V, "b, V", "b, W"
    ),
    "first-of-two-weights": _rows(
        "a = MatMul(x, W) b = Relu(a) y = MatMul(b, V)", lambda w, x: torch.relu(x @ w.W) @ w.V, W=_element
    ),
    "small-weight": _rows(
        "a = MatMul(x, W) b = MatMul(x, S) y = Add(a, b)", lambda w, x: x @ w.W + x @ w.S, S=lambda v: v * 1.05
    ),
    "bias-sign": _rows("a = MatMul(x, W) y = Add(a, B)", lambda w, x: x @ w.W + w.B, B=np.negative),
    "bias-of-the-next-channel": _rows(
        "a = MatMul(x, W) y = Add(a, B)", lambda w, x: x @ w.W + w.B, B=lambda v: np.roll(v, 1)
    ),
    "bias-dropped": _rows(
        "a = MatMul(x, W) y = Add(a, B)", lambda w, x: x @ w.W + w.B, "y = Add(a, B)", "y = Identity(a)"
    ),
    "residual-dropped": _rows("a = MatMul(x, W) y = Add(a, x)", lambda w, x: x @ w.W + x, "Add(a, x)", "Identity(a)"),
    # Behind nodes that hide
    "before-a-saturating-node": _rows(
        "a = MatMul(x, W) b = Tanh(a) y = MatMul(b, V)",
        lambda w, x: torch.tanh(x @ w.W) @ w.V,
        W=lambda v: v * 1.01,
    ),
    "before-a-relu": _rows("a = Add(x, B) y = Relu(a)", lambda w, x: torch.relu(x + w.B), B=_element),
    "before-a-clip": _rows(
        "a = MatMul(x, W) l = Constant<value_float = 0.0>() h = Constant<value_float = 1.0>() y = Clip(a, l, h)",
        lambda w, x: (x @ w.W).clamp(0, 1),
        W=_element,
    ),
    "before-a-floor": _rows("a = MatMul(x, W) y = Floor(a)", lambda w, x: torch.floor(x @ w.W), W=np.transpose),
    "before-an-argmax": Fault(
        "a = MatMul(x, W) y = ArgMax<axis = 1, keepdims = 0>(a)",
        lambda w, x: (x @ w.W).argmax(1),
        output="int64[n] y",
        spoil={"W": np.negative},
    ),
    # Operators, operands and attributes
    "sign": _rows("y = Sub(x, B)", lambda w, x: x - w.B, "Sub", "Add"),
    "swapped-difference": _rows("y = Sub(x, B)", lambda w, x: x - w.B, "x, B", "B, x"),
    "swapped-quotient": _rows("a = Exp(x) y = Div(a, G)", lambda w, x: torch.exp(x) / w.G, "a, G", "G, a"),
    "swapped-choice": _rows(
        "z = Constant<value_float = 0.5>() c = Greater(x, z) y = Where(c, x, B)",
        lambda w, x: torch.where(x > 0.5, x, w.B),
        "c, x, B",
        "c, B, x",
    ),
    "other-activation": _rows("y = Relu(x)", lambda w, x: torch.relu(x), "Relu", "LeakyRelu<alpha = 0.001>"),
    "other-slope": _rows(
        "y = LeakyRelu<alpha = 0.01>(x)", lambda w, x: functional.leaky_relu(x, 0.01), "alpha = 0.01", "alpha = 0.02"
    ),
    "gelu-by-tanh": _rows("y = Gelu(x)", lambda w, x: functional.gelu(x), "Gelu", 'Gelu<approximate = "tanh">'),
    "factor": _rows(f"{_constant('0.125')} y = Mul(x, c)", lambda w, x: x * 0.125, "0.125", "0.25"),
    "factor-one-percent": _rows(f"{_constant('0.125')} y = Mul(x, c)", lambda w, x: x * 0.125, "0.125", "0.12625"),
    "exponent": _rows(
        "a = Abs(x) c = Constant<value_float = 2.0>() y = Pow(a, c)", lambda w, x: x.abs() ** 2, "2.0", "2.01"
    ),
    "limit": _rows(
        "l = Constant<value_float = 0.0>() h = Constant<value_float = 0.6>() y = Clip(x, l, h)",
        lambda w, x: x.clamp(0, 0.6),
        "0.6",
        "0.61",
    ),
    "epsilon-of-a-layer": _rows(
        "y = LayerNormalization<axis = -1, epsilon = 0.00001>(x, G, B)",
        lambda w, x: functional.layer_norm(x, (4,), w.G, w.B),
        "0.00001",
        "0.001",
    ),
    "rounding": _rows("y = Round(x)", lambda w, x: torch.round(x), "Round", "Floor"),
    "axis-of-softmax": _maps("y = Softmax<axis = 2>(x)", lambda w, x: x.softmax(2), "axis = 2", "axis = 1"),
    "axis-of-a-sum": _maps(
        "k = Constant<value_ints = [2]>() y = ReduceSum<keepdims = 1>(x, k)",
        lambda w, x: x.sum(2, keepdim=True).expand(-1, -1, 1),
        "[2]",
        "[1]",
    ),
    "order-of-axes": _maps(
        "y = Transpose<perm = [0, 2, 1]>(x)", lambda w, x: x.transpose(1, 2) * 1.0, "[0, 2, 1]", "[0, 1, 2]"
    ),
    "axis-of-a-running-sum": _maps(
        "k = Constant<value = int64 {1}>() y = CumSum(x, k)", lambda w, x: x.cumsum(1), "int64 {1}", "int64 {2}"
    ),
    "diagonal": _maps("y = Trilu<upper = 0>(x)", lambda w, x: x.tril(), "Trilu<upper = 0>(x)", "Trilu<upper = 1>(x)"),
    "row-read": _maps(
        "k = Constant<value_ints = [2, 0, 3]>() y = Gather<axis = 1>(x, k)",
        lambda w, x: x[:, [2, 0, 3]],
        "[2, 0, 3]",
        "[2, 1, 3]",
    ),
    "padding": _image(
        "y = Conv<pads = [1, 1, 1, 1]>(x, K)",
        lambda w, x: functional.conv2d(x, w.K, padding=1),
        "[1, 1, 1, 1]",
        "[0, 0, 2, 2]",
    ),
    "padded-elements-counted": _image(
        "y = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1>(x)",
        lambda w, x: functional.avg_pool2d(x, 3, 1, 1),
        "count_include_pad = 1",
        "count_include_pad = 0",
    ),
    "kernel-turned": Fault(
        "y = Conv<pads = [1, 1, 1, 1]>(x, K)",
        lambda w, x: functional.conv2d(x, w.K, padding=1),
        inputs=_IMAGES,
        output="float[n,c,h,w] y",
        spoil={"K": lambda v: v.swapaxes(2, 3)},
    ),
    # Branches, bodies, sizes and dtypes
    "then-branch": Fault(_BRANCHES, _branch, "value_float = 2.0", "value_float = 2.02", inputs=f"bool c, {_ROWS}"),
    "else-branch": Fault(_BRANCHES, _branch, inputs=f"bool c, {_ROWS}", spoil={"W": _element}),
    "loop-body": _rows(_BODY, _loop, "Add(s, B)", "Sub(s, B)"),
    "loop-count": _rows(_BODY, _loop, "value_int = 3", "value_int = 4"),
    "float16-weight": Fault(
        "y = MatMul(x, W)",
        lambda w, x: x @ w.W,
        inputs="float16[n,4] x",
        output="float16[n,4] y",
        spoil={"W": lambda v: v * 1.05},
    ),
    "float16-sign": Fault(
        "a = MatMul(x, W) y = Sub(a, B)",
        lambda w, x: x @ w.W - w.B,
        "Sub",
        "Add",
        inputs="float16[n,4] x",
        output="float16[n,4] y",
    ),
    "at-one-size": _rows(
        _ONE_SIZE.replace("[5]", "[1]"), lambda w, x: x @ w.W, "z = Constant<value_float = 0.0>",
        "z = Constant<value_float = 0.5>"
    ),
    "quotient-of-integers": Fault(
        "c = Constant<value_int = 3>() y = Mod(x, c)",
        lambda w, x: x % 3,
        "Mod(x, c)",
        "Mod<fmod = 1>(x, c)",
        inputs="int64[n,4] x",
        output="int64[n,4] y",
    ),
    "edge-of-a-comparison": Fault(
        "c = Constant<value_int = 2>() y = Less(x, c)",
        lambda w, x: x < 2,
        "Less(",
        "LessOrEqual(",
        inputs="int64[n,4] x",
        output="bool[n,4] y",
    ),
    "before-a-saturated-node": _rows(
        "a = MatMul(x, W) c = Constant<value_float = 1000.0>() b = Mul(a, c) y = Sigmoid(b)",
        lambda w, x: torch.sigmoid((x @ w.W) * 1000.0),
        W=lambda v: v * 1.02,
    ),
    "at-the-size-of-the-example": _rows(
        _ONE_SIZE.replace("[5]", "[3]"), lambda w, x: x @ w.W, "z = Constant<value_float = 0.0>",
        "z = Constant<value_float = 0.5>"
    ),
    "float16-deep": Fault(
        "a = MatMul(x, W) b = Tanh(a) c = MatMul(b, V) d = Tanh(c) e = MatMul(d, W) f = Tanh(e) y = MatMul(f, V)",
        lambda w, x: torch.tanh(torch.tanh(torch.tanh(x @ w.W) @ w.V) @ w.W) @ w.V,
        inputs="float16[n,4] x",
        output="float16[n,4] y",
        spoil={"V": _element},
    ),
    "beyond-a-threshold": _rows(
        f"{_constant('1.0')} d = Greater(x, c) y = Where(d, B, x)",
        lambda w, x: torch.where(x > 1.0, w.B, x),
        "1.0",
        "1.1",
    ),
    "beyond-a-large-threshold": _rows(
        f"{_constant('40.0')} d = Greater(x, c) y = Where(d, B, x)",
        lambda w, x: torch.where(x > 40.0, w.B, x),
        "40.0",
        "40.8",
    ),
}  # fmt: skip

_SLIGHT = "c = Constant<value_float = 0.001>() s = Mul(a, c)"

HIDDEN: dict[str, Fault] = {
    "in-slight-logits": _rows(
        f"a = MatMul(x, W) {_SLIGHT} t = Tanh(s) d = Mul(t, c) e = Mul(d, c) y = Softmax(e)",
        lambda w, x: (torch.tanh((x @ w.W) * 0.001) * 0.001 * 0.001).softmax(-1),
        W=_one_column,
    ),
    "in-the-first-of-slight-layers": _rows(
        f"a = MatMul(x, W) {_SLIGHT} t = Tanh(s) d = Mul(t, c) u = MatMul(d, V) y = Softmax(u)",
        lambda w, x: ((torch.tanh((x @ w.W) * 0.001) * 0.001) @ w.V).softmax(-1),
        W=_element,
    ),
    "in-the-lesser-of-two": _rows(
        f"a = MatMul(x, W) {_constant('1000.0')} y = Max(a, c)",
        lambda w, x: torch.maximum(x @ w.W, torch.tensor(1000.0)),
        W=np.transpose,
    ),
    "in-slight-float16-logits": Fault(
        "a = MatMul(x, W) k = Constant<value_float = 0.001>() c = Cast<to = 10>(k) s = Mul(a, c) y = Softmax(s)",
        lambda w, x: ((x @ w.W) * 0.001).softmax(-1),
        inputs="float16[n,4] x",
        output="float16[n,4] y",
        spoil={"W": _one_column},
    ),
}
"""Faults in weights that the outputs hardly show, or do not show at all."""
