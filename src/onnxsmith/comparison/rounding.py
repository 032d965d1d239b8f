"""How far apart two correct computations of one graph may be.

Two kernels sum in different orders, so their results differ by rounding. For a dot product of n terms the error is at
most n·u relative to the sum of magnitudes, and with high probability of the order of sqrt(n)·u, u being the unit
roundoff (N. Higham and T. Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41(5),
2019, theorem 3.1). Errors of layers in sequence add up in the same random fashion. So along the longest path to an
output, over its operations k, each of which sums n terms:

    tolerance = 8 · (sqrt(sum of u_k²) + sqrt(sum of a_k²·n_k))

where u_k is the roundoff of the coarsest dtype that operation k reads or makes and a_k that of its accumulator
(float32's for float16, bfloat16 and float8, whose kernels accumulate in float32). One Cast to float16 adds its own
rounding, and none to the float32 operations behind it. The factor 8 covers what the model leaves out: amplification
between layers and approximated exp, tanh and erf, which are good to a few units in the last place. The tolerance is
relative to the output's root mean square plus the element's own size (`metrics/max_rel.py`).

Interpolation computes coordinates: at position p of an axis of length L they are good to about 2·u·L of a step, as a
product and a sum of that size are rounded, and the value moves by that times the difference of two neighbours. So such
an operation has u_k = 2·u·L, with L the longest axis that it interpolates along. An axis whose length is not in the
file counts as 1024 in the tolerance; on one input no axis is taken to be longer than the longest of that run.

Where one of two models quantises and the other does not, that alone keeps them apart. A quantiser whose steps are s
wide errs by s/√12 in root mean square (uniform error; B. Widrow and I. Kollár, "Quantization Noise", 2008, chapter 5),
so relative to values of scale r by s/(r·√12). The errors of the quantisers on the way, weights included, add up in
squares to q², and 8·q comes on top. Without values r is taken to be an eighth of what the quantiser can hold.

One operator is not good to its result's last places: kernels compute Sigmoid as ½ plus an odd function (ONNX Runtime's
`MlasLogisticKernel`), so that its result is rounded as ½ is, however small it is. A Sigmoid that is an output, moved
about at most, may therefore differ by 8·u·½ whatever its scale.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from onnxsmith.comparison.quantisers import INTEGER_PRODUCTS, constant, is_constant, own_noise
from onnxsmith.comparison.terms import MOVING, UNKNOWN
from onnxsmith.comparison.terms import own as terms_of
from onnxsmith.problem import problem

FACTOR = 8.0
_UNIT: dict[ir.DataType, float] = {
    ir.DataType.DOUBLE: 2.0**-53,
    ir.DataType.COMPLEX128: 2.0**-53,
    ir.DataType.FLOAT: 2.0**-24,
    ir.DataType.COMPLEX64: 2.0**-24,
    ir.DataType.FLOAT16: 2.0**-11,
    ir.DataType.BFLOAT16: 2.0**-8,
    ir.DataType.FLOAT8E4M3FN: 2.0**-4,
    ir.DataType.FLOAT8E4M3FNUZ: 2.0**-4,
    ir.DataType.FLOAT8E5M2: 2.0**-3,
    ir.DataType.FLOAT8E5M2FNUZ: 2.0**-3,
    ir.DataType.FLOAT4E2M1: 2.0**-2,
}
_EXACT = MOVING | {
    "Abs", "And", "ArgMax", "ArgMin", "Cast", "Ceil", "Clip", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less",
    "LessOrEqual", "Max", "MaxPool", "Min", "Neg", "Not", "OneHot", "Or", "ReduceMax", "ReduceMin", "Relu", "Round",
    "ScatterElements", "ScatterND", "Sign", "TopK", "Trilu", "Where", "Xor",
}  # fmt: skip
"""Operators that choose, move or round rightly: of equal inputs every kernel makes equal bits."""
_QUANTISING = {"QuantizeLinear", "DynamicQuantizeLinear"}
_QUANTUM = 2.0**-9
"""Half a step of an 8-bit quantiser relative to its range: a value at the edge of two steps may go either way."""
_QUANTISING_INSIDE = {"DynamicQuantizeLSTM", "DynamicQuantizeMatMul"}


@dataclass(frozen=True)
class Rounding:
    """What led to one output: terms summed and operations on the longest path, the coarsest unit roundoff on it.
    `rounded` is the sum of u_k² over the operations, `summed` that of a_k²·n_k; made by `counted` where every operation
    has the same unit."""

    terms: int
    depth: int
    unit: float
    rounded: float
    summed: float
    floor: float = 0.0
    """Differences below this are rounding whatever the scale, in the output's units."""
    given: float | None = None
    """A tolerance that was asked for, in place of what follows from the rest."""
    noise: float = 0.0
    """What quantisers err by that the other side does not have, in root mean square relative to scale."""
    coordinates: float = 0.0
    """The share of `rounded` that interpolation has: no movement of inputs and weights shows it."""
    open: float = 0.0
    """The same of axes whose length is not in the file, for each length in squares."""
    free: float = 0.0
    """The share of `summed` that sums without weights have: inputs moved by an ulp each average out in them."""
    levels: int = 0
    """How many steps of a quantiser apart integers may be: a value at the edge of two may go either way."""

    @property
    def bounds(self) -> tuple[float, float]:
        """`tolerance` and `floor`, as `tensors.difference` takes them."""
        return self.tolerance, self.floor

    def unmoved(self, longest: int = UNKNOWN) -> float:
        """What rounding adds that is not seen when inputs and weights are moved by it, relative to scale, in a run
        whose `longest` axis is known. A sum of n terms errs by a random walk of its partial sums, whose mean is
        sqrt(n/6) roundoffs."""
        coordinates = self.coordinates + self.open * min(longest, UNKNOWN) ** 2
        return FACTOR * (math.sqrt(coordinates) + math.sqrt(self.free / 6) / 2)

    @property
    def tolerance(self) -> float:
        """The largest difference, relative to scale, that rounding explains, or the one that was asked for."""
        if self.given is not None:
            return self.given
        return FACTOR * (math.sqrt(self.rounded) + math.sqrt(self.summed) + self.noise)

    def __str__(self) -> str:
        if self.given is not None:
            return f"{self.given:.2g}, as it was asked for"
        floor = f"; or {self.floor:.2g} = 8·u·½, because Sigmoid is computed around ½" if self.floor else ""
        noise, steps = (" + q", f"; q = {self.noise:.2g} of quantisers") if self.noise else ("", "")
        return (
            f"{self.tolerance:.2g} = 8·(√Σu² + √Σa²n{noise}), √Σu² = {math.sqrt(self.rounded):.2g}, "
            f"√Σa²n = {math.sqrt(self.summed):.2g}: rounding of {self.depth} operations that sum {self.terms} terms, "
            f"the coarsest with u = {_power(self.unit)}{steps}{floor}"
        )


