"""Bounds the difference of two correct computations of one graph.

Two kernels sum in different orders, so their results differ by rounding. For a dot product of n terms, the error
relative to the sum of magnitudes is at most n·u, where u is the unit roundoff. With high probability it is of the order
of sqrt(n)·u (N. Higham and T. Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput.
41(5), 2019, theorem 3.1). Errors of layers in sequence add up in the same random way. So the tolerance of an output is
a sum over the operations k of the longest path to the output, each of which sums n terms:

    tolerance = 8 · (sqrt(sum of u_k²) + sqrt(sum of a_k²·n_k))

where u_k is the roundoff of the coarsest dtype that operation k reads or writes, and a_k is the roundoff of its
accumulator. Kernels of float16, bfloat16 and float8 accumulate in float32. A Cast to float16 adds its own rounding, and
none to the float32 operations after it. The factor 8 covers two things that the formula leaves out: amplification
between layers, and approximations of exp, tanh and erf, which err by a few units in the last place. The tolerance is
relative to the output's root mean square plus the element's own size (`verification/metrics/distances.py`).

A sum whose length is not in the file counts as 1024 terms. In one run its length is known, if shape inference derives
it from the sizes of the inputs: a mean over a volume of 32 x 32 x 32 sums 32768 terms. If the known length gives a
larger tolerance, the larger tolerance applies to this run.

Interpolation computes coordinates. At each position of an axis of length L, a product and a sum of about that size are
rounded, so the coordinate's error is about 2·u·L of a step. The value moves by this error times the difference of two
neighbours. So such an operation has u_k = 2·u·L, where L is the longest axis that it interpolates along. An axis whose
length is not in the file counts as 1024 in the tolerance; in one run, no axis counts as longer than the longest axis of
that run. A Fourier transform of a length L that is no power of 2 has the same u_k, because of its angles
(`rounding_terms.py`).

If only one of the two models quantises, the outputs differ by the quantisation error. A quantiser with steps of width s
errs by s/√12 in root mean square (uniform error; B. Widrow and I. Kollár, "Quantization Noise", 2008, chapter 5), or
s/(r·√12) relative to values of scale r. The squared errors of the quantisers on the path, weights included, add up to
q², and the tolerance grows by 8·q. If the values are unknown, r is assumed to be an eighth of the quantiser's range.

Sigmoid is less accurate for small results. Kernels compute it as ½ plus an odd function (ONNX Runtime's
`MlasLogisticKernel`), so even a small result is rounded like ½. So the output of a Sigmoid may differ by 8·u·½ at any
scale, also if it is moved or reshaped afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.verification import rounding_terms
from onnxsmith.verification.rounding_terms import (
    INTEGER_PRODUCTS,
    MOVING,
    UNKNOWN,
    constant,
    is_constant,
    noise_of_bits,
    own_noise,
)
from onnxsmith.verification.rounding_terms import own as terms_of

FACTOR = 8.0
"""Covers amplification between layers and approximated functions, as the module's docstring explains. A choice."""
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
"""Maps dtypes to unit roundoffs: 2 to the power of minus the bits of significand (IEEE 754, OCP 8-bit floating
point)."""
_EXACT = MOVING | {
    "Abs", "And", "ArgMax", "ArgMin", "Cast", "Ceil", "Clip", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less",
    "LessOrEqual", "Max", "MaxPool", "Min", "Neg", "Not", "OneHot", "Or", "ReduceMax", "ReduceMin", "Relu", "Round",
    "ScatterElements", "ScatterND", "Sign", "TopK", "Trilu", "Where", "Xor",
}  # fmt: skip
"""Lists the operators that only choose or move elements, or round correctly: on equal inputs all kernels give equal
bits."""
_QUANTISING = {"QuantizeLinear", "DynamicQuantizeLinear"}
_QUANTUM = 2.0**-9
"""Holds half a step of an 8-bit quantiser, relative to its range: a value between two steps may be rounded either
way."""
_INTEGERS = 4
"""Names the accuracy level at which MatMulNBits computes with integers of 8 bits."""
_QUANTISING_INSIDE = {"DynamicQuantizeLSTM", "DynamicQuantizeMatMul"}


