"""Finds equal nodes on all parts of a tensor, which can become one node on the whole tensor.

A bundle is a sequence of values that differ in size along one axis only. It stands for their concatenation along that
axis, the whole, which the graph has already (the input of a Split) or a rule makes (one product with all weights). A
region grows from there: equal nodes on the parts become one node on the whole, whose result is a bundle again. If a
bundle has other readers, a new Split gives them the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure.tensor_keys import contents
from onnxsmith.graph.structure.uses import is_read_outside
from onnxsmith.optimizer.rules import _node_order, _split

_MOST_STEPS = 32
"""Limits the nodes on each part. A choice that bounds the cost."""
_SHORT = 64
"""Limits the elements of constants that are compared. A choice: shapes and axes are short, weights are not."""


@dataclass(frozen=True, eq=False)
class Bundle:
    """Holds values with equal dimensions except on `axis` (counted from the front), where they have these `sizes`.
    `after` are permutations that single parts still need."""

    values: tuple[ir.Value, ...]
    axis: int
    sizes: tuple[int, ...]
    after: tuple[list[int] | None, ...] = ()

    @property
    def dims(self) -> list[facts.Element | None]:
        """Returns the dimensions of the whole."""
        dims = list(facts.dims(self.values[0]) or ())
        dims[self.axis] = sum(self.sizes)
        return dims


def bundle(values: Sequence[ir.Value], axis: int) -> Bundle | None:
    """Returns the values as a bundle along an axis, which may count from the end; None if their shapes do not prove
    that they are a bundle."""
    every = [facts.dims(value) for value in values]
    known = [list(dims) for dims in every if dims is not None]
    if len(known) < len(every) or not -len(known[0]) <= axis < len(known[0]):
        return None
    axis %= len(known[0])
    sizes = [dims[axis] for dims in known if len(dims) == len(known[0])]
    if len(sizes) < len(known) or any(None in [*dims[:axis], *dims[axis + 1 :]] for dims in known):
        return None
    if any([*dims[:axis], *dims[axis + 1 :]] != [*known[0][:axis], *known[0][axis + 1 :]] for dims in known):
        return None
    numbers = tuple(size for size in sizes if isinstance(size, int) and size > 0)
    return Bundle(tuple(values), axis, numbers) if len(numbers) == len(sizes) else None


Operand = Bundle | tuple[ir.Value | None, ...]
"""Stands for one input of the nodes on the parts: a bundle, or other values."""
Write = Callable[[ir.tape.Tape, Sequence[ir.Value | None]], Sequence[ir.Value]]
"""Writes the node on the whole. Gets the wholes of its operands, None for an operand that is not a bundle."""


@dataclass(frozen=True)
class Plan:
    """Holds the results of one node on the whole, and the function that writes it."""

    results: tuple[Bundle, ...]
    write: Write


Planner = Callable[[tuple[ir.Node, ...], Sequence[Operand]], Plan | None]
"""Plans how the nodes of one operator type on the parts become one node on the whole; None if they cannot."""
Completer = Callable[[Bundle, Sequence[ir.Node | None]], Plan | None]
"""Plans the node on the whole if only some parts have a reader. The other parts stay unchanged in the result."""


@dataclass(frozen=True)
class _Step:
    nodes: tuple[ir.Node, ...]
    operands: tuple[Operand, ...]
    plan: Plan


@dataclass
class Region:
    """Holds a bundle with all nodes that can run on its whole. `saved` is the number of nodes that the graph loses, not
    counting the node that makes the whole."""

    root: Bundle
    planners: Mapping[str, Planner]
    complete: Completer
    steps: list[_Step] = field(default_factory=list)
    _place: dict[ir.Value, tuple[Bundle, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._enter(self.root)
        waiting = [self.root]
        while waiting and len(self.steps) < _MOST_STEPS:
            at = waiting.pop(0)
            for step in list(self._next(at)) or list(self._completed(at)):
                self.steps.append(step)
                for result in step.plan.results:
                    self._enter(result)
                    waiting.append(result)
        self._prune()

    def _enter(self, found: Bundle) -> None:
        self._place.update({value: (found, index) for index, value in enumerate(found.values)})

    def _completed(self, at: Bundle) -> Iterator[_Step]:
        """Yields the step in which only some parts have a reader, if there is one."""
        readers = [_only_reader(value) for value in at.values]
        plan = None if any(at.after) else self.complete(at, readers)
        if plan is not None:
            pairs = zip(readers, plan.results[0].values, at.values, strict=True)
            yield _Step(tuple(node for node, new, old in pairs if node is not None and new is not old), (at,), plan)

    def _next(self, at: Bundle) -> Iterator[_Step]:
        if any(at.after):
            return
        taken = {node for step in self.steps for node in step.nodes}
        for first in dict.fromkeys(at.values[0].consumers()):
            if first in taken or first.domain or first.op_type not in self.planners:
                continue
            nodes = {first: None}
            for value in at.values[1:]:
                others = [node for node in value.consumers() if node not in taken and node not in nodes]
                twins = [node for node in others if self._is_twin(first, node, len(nodes))]
                if not twins:
                    break
                # of several candidates, the one with most constants in common
                nodes[min(twins, key=lambda twin: _differences(first, twin))] = None
            else:
                operands = tuple(self._operand(tuple(nodes), index) for index in range(len(first.inputs)))
                plan = self.planners[first.op_type](tuple(nodes), operands)
                if plan is not None:
                    taken.update(nodes)
                    yield _Step(tuple(nodes), operands, plan)

    def _is_twin(self, first: ir.Node, other: ir.Node, index: int) -> bool:
        """Whether `other` does the same to part `index` as `first` to the first part, as far as bundles are
        concerned."""
        if (other.op_type, other.domain, other.graph) != (first.op_type, first.domain, first.graph):
            return False
        if len(other.inputs) != len(first.inputs) or len(other.outputs) != len(first.outputs):
            return False
        for one, two in zip(first.inputs, other.inputs, strict=True):
            place = self._place.get(one) if one is not None else None
            if place is not None:
                if place[1] != 0 or place[0].values[index] is not two:
                    return False
            elif one is not two and not (facts.is_constant(one) and facts.is_constant(two)):
                return False
        return True

    def _operand(self, nodes: Sequence[ir.Node], index: int) -> Operand:
        values = tuple(node.inputs[index] for node in nodes)
        place = self._place.get(values[0]) if values[0] is not None else None
        return place[0] if place is not None else values

    def _prune(self) -> None:
        """Removes last steps that save no more nodes than the Split after them costs."""
        for step in reversed(list(self.steps)):
            if any(operand in step.plan.results for other in self.steps for operand in other.operands):
                continue
            before, kept = self.saved, list(self.steps)
            self._keep([other for other in kept if other is not step])
            if self.saved < before:
                self._keep(kept)

    def _keep(self, steps: list[_Step]) -> None:
        self.steps = steps
        self._place.clear()
        for found in (self.root, *(result for step in steps for result in step.plan.results)):
            self._enter(found)

    @property
    def nodes(self) -> list[ir.Node]:
        """Returns the nodes on the parts that the rewrite makes redundant, readers first."""
        return [node for step in reversed(self.steps) for node in step.nodes]

    @property
    def ends(self) -> list[Bundle]:
        """Returns the bundles that nodes outside the steps read."""
        inside = set(self.nodes)
        found = [self.root, *(result for step in self.steps for result in step.plan.results)]
        return [
            one
            for one in found
            if any(self._place[value][0] is one and is_read_outside(value, inside) for value in one.values)
        ]

    @property
    def saved(self) -> int:
        """Returns the number of saved nodes; see the class."""
        more = sum(permutation is not None for end in self.ends for permutation in end.after)
        return sum(len(step.nodes) - 1 for step in self.steps) - len(self.ends) - more

    def before(self, makers: Sequence[ir.Node]) -> ir.Node | None:
        """Returns the node before which the nodes of `write` can be inserted, together with new copies of `makers`,
        which make the parts of the root. Returns None if there is no such place."""
        inside = {*self.nodes, *makers}
        if len({node.graph for node in inside}) > 1:  # a loop body reads parts that are made outside
            return None
        first = self.steps[0].nodes[0] if self.steps else makers[0]
        shared = [operand[0] for step in self.steps for operand in step.operands if isinstance(operand, tuple)]
        read = [*shared, *(value for maker in makers for value in maker.inputs)]
        made = [value.producer() for value in read if value is not None]
        here = [node for node in made if node is not None and node.graph is first.graph]
        values = [
            *(value for maker in makers for value in maker.outputs),
            *(v for end in self.ends for v in end.values),
        ]
        outside = [reader for value in values for reader in value.consumers() if reader not in inside]
        if any(reader.graph is not first.graph for reader in outside):  # a branch or a loop body reads a part
            return None
        return _node_order.gap(here, outside or [_node_order.last(inside)])

    def write(self, tape: ir.tape.Tape, whole: ir.Value, opset: int) -> dict[ir.Value, ir.Value]:
        """Writes the steps on the whole; returns the parts that other nodes read, by the values that they replace."""
        wholes: dict[Bundle, ir.Value] = {self.root: whole}
        for step in self.steps:
            inputs = [wholes[operand] if isinstance(operand, Bundle) else None for operand in step.operands]
            wholes.update(zip(step.plan.results, step.plan.write(tape, inputs), strict=True))
        replaced: dict[ir.Value, ir.Value] = {}
        for end in self.ends:
            parts = _split.split(tape, wholes[end], end.axis, end.sizes, opset)
            for index, (old, part) in enumerate(zip(end.values, parts, strict=True)):
                permutation = end.after[index] if end.after else None
                replaced[old] = part if permutation is None else tape.op("Transpose", [part], {"perm": permutation})
        return replaced


def _only_reader(value: ir.Value) -> ir.Node | None:
    uses = value.uses()
    return next(iter(value.consumers())) if len(uses) == 1 and not value.is_graph_output() else None


def _differences(one: ir.Node, two: ir.Node) -> int:
    """Counts the constants in which two nodes differ; long constants are compared by identity."""
    return sum(
        not alike(pair) for pair in zip(one.inputs, two.inputs, strict=True) if all(map(facts.is_constant, pair))
    )


def alike(values: Sequence[ir.Value | None]) -> bool:
    """Whether the values are the same, or equal short constants."""
    if all(value is values[0] for value in values):
        return True
    tensors = [const_tensor(value) if facts.is_constant(value) else None for value in values if value]
    known = [tensor for tensor in tensors if tensor is not None and tensor.size <= _SHORT]
    return len(known) == len(values) and len({contents(tensor) for tensor in known}) == 1