def _power(unit: float) -> str:
    return f"2^{round(math.log2(unit))}"


def counted(terms: int, depth: int, unit: float) -> Rounding:
    """The rounding of `depth` operations that sum `terms` terms, all in a dtype of one unit roundoff."""
    return Rounding(terms, depth, unit, depth * unit**2, terms * min(unit, _ACCUMULATOR) ** 2)


_ACCUMULATOR = 2.0**-24
_INPUT = counted(0, 0, 2.0**-53)


def asked(tolerance: float) -> Rounding:
    """The tolerance that somebody asks for, relative to scale.

    Raises:
        OnnxsmithError: `verify/tolerance` for one that is negative, infinite or no number.
    """
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise problem(
            "verify/tolerance",
            f"a tolerance of {tolerance:g} allows nothing, or everything",
            fix="give a part of an output's scale: --tolerance 0.01; or none",
        )
    return replace(counted(1, 1, 2.0**-24), given=tolerance)


def roundings(
    model: ir.Model,
    *,
    names: Collection[str] | None = None,
    cuts: Collection[str] = frozenset(),
    scales: Mapping[str, float] | None = None,
) -> dict[str, Rounding]:
    """The rounding of every graph output by name, or of the values `names`; at the values `cuts` a path begins anew,
    for both computations are given them. One pass over the nodes, subgraphs counted with their node.

    `scales` is given where the other side does not quantise what this model does: root mean squares of values, as far
    as they are known."""
    known: dict[ir.Value, Rounding] = {}
    found: dict[str, Rounding] = {}
    for node in model.graph:
        before = [_INPUT if value.name in cuts else known.get(value, _INPUT) for value in _reads(node)]
        is_exact = bool(cuts) and node.op_type in _EXACT and all(one.terms == 0 for one in before)
        is_exact = is_exact and not _widens(node, cuts)
        result = _INPUT if is_exact else _through(node, before, model)
        if scales is not None:
            result = replace(result, noise=_noise(node, before, scales))
        if cuts and _may_quantise_inside(node):
            result = replace(result, unit=max(result.unit, _QUANTUM), rounded=result.rounded + _QUANTUM**2)
        levels = 1 if node.op_type in _QUANTISING else 0
        for output in node.outputs:
            known[output] = result
            if names is not None and output.name in names:
                found[output.name or ""] = result if is_exact else replace(_stored(result, output), levels=levels)
    if names is not None:
        return found
    return {value.name or "": _stored(known.get(value, _INPUT), value) for value in model.graph.outputs}


def _widens(node: ir.Node, cuts: Collection[str]) -> bool:
    """Whether it casts floats that have been rounded to fewer digits, and that the other computation need not have."""
    read = node.inputs[0] if node.op_type == "Cast" else None
    if read is None or read.name in cuts or read.dtype is None or node.outputs[0].dtype is None:
        return False
    return _UNIT.get(read.dtype, 0.0) > _UNIT.get(node.outputs[0].dtype, 1.0)


def _reads(node: ir.Node) -> list[ir.Value]:
    return [value for value in node.inputs if value is not None]