@dataclass(frozen=True)
class Rounding:
    """Describes the rounding of the operations that lead to one output: terms summed and operations on the longest
    path, and the coarsest unit roundoff on it. `rounded` is the sum of u_k² over the operations, `summed` the sum of
    a_k²·n_k. The function `counted` makes a Rounding whose operations all have one unit."""

    terms: int
    depth: int
    unit: float
    rounded: float
    summed: float
    floor: float = 0.0
    """Limits the differences that are rounding at any scale, in the output's units."""
    given: float | None = None
    """Holds the tolerance that the user asked for, in place of the formula."""
    noise: float = 0.0
    """Holds the quantisation error that only this side has, in root mean square relative to scale."""
    coordinates: float = 0.0
    """Holds the part of `rounded` that interpolation adds. Moving inputs and weights does not show this part."""
    open: float = 0.0
    """Holds the part of `rounded` for axes whose length is not in the file, per squared length."""
    free: float = 0.0
    """Holds the part of `summed` from sums without weights: input movements of an ulp each average out in such sums."""
    steps: float = 0.0
    """Holds the sum of u_k² over the quantisers only, with half a step as u_k, relative to scale."""
    levels: int = 0
    """Limits the quantiser steps by which integers may differ: a value between two steps may be rounded either way."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Returns `tolerance` and `floor`, as `tensors.difference` takes them."""
        return self.tolerance, self.floor

    def unmoved(self, longest: int = UNKNOWN) -> float:
        """Returns the rounding that moved inputs and weights do not show, relative to scale, in a run whose longest
        axis is `longest`. The partial sums of n terms err in a random walk, so the mean error of the sum is sqrt(n/6)
        roundoffs."""
        coordinates = self.coordinates + self.open * min(longest, UNKNOWN) ** 2
        return FACTOR * (math.sqrt(coordinates) + math.sqrt(self.free / 6) / 2)

    @property
    def stepped(self) -> float:
        """Returns the root mean square, relative to scale, of the rounding that moves every quantised value by half a
        step. Moving inputs and weights shows only some of these steps: the integers of a weight are not moved."""
        return math.sqrt(self.steps)

    @property
    def tolerance(self) -> float:
        """Returns the largest difference, relative to scale, that rounding explains, or the tolerance that the user
        asked for."""
        if self.given is not None:
            return self.given
        return FACTOR * (math.sqrt(self.rounded) + math.sqrt(self.summed) + self.noise)

    def __str__(self) -> str:
        if self.given is not None:
            return f"{self.given:.2g}, as requested"
        floor = f"; or {self.floor:.2g} = 8·u·½, because Sigmoid is computed around ½" if self.floor else ""
        noise, steps = (" + q", f"; q = {self.noise:.2g} is the noise of quantisers") if self.noise else ("", "")
        return (
            f"{self.tolerance:.2g} = 8·(√Σu² + √Σa²n{noise}), √Σu² = {math.sqrt(self.rounded):.2g}, "
            f"√Σa²n = {math.sqrt(self.summed):.2g}: rounding of {self.depth} operations that sum {self.terms} terms, "
            f"the coarsest with u = {_power(self.unit)}{steps}{floor}"
        )


def _power(unit: float) -> str:
    return f"2^{round(math.log2(unit))}"


def counted(terms: int, depth: int, unit: float) -> Rounding:
    """Returns the Rounding of `depth` operations that sum `terms` terms, all with one unit roundoff."""
    return Rounding(terms, depth, unit, depth * unit**2, terms * min(unit, _ACCUMULATOR) ** 2)


_ACCUMULATOR = 2.0**-24
"""Holds the unit roundoff of the accumulator: float32, in which kernels sum narrower dtypes."""
_INPUT = counted(0, 0, 2.0**-53)


_OF_A_MODULE = 8
"""The operations that count for a module without a graph. A choice, with a sum of `UNKNOWN` terms: 1.5e-5 in float32.
Two forms of one network differ by 1e-7 to 1e-5, and a weight that is off by 1% moves an output by more."""


