"""Follows a symbolic dimension through a model, node by node, and replaces the constants that fix its size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams import shape_engine
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.editor.dims import equal_axes, factors, frozen_operands
from onnxsmith.editor.dims.constant_repetition import Repeating
from onnxsmith.editor.dims.factors import Atom, Dim
from onnxsmith.editor.dims.runtime_sizes import Sizes
from onnxsmith.editor.edited_model import Work, depending
from onnxsmith.graph.shapes import sound_shapes
from onnxsmith.graph.shapes.dims import evaluate, names_in, used_names
from onnxsmith.graph.shapes.known_integers import elements
from onnxsmith.graph.shapes.symbols import canonical
from onnxsmith.graph.structure import walk

Static = Mapping[ir.Value, tuple[int | None, ...]]
"""Maps values to their shapes in the original model, with None for an unknown size."""


class _One:
    """Presents a single node as a graph, as the shape engine requires."""

    initializers: Mapping[str, ir.Value] = {}
    inputs: tuple[ir.Value, ...] = ()

    def __init__(self, node: ir.Node) -> None:
        self._node = node

    def __iter__(self) -> Iterator[ir.Node]:
        return iter((self._node,))


@dataclass
class Choice:
    """What a size of 1 may mean. With `late` a Reshape to several dimensions of 1 puts the symbol into the last of
    them, else into the first. With `counts` a constant 0 is the number of the only row, and becomes 0 to N - 1, else it
    is 0 for each row. With `turned` a Reshape that puts a 1 in front of all other dimensions moves the symbol there, as
    a Transpose of one row may be written, else it keeps the order in memory."""

    late: bool = False
    counts: bool = False
    turned: bool = False


_BOTH = (False, True)
CHOICES = tuple(Choice(late, counts, turned) for turned in _BOTH for counts in _BOTH for late in _BOTH)
"""The choices in the order of trial."""


class Opening:
    """Opens frozen sizes in a model. `opened` are the dimensions of graph inputs that are symbolic now. `static` are
    the shapes that all values had before, with the numbers of `beside` for symbols that the inputs had."""

    def __init__(
        self,
        work: Work,
        opened: Mapping[ir.Value, Mapping[int, str]],
        static: Static,
        beside: Mapping[str, int],
        choice: Choice = CHOICES[0],
    ) -> None:
        self.work, self.static, self.choice = work, static, choice
        self.doubts = Choice()
        """Says which choices made a difference."""
        self.sizes = Sizes(work, self._made)
        self.repeating = Repeating(self)
        self.notes: list[str] = []
        """Lists the replacements, one line for each replacement."""
        self.kept: dict[str, list[str]] = {}
        """By symbol, says which constants may hold its size, and stay."""
        self._dims: dict[ir.Value, list[Dim]] = {}
        self._known: dict[str, Dim] = {}
        self._numbers: dict[str, int] = {}
        self._beside = beside
        self._reached = depending(work.model, set(opened))
        self._data = _of_data(work.model)
        self._context: Any = sound_shapes.context(work.model)
        self._keep_beside(beside)
        for value, axes in opened.items():
            self._open_input(value, axes)

    def _keep_beside(self, beside: Mapping[str, int]) -> None:
        """Notes the symbols that inputs had before."""
        for value in self.work.model.graph.inputs:
            for axis, dim in enumerate(value.shape or ()):
                name = str(dim.value) if isinstance(dim, ir.SymbolicDim) else ""
                if name in beside and name not in self._numbers:
                    self._remember(Atom(name, beside[name], value, axis, was_open=True))
        for value in self.work.model.graph.inputs:
            found = self._of_shape(value, None)
            if found is not None and any(map(factors.is_symbolic, found)):
                self._dims[value] = found

    def _open_input(self, value: ir.Value, axes: Mapping[int, str]) -> None:
        assert value.shape is not None
        shape = list(value.shape)
        for axis, symbol in axes.items():
            size = self.static[value][axis]
            assert size is not None
            if symbol not in self._known:
                self._remember(Atom(symbol, size, value, axis))
            shape[axis] = ir.SymbolicDim(symbol)
        value.shape = ir.Shape(shape)
        found = self._of_shape(value, None)
        if found is not None:
            self._dims[value] = found

    def _remember(self, atom: Atom) -> Dim:
        self._known[str(canonical(atom.text))] = (atom,)
        self._numbers[atom.text] = atom.size
        return (atom,)

    def run(self) -> None:
        """Opens the whole model.

        Raises:
            OnnxsmithError: `edit/frozen-dim`.
        """
        self._context.reserve_symbol_names([*used_names(self.work.model), *self._numbers])
        with shape_engine.walking():
            self._graph(self.work.model.graph)

    def dims(self, value: ir.Value | None) -> list[Dim] | None:
        """Returns the dimensions of a value; None if the dimensions are unknown."""
        if value is None:
            return None
        if value in self._dims:
            return self._dims[value]
        if value.shape is None or not all(isinstance(dim, int) for dim in value.shape):
            return None
        return [(int(dim),) for dim in value.shape]  # type: ignore[arg-type]  # all are numbers

    def atoms(self) -> list[Atom]:
        """Returns the opened dimensions."""
        found = (one for value in self.work.model.graph.inputs for dim in self._dims.get(value, ()) for one in dim)
        return list(dict.fromkeys(one for one in found if isinstance(one, Atom) and not one.was_open))

    def is_reached(self, value: ir.Value | None) -> bool:
        """Whether a value depends on an opened input."""
        return value is not None and value in self._reached

    def is_sized(self, value: ir.Value) -> bool:
        """Whether a value of the main graph depends only on the sizes of inputs, not on their elements."""
        node = value.producer()
        return node is not None and node.graph is self.work.model.graph and value not in self._data

    def refuse(self, node: ir.Node, why: str, fix: str = "") -> OnnxsmithError:
        """Returns the error for a node that keeps a size fixed."""
        return problem(
            "edit/frozen-dim",
            f"{node.op_type} keeps the size of {', '.join(dict.fromkeys(self._symbols()))} fixed",
            where=walk.node_label(node),
            why=why,
            fix=fix or "export the model with this dimension dynamic, or keep it static",
        )

    def _symbols(self) -> Iterator[str]:
        for value in self.work.model.graph.inputs:
            for dim in self._dims.get(value, ()):
                yield from (one.text for one in dim if isinstance(one, Atom))

    def _graph(self, graph: ir.Graph) -> None:
        for node in list(graph):
            with self._blamed(node):
                inner = list(walk.subgraphs(node))
                if inner:
                    for value in node.inputs:
                        if value is not None:
                            self._context.name_anonymous_dims(value)
                    self._enter(node, inner)
                for body in inner:
                    self._graph(body)
                    self._leave(node, body)
                self._node(node)

    def _enter(self, node: ir.Node, bodies: list[ir.Graph]) -> None:
        """Gives the inputs of bodies the shapes of the operands that they are bound to."""
        for body in bodies:
            for value in body.inputs:
                if value in self._reached and self.static.get(value) != ():  # the iteration number stays a scalar
                    value.shape = None
        self._context.enter(self._context, node)
        given = [dim for value in node.inputs for dim in self.dims(value) or ()]
        for body in bodies:
            states = self._states(node, body)
            for value in body.inputs:
                known = self.dims(node.inputs[states[value]]) if value in states else None
                if known is not None and tuple(factors.size(dim) for dim in known) == self.static.get(value):
                    value.shape = ir.Shape([factors.as_dim(dim) for dim in known])
                found = self._of_shape(value, given)
                if found is not None:
                    self._dims[value] = found

    def _states(self, node: ir.Node, body: ir.Graph) -> dict[ir.Value, int]:
        """Returns the states of a body, each with the index of the operand that holds its first value."""
        if node.op_type == "Loop":
            return {value: index for index, value in enumerate(body.inputs) if index > 1}
        if node.op_type == "Scan":
            scanned = node.attributes.get_int("num_scan_inputs", 0)
            return {value: index for index, value in enumerate(body.inputs[: len(body.inputs) - scanned])}
        return {}

    def _leave(self, node: ir.Node, body: ir.Graph) -> None:
        """Raises if a body returns a state with other dimensions than the state had before."""
        first = 1 if node.op_type == "Loop" else 0
        for at, value in enumerate(self._states(node, body)):
            before, after = self._dims.get(value), self.dims(body.outputs[first + at])
            if before is None or not any(factors.is_open(dim) for dim in before):
                if after is not None and any(map(factors.is_open, after)):
                    value.shape = None  # it has the size from the second run on, by broadcasting
                    self.work.reshape(value)
                continue
            if after is None or [factors.text(dim) for dim in before] != [factors.text(dim) for dim in after]:
                raise self.refuse(node, f"the state {value.name} has another shape after an iteration than before")

    @contextmanager
    def _blamed(self, node: ir.Node) -> Iterator[None]:
        try:
            yield
        except OnnxsmithError:
            raise
        except Exception as error:  # the engine is an alpha release and raises errors of many kinds
            if not type(error).__module__.startswith("onnx_shape_inference"):
                raise
            raise self.refuse(node, f"its shapes conflict: {error}") from error

    def _node(self, node: ir.Node) -> None:
        fixed = None
        # Frozen constants are replaced first, because the inference below reads them.
        if any(self.is_reached(value) for value in node.inputs):
            if not node.domain:
                frozen_operands.count_rows(self, node)
            self._match_partners(node)
            fixed = frozen_operands.opened(self, node) if not node.domain else None
        for value in node.outputs:
            self._context.forget(value)
            if value in self._reached:
                value.shape = None
        self.infer(node)
        for index, value in enumerate(node.outputs):
            found = fixed if index == 0 else None
            if found is not None:
                value.shape = ir.Shape([factors.as_dim(dim) for dim in found])
                self._dims[value] = found
            elif value in self._reached:
                self._settle(node, value)

    def again(self, node: ir.Node) -> None:
        """Follows the symbol through a node once more, because an operand of it follows the symbol now."""
        self._reached |= depending(self.work.model, set(node.outputs)) | set(node.outputs)
        self._node(node)

    def declare(self, value: ir.Value, dims: list[Dim]) -> None:
        """Gives a value dimensions that inference cannot find."""
        value.shape = ir.Shape([factors.as_dim(dim) for dim in dims])
        self._dims[value] = dims

    def is_of_data(self, value: ir.Value) -> bool:
        """Whether a value of the main graph depends on elements of inputs."""
        return value in self._data

    def infer(self, node: ir.Node) -> None:
        """Infers the shapes of a node's results."""
        functions = self.work.model.functions
        shape_engine.walk(
            self._context, _One(node), model_functions=functions, inference_cache={}, op_function_cache={}
        )

    def _made(self, node: ir.Node) -> None:
        """Infers the result shape of a new node, and records its dimensions."""
        self.infer(node)
        found = self._of_shape(node.outputs[0], None)
        if found is not None:
            self._dims[node.outputs[0]] = found

    def _match_partners(self, node: ir.Node) -> None:
        for group in equal_axes.groups(node, lambda index: self._rank(node, index)):
            places = [(index, axis, self.dims(node.inputs[index])) for index, axis in group.places]
            known = [(index, axis, dims[axis]) for index, axis, dims in places if dims is not None and axis < len(dims)]
            opened = next((dim for _, _, dim in known if factors.is_open(dim)), None)
            if opened is None:
                continue
            for index, axis, dim in known:
                number = factors.size(dim)
                if group.broadcast and number == 1 and not factors.is_symbolic(dim):
                    self.repeating.number(node, index, axis, opened)
                if factors.is_open(dim) or (group.broadcast and number == 1):
                    continue
                if number == factors.size(opened):
                    if group.summed and self._is_trained(node.inputs[index]):
                        name, weights = factors.text(opened), node.inputs[index].name  # type: ignore[union-attr]
                        raise self.refuse(
                            node,
                            f"the node sums over {name}, and its weights {weights} fit only the size {number}",
                            "keep this dimension static; or, if your arrays have their axes in another order, "
                            "change the layout of the input: `onnxsmith explain edit/frozen-dim` shows the command",
                        )
                    self.repeating.repeat(node, index, axis, opened, broadcast=group.broadcast)

    def _is_trained(self, value: ir.Value | None) -> bool:
        """Whether a value is a constant of floats that are not all 1: to repeat them would enlarge the sum."""
        tensor = const_tensor(value) if value is not None else None
        if tensor is None or not tensor.dtype.is_floating_point():
            return False
        return not bool((np.asarray(tensor.numpy(), np.float32) == 1).all())

    def _rank(self, node: ir.Node, index: int) -> int | None:
        dims = self.dims(node.inputs[index]) if index < len(node.inputs) else None
        if dims is None and index < len(node.inputs):
            value = node.inputs[index]
            return len(value.shape) if value is not None and value.shape is not None else None
        return None if dims is None else len(dims)

    def _settle(self, node: ir.Node, value: ir.Value) -> None:
        """Records the dimensions of a result. Raises if their sizes differ from the original's."""
        before = self.static.get(value)
        if value.shape is None and before is not None and all(size is not None for size in before):
            value.shape = self._guessed(node, before)
        if value.shape is None:
            return
        given = [dim for one in node.inputs for dim in self.dims(one) or ()]
        found = self._of_shape(value, given, node)
        if found is None:
            return
        for axis, dim in enumerate(found):
            was = before[axis] if before is not None and axis < len(before) else None
            if was is not None and factors.size(dim) != was:
                is_size = f"{factors.text(dim)} = {factors.size(dim)}" if factors.is_symbolic(dim) else str(dim[0])
                raise self.refuse(
                    node, f"axis {axis} of {value.name} would have the size {is_size}, but has {was} in the original"
                )
        self._dims[value] = found

    def _guessed(self, node: ir.Node, before: tuple[int | None, ...]) -> ir.Shape:
        """Returns a shape for a result that inference does not know. If an axis has the size of the same axis of the
        first operand, its dimension is assumed to be the same."""
        first = self.dims(node.inputs[0]) if node.inputs else None
        same = first or []
        return ir.Shape(
            [
                factors.as_dim(same[axis])
                if axis < len(same) and factors.size(same[axis]) == size
                else self._was_beside(size)
                for axis, size in enumerate(before)
            ]
        )

    def _was_beside(self, size: int | None) -> int | ir.SymbolicDim | None:
        """Returns the symbol that inputs had before, if the size is its number; None for a multiple of the number."""
        of = next((name for name, number in self._beside.items() if size and size % number == 0), None)
        return size if of is None else ir.SymbolicDim(of if size == self._beside[of] else None)

    def _of_shape(self, value: ir.Value, given: list[Dim] | None, node: ir.Node | None = None) -> list[Dim] | None:
        """Returns the dimensions of a value's shape; None if a dimension is unknown. An expression that also occurs in
        an operand keeps the operand's order of factors."""
        if value.shape is None:
            return None
        by_text = {str(canonical(factors.text(dim))): dim for dim in reversed(given or []) if factors.is_symbolic(dim)}
        before = self.static.get(value)
        found: list[Dim] = []
        for axis, dim in enumerate(value.shape):
            if isinstance(dim, int):
                found.append((dim,))
                continue
            if dim.value is None:
                return None
            text = str(canonical(dim.value))
            known = by_text.get(text) or self._known.get(text) or self._multiple(text, node)
            if known is None:
                was = before[axis] if before is not None and axis < len(before) else None
                size = evaluate(dim.value, self._numbers)
                size = was if size is None else size
                if size is None:
                    return None
                names = names_in(dim.value)
                was_open = bool(names) and all(name in self._beside for name in names)
                known = self._remember(Atom(dim.value, size, value, axis, was_open))
            found.append(known)
        return found

    def _multiple(self, text: str, node: ir.Node | None) -> Dim | None:
        """Returns a number times a known symbol. Concat and Tile repeat whole blocks, other operators repeat each
        element."""
        number, times, rest = text.partition("*")
        known = self._known.get(rest.removeprefix("(").removesuffix(")")) if times and number.isdigit() else None
        if known is None:
            return None
        return (
            (int(number), *known) if node is not None and node.op_type in ("Concat", "Tile") else (*known, int(number))
        )

    def integers(self, value: ir.Value | None) -> list[int | str | None] | None:
        """Returns the elements of a list of integers: numbers, expressions, and None for unknown elements."""
        return elements(value)

    def named(self, text: int | str) -> Dim | None:
        """Returns the dimension of a number or an expression; None if the text is unknown."""
        if isinstance(text, int):
            return (text,)
        return self._known.get(str(canonical(text))) or self._multiple(str(canonical(text)), None)


def _of_data(model: ir.Model) -> set[ir.Value]:
    """Returns the values of the main graph that depend on elements of inputs."""
    found: set[ir.Value] = set(model.graph.inputs)
    for node in model.graph:
        bodies = bool(list(walk.subgraphs(node)))
        # Shape and Size read no elements of their operand.
        if bodies or (node.op_type not in ("Shape", "Size") and any(value in found for value in node.inputs)):
            found.update(node.outputs)
    return found
