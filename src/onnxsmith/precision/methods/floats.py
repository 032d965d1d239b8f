"""Makes weights and computations 16-bit floats."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

import ml_dtypes
import numpy as np
import onnx_ir as ir

from onnxsmith.base.report.parts.quantisation import LeftAlone
from onnxsmith.base.words import first_few, several
from onnxsmith.graph.structure import walk
from onnxsmith.precision.forms.base import Form
from onnxsmith.precision.integer_values import of_unknown_size
from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.methods.base import Layer, Method, Work, constant_bytes, float_bytes
from onnxsmith.precision.mixed_precision import narrowed
from onnxsmith.precision.narrowable_nodes import NARROW, Unit, find

_NAMED = 2
"""The reasons that a note names. A choice."""
_UNKNOWN = 2.0**31
"""From this size on, a bound comes from the dtype of an integer and says nothing."""

# What float16 and bfloat16 share: nodes become narrow, strongly typed, with Casts at the borders.


class _NarrowFloat(Method):
    """Lets nodes compute in a narrower float, weights included. Inputs and outputs of the graph stay float32.

    A node stays wide if, on the data, a value of its inputs, outputs or weights is larger than half the largest number
    of the narrow float. The other half is a margin for other data. Without data, a node also stays wide if one of its
    values was made of whole numbers that may be too large, such as ids, lengths and shapes.
    """

    changes = "nodes whose operator supports the narrow float"
    bounds_integers = True
    for_speed = False
    to: ClassVar[str]

    def opset_why(self, form: Form) -> str:
        return f"operators in {self.to} need opset {self.opset} or newer"

    def layers(self, work: Work) -> list[Layer]:
        nodes = list(walk.nodes(work.model.graph))
        return [Layer(unit.name, unit.op, constant_bytes(nodes[unit.index])) for unit in self._units(work)]

    def variant(self, work: Work, keep: Keep) -> ir.Model:
        return narrowed(work.model, self._narrow(work, keep), NARROW[self.to])

    def measured(self, work: Work, keep: Keep, variant: ir.Model) -> ir.Model:
        """Returns the rounded form in float32, because onnxruntime on a CPU computes the narrow form in float32 and
        rounds little of it."""
        return narrowed(work.model, self._narrow(work, keep), NARROW[self.to], rounded=True)

    def always(self, work: Work) -> Mapping[str, str]:
        most = float(ml_dtypes.finfo(NARROW[self.to].numpy()).max) / 2  # type: ignore[no-untyped-call]
        ranges = work.ranges.by_name if work.ranges is not None else {}
        nodes = list(walk.nodes(work.model.graph))
        found = {}
        for unit in self._units(work):
            node = nodes[unit.index]
            sides = [node.inputs[i] for i in unit.inputs] + [node.outputs[i] for i in unit.outputs]
            for value in sides:
                largest = _largest(value, ranges) if value is not None else 0.0
                if value is not None and not largest <= most:
                    found[unit.name] = (
                        f"{value.name} reaches {largest:.3g}, but the largest {self.to} is {2 * most:.3g}"
                    )
        return found | self._made_of_integers(work)

    def said(self, work: Work) -> tuple[str, ...]:
        ranges = (f"{name} from {low:,} to {high:,}" for name, (low, high) in work.declared.items())
        declared = [f"the nodes hold whole numbers of these inputs: {', '.join(ranges)}"] if work.declared else []
        wide = self._made_of_integers(work)
        if not wide:
            return tuple(declared)
        verb = "stays" if len(wide) == 1 else "stay"
        first = first_few(list(dict.fromkeys(wide.values())), _NAMED, "; ")
        return (
            *declared,
            (
                f"{several(len(wide), 'node')} {verb} in float32, because whole numbers of unknown size may not fit "
                f"in {self.to}: {first}. Give --data that contains the largest numbers: then only nodes that need "
                "float32 for this data are kept"
            ),
        )

    def _made_of_integers(self, work: Work) -> dict[str, str]:
        """Returns the nodes with a value that was made of whole numbers and may not fit, each with the reason. With
        data the values are measured instead, except those made of inputs with a declared range."""
        if work.ranges is not None and not work.declared:
            return {}
        info = ml_dtypes.finfo(NARROW[self.to].numpy())  # type: ignore[no-untyped-call]
        held = of_unknown_size(
            work.model,
            float(info.max) / 2,
            2.0 ** (info.nmant + 1),
            work.declared,
            others=work.ranges is None,
        )
        nodes = list(walk.nodes(work.model.graph))
        found = {}
        for unit in self._units(work) if held else ():
            node = nodes[unit.index]
            sides = [node.inputs[i] for i in unit.inputs] + [node.outputs[i] for i in unit.outputs]
            state = next((held[value] for value in sides if value in held), None)
            if state is not None:
                size = "of unknown size" if state.largest > _UNKNOWN else f"up to {state.largest:,.0f}"
                found[unit.name] = f"the node computes with whole numbers from {state.source}, {size}"
        return found

    def left(self, work: Work) -> tuple[LeftAlone, ...]:
        """Returns the nodes with floats whose operator does not support the narrow float."""
        units = find(work.model, NARROW[self.to])
        own = {unit.name for unit in units.units}
        sizes: Counter[str] = Counter()
        for node in walk.nodes(work.model.graph):
            sizes[walk.op_name(node)] += 0 if node.name in own else float_bytes(node)
        return tuple(
            LeftAlone(op, count, sizes[op], why) for why, counts in units.fixed.items() for op, count in counts.items()
        )

    def _units(self, work: Work) -> tuple[Unit, ...]:
        return find(work.model, NARROW[self.to]).units

    def _narrow(self, work: Work, keep: Keep) -> list[Unit]:
        return [unit for unit in self._units(work) if unit.name not in keep]


def _largest(value: ir.Value, ranges: Mapping[str, object]) -> float:
    tensor = value.const_value
    if tensor is not None:
        array = np.abs(np.asarray(tensor.numpy(), np.float64))
        finite = array[np.isfinite(array)]  # every float dtype has infinities, as in a mask
        return float(finite.max()) if finite.size else 0.0
    known = ranges.get(value.name or "")
    largest = getattr(known, "largest", 0.0)
    return largest if not math.isnan(largest) else math.inf


# float16.


class Float16(_NarrowFloat):
    """Halves the size: 11 bits of precision, numbers up to 65,504."""

    title = "float16"
    opset = 13
    to = "float16"
    instead = "--to bfloat16, which has the range of float32"


# bfloat16.


class Bfloat16(_NarrowFloat):
    """Halves the size: 8 bits of precision, the range of float32."""

    title = "bfloat16"
    opset = 13
    to = "bfloat16"