def uncounted(interface: Signature) -> dict[str, Rounding]:
    """Returns a tolerance for each float output of a model whose operations are not known."""
    units = {port.name: _UNIT.get(ir.DataType[port.dtype.upper()], 0.0) for port in interface.outputs if _known(port)}
    return {name: counted(UNKNOWN, _OF_A_MODULE, unit) for name, unit in units.items() if unit}


def _known(port: Port) -> bool:
    return port.dtype.upper() in ir.DataType.__members__


def asked(tolerance: float) -> Rounding:
    """Returns the tolerance that the user asks for, relative to scale.

    Raises:
        OnnxsmithError: `verify/tolerance` if it is negative, infinite or NaN.
    """
    refuse_unusable(tolerance)
    return replace(counted(1, 1, 2.0**-24), given=tolerance)


def is_usable(tolerance: float) -> bool:
    """Whether a tolerance can decide anything: with NaN and infinity every difference passes."""
    return math.isfinite(tolerance) and tolerance >= 0


def refuse_unusable(tolerance: float) -> None:
    """Raises if a tolerance cannot decide anything.

    Raises:
        OnnxsmithError: `verify/tolerance` if it is negative, infinite or NaN.
    """
    if not is_usable(tolerance):
        raise problem(
            "verify/tolerance",
            f"a tolerance of {tolerance:g} is not usable",
            fix="give a fraction of an output's scale: --tolerance 0.01; or remove --tolerance",
        )


def roundings(
    model: ir.Model,
    *,
    names: Collection[str] | None = None,
    cuts: Collection[str] = frozenset(),
    scales: Mapping[str, float] | None = None,
    inside: bool = False,
    fuses: bool = True,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Rounding]:
    """Returns the Rounding of every graph output by name, or of the values `names`. Paths begin anew at the values
    `cuts`, because both computations get these values. The function takes one pass over the nodes that they need; a
    subgraph counts with its node.

    Pass `scales`, the known root mean squares of values, if only this model quantises them. With `inside`, products of
    floats with a quantised weight may quantise the floats; see `quantises_inside`. With `cuts`, such a product counts
    the steps of that quantiser, unless the runtime does not fuse nodes (`fuses`). `sizes` are the sizes of symbolic
    dimensions in one run.
    """
    known: dict[ir.Value, Rounding] = {}
    found: dict[str, Rounding] = {}
    for node in model.graph if names is None else _before(model, names, cuts):
        before = [_INPUT if value.name in cuts else known.get(value, _INPUT) for value in _reads(node)]
        is_exact = bool(cuts) and node.op_type in _EXACT and all(one.terms == 0 for one in before)
        is_exact = is_exact and not _widens(node, cuts)
        result = _INPUT if is_exact else _through(node, before, model, sizes)
        if scales is not None:
            result = replace(result, noise=_noise(node, before, scales))
        if inside:
            own = noise_of_bits(8) if _may_quantise_inside(node) else 0.0
            result = replace(result, noise=math.hypot(max((one.noise for one in before), default=0.0), own))
        if cuts and fuses and _may_quantise_inside(node):
            result = replace(result, unit=max(result.unit, _QUANTUM), rounded=result.rounded + _QUANTUM**2)
        levels = 1 if node.op_type in _QUANTISING else 0
        for output in node.outputs:
            known[output] = result
            if names is not None and output.name in names:
                found[output.name or ""] = result if is_exact else replace(_stored(result, output), levels=levels)
    if names is not None:
        return found
    return {value.name or "": _stored(known.get(value, _INPUT), value) for value in model.graph.outputs}


def _before(model: ir.Model, names: Collection[str], cuts: Collection[str]) -> list[ir.Node]:
    """Returns the nodes of the graph that compute the values `names` from `cuts`, in order."""
    queue = [node for node in model.graph if any(output.name in names for output in node.outputs)]
    needed = set(queue)
    while queue:
        for value in _reads(queue.pop()):
            made = value.producer()
            if made is not None and made not in needed and value.name not in cuts:
                needed.add(made)
                queue.append(made)
    return [node for node in model.graph if node in needed]