def _stored(rounding: Rounding, value: ir.Value) -> Rounding:
    unit = _UNIT.get(value.dtype, 0.0) if value.dtype is not None else 0.0
    return replace(
        rounding,
        terms=max(rounding.terms, 1),
        depth=max(rounding.depth, 1),
        unit=max(rounding.unit, unit),
        rounded=max(rounding.rounded, unit**2),
        summed=max(rounding.summed, min(unit, _ACCUMULATOR) ** 2),
    )


def _through(node: ir.Node, before: list[Rounding], model: ir.Model) -> Rounding:
    terms, depth = terms_of(node, model)
    unit = max((_UNIT.get(v.dtype, 0.0) for v in (*node.outputs, *_reads(node)) if v.dtype is not None), default=0.0)
    if node.op_type in _QUANTISING | _QUANTISING_INSIDE:
        unit = max(unit, _QUANTUM)
    fixed, is_open = _axes_read_along(node)
    single = 2 * min(unit, _ACCUMULATOR)
    along = single * max(fixed, UNKNOWN if is_open else 0)
    step = max(unit, along)
    return Rounding(
        terms=max((r.terms for r in before), default=0) + terms,
        depth=max((r.depth for r in before), default=0) + depth,
        unit=max([unit, *(r.unit for r in before)]),
        rounded=max((r.rounded for r in before), default=0.0) + depth * step**2,
        summed=max((r.summed for r in before), default=0.0) + terms * min(unit, _ACCUMULATOR) ** 2,
        coordinates=max((r.coordinates for r in before), default=0.0) + depth * (single * fixed) ** 2,
        open=max((r.open for r in before), default=0.0) + (depth * single**2 if is_open else 0.0),
        free=max((r.free for r in before), default=0.0) + _free(node, terms) * min(unit, _ACCUMULATOR) ** 2,
        floor=_floor(node, unit, before),
    )


def _free(node: ir.Node, terms: int) -> int:
    """Terms that a node sums of values of which none is a weight."""
    return terms if terms > 1 and not any(map(is_constant, _reads(node)[1:])) else 0


def _axes_read_along(node: ir.Node) -> tuple[int, bool]:
    """The longest axis along which the node interpolates, as far as the file says how long, and whether there are axes
    of which it does not. What takes the nearest element computes no value from coordinates."""
    axes = _INTERPOLATED.get(node.op_type)
    mode = node.attributes.get("mode")
    if axes is None or node.domain or (mode.as_string() if mode else _MODES.get(node.op_type, "")) == "nearest":
        return 0, False
    read, made = (value.shape if value is not None else None for value in (node.inputs[0], node.outputs[0]))
    if read is None:
        return 0, True
    sizes = list(read)[axes]
    if node.op_type in _MODES and made is not None and len(made) == len(read):
        sizes = [size for size, new in zip(read, made, strict=True) if not _is_same(size, new)]
    known = [size for size in sizes if isinstance(size, int)]
    return max(known, default=0), len(known) < len(sizes)


def _is_same(size: int | ir.SymbolicDim, other: int | ir.SymbolicDim) -> bool:
    return size == other and (isinstance(size, int) or size.value is not None)


def quantises(model: ir.Model) -> bool:
    """Whether some nodes of the graph compute in a few steps."""
    kinds = _QUANTISING | INTEGER_PRODUCTS | {"DequantizeLinear"}
    return any(node.op_type in kinds for node in model.graph)


def _noise(node: ir.Node, before: list[Rounding], scales: Mapping[str, float]) -> float:
    """The larger of what comes along the ways from the inputs, and in squares the weights' and the node's own."""
    ways = zip(_reads(node), before, strict=True)
    moving = [one.noise for value, one in ways if not is_constant(value)]
    fixed = [one.noise for value, one in zip(_reads(node), before, strict=True) if is_constant(value)]
    return math.hypot(max(moving, default=0.0), *fixed, own_noise(node, scales))


def _may_quantise_inside(node: ir.Node) -> bool:
    """Whether it multiplies floats with a weight of few steps: then it may quantise the floats as well, as ONNX
    Runtime's MatMulNBits does (attribute `accuracy_level`), which the pair of nodes is fused into."""
    makers = [value.producer() for value in _reads(node)]
    few = [maker is not None and maker.op_type == "DequantizeLinear" for maker in makers]
    weights = [
        maker is not None and few[place] and constant(maker, 0) is not None for place, maker in enumerate(makers)
    ]
    return node.op_type in ("MatMul", "Gemm") and any(weights) and not all(few[:2])


def _floor(node: ir.Node, unit: float, before: list[Rounding]) -> float:
    if node.op_type == "Sigmoid":
        return FACTOR * unit / 2
    return max((r.floor for r in before), default=0.0) if node.op_type in MOVING else 0.0


_INTERPOLATED: dict[str, slice] = {
    "Resize": slice(None), "Upsample": slice(None), "GridSample": slice(2, None), "RoiAlign": slice(2, None),
    "DeformConv": slice(2, None),
}  # fmt: skip
"""Operators that compute coordinates, and the axes of their first input that these run along."""
_MODES = {"Resize": "nearest", "Upsample": "nearest"}
"""Those that resize: axes that they leave as they are count for nothing. With the mode that they have by default."""