def _widens(node: ir.Node, cuts: Collection[str]) -> bool:
    """Whether the node casts computed floats to a dtype with more digits. The other computation may have these digits
    already before the node."""
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


def _through(
    node: ir.Node, before: list[Rounding], model: ir.Model, sizes: Mapping[str, int] | None = None
) -> Rounding:
    terms, depth = terms_of(node, model, sizes)
    unit = max((_UNIT.get(v.dtype, 0.0) for v in (*node.outputs, *_reads(node)) if v.dtype is not None), default=0.0)
    if node.op_type in _QUANTISING | _QUANTISING_INSIDE:
        unit = max(unit, _QUANTUM)
    fixed, is_open = _axes_read_along(node, sizes)
    single = 2 * min(unit, _ACCUMULATOR)
    # Coordinates are computed in float32; an axis of unknown length counts as UNKNOWN, see the module's docstring.
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
        steps=max((r.steps for r in before), default=0.0) + (_QUANTUM**2 if node.op_type in _QUANTISING else 0.0),
    )


def _free(node: ir.Node, terms: int) -> int:
    """Returns the number of terms that a node sums, if none of the node's operands is a weight; else 0."""
    return terms if terms > 1 and not any(map(is_constant, _reads(node)[1:])) else 0


def _axes_read_along(node: ir.Node, run: Mapping[str, int] | None) -> tuple[int, bool]:
    """Returns the longest known axis along which the node interpolates or computes a Fourier transform. Also returns
    whether the node has such axes of unknown length. In mode "nearest" a node copies elements, so its coordinates add
    no rounding."""
    axes = _INTERPOLATED.get(node.op_type)
    if axes is None:
        return rounding_terms.fourier_length(node, run)
    mode = node.attributes.get("mode")
    if node.domain or (mode.as_string() if mode else _MODES.get(node.op_type, "")) == "nearest":
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
    """Whether a node of the graph quantises or computes on quantised values."""
    kinds = _QUANTISING | INTEGER_PRODUCTS | {"DequantizeLinear"}
    return any(node.op_type in kinds for node in model.graph)


def leaves_activations_open(model: ir.Model) -> bool:
    """Whether a node of the graph lets the runtime quantise activations: MatMulNBits with accuracy level 4, the least
    accuracy (onnxruntime, ContribOperators.md)."""
    return any(
        node.op_type == "MatMulNBits" and node.attributes.get_int("accuracy_level", 0) == _INTEGERS
        for node in walk.nodes(model.graph)
    )


def quantises_values(model: ir.Model) -> bool:
    """Whether a node of the graph rounds floats to steps. Such nodes are quantisers and Round, for example in latents
    of 8 bits."""
    return any(node.op_type in _QUANTISING | {"Round"} for node in model.graph)


def quantises_inside(model: ir.Model) -> bool:
    """Whether a runtime may quantise floats that the graph itself does not quantise."""
    return any(_may_quantise_inside(node) for node in model.graph)


def _noise(node: ir.Node, before: list[Rounding], scales: Mapping[str, float]) -> float:
    """Returns the larger error of the paths from the inputs, combined in squares with the error of the weights and the
    node's own error."""
    ways = zip(_reads(node), before, strict=True)
    moving = [one.noise for value, one in ways if not is_constant(value)]
    fixed = [one.noise for value, one in zip(_reads(node), before, strict=True) if is_constant(value)]
    return math.hypot(max(moving, default=0.0), *fixed, own_noise(node, scales))


def _may_quantise_inside(node: ir.Node) -> bool:
    """Whether the node multiplies floats with a quantised weight. ONNX Runtime fuses the pair of nodes into
    MatMulNBits, which may quantise the floats too (attribute `accuracy_level`)."""
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
"""Maps operators that compute coordinates to the axes of their first input along which they interpolate."""
_MODES = {"Resize": "nearest", "Upsample": "nearest"}
"""Maps operators that resize to their default mode. Axes that keep their size do not count for these operators."""
