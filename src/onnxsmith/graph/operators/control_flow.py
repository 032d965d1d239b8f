"""Makes If, Loop and Scan from Python functions as branches and bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import several
from onnxsmith.graph.operators import constant_tensors
from onnxsmith.graph.operators.bodies import refuse_difference, traced
from onnxsmith.graph.operators.operand_types import plain
from onnxsmith.graph.operators.tensor import Tensor
from onnxsmith.graph.structure.type_texts import type_text

if TYPE_CHECKING:
    from onnxsmith.graph.operators.operator_methods import Operators

Type = tuple[ir.TypeProtocol | None, ir.Shape | None]


def branch(home: Operators, condition: Any, then: Any, orelse: Any, name: str | None, outputs: Any) -> Any:
    """Makes an If."""
    where = home.blame()
    with home.atomic():
        graphs = [traced(home, "then branch", then, []), traced(home, "else branch", orelse, [])]
        counts = [len(graph.outputs) for graph in graphs]
        if counts[0] != counts[1]:
            raise problem(
                "build/body",
                f"the then branch returns {several(counts[0], 'result')}, the else branch {counts[1]}",
                where=where,
                why="the results of If are those of the branch that is taken",
                fix=(
                    "return the same number of results from both branches: add a placeholder, such as zeros, "
                    "where one is missing"
                ),
            )
        types = []
        for index, (a, b) in enumerate(zip(graphs[0].outputs, graphs[1].outputs, strict=True)):
            if type_text(a) != type_text(b) and type_text(a) and type_text(b):
                names = (plain(type_text(a)), plain(type_text(b)))
                raise refuse_difference("If", index, *names, ("the then branch", "the else branch"), where)
            types.append((a.type, _either(home, a.shape, b.shape)))
        bodies = {"then_branch": graphs[0], "else_branch": graphs[1]}
        return _made(home, "If", [condition], bodies, types, name, outputs)


def loop(
    home: Operators, trips: Any, condition: Any, states: Sequence[Any], body: Any, name: str | None, outputs: Any
) -> Any:
    """Makes a Loop."""
    where = home.blame()
    with home.atomic():
        starts = [_state(home, one) for one in states]
        types: list[Type] = [(one.value.type, one.value.shape) for one in starts]
        opened: set[str] = set()
        while True:  # ends soon: each turn makes a size or a rank unknown
            mark = home.mark()
            iteration = _input(home, "iteration", ir.TensorType(ir.DataType.INT64), ir.Shape([]))
            goes_on = _input(home, "condition", ir.TensorType(ir.DataType.BOOL), ir.Shape([]))
            inputs = [_input(home, f"state_{index}", *one) for index, one in enumerate(types)]
            wishes = [ir.DataType.BOOL, *(value.dtype for value in inputs)]
            graph = traced(home, "Loop body", body, [iteration, goes_on, *inputs], wishes)
            _check_loop(graph, inputs, where)
            loosened = _loosened(home, types, graph.outputs[1 : 1 + len(inputs)], opened)
            if loosened is None:
                break
            home.take_back(mark)
            types = loosened
        scans = graph.outputs[1 + len(inputs) :]
        count = _trip_count(trips) if condition is None and _passes_on(graph) else None
        results = [(start.value.type, _either(home, start.value.shape, value.shape))
                   for start, value in zip(starts, inputs, strict=True)]  # fmt: skip
        results += [(one.type, _stacked(home, one.shape, count, 0)) for one in scans]
        return _made(home, "Loop", [trips, condition, *starts], {"body": graph}, results, name, outputs)


def scan(
    home: Operators, operands: Sequence[Any], body: Any, attributes: dict[str, Any], name: str | None, outputs: Any
) -> Any:
    """Makes a Scan. The last `num_scan_inputs` operands are scanned, the others are states."""
    where = home.blame()
    number = attributes.get("num_scan_inputs", 1)
    if not isinstance(number, int) or not 1 <= number <= len(operands):
        raise problem(
            "build/operands",
            f"Scan gets {several(len(operands), 'operand')}, of which {number!r} are scanned",
            where=where,
            fix="give the states first, then the scanned tensors, and num_scan_inputs=1 or more",
        )
    with home.atomic():
        given = [_state(home, one) for one in operands]
        states, scanned = given[:-number], given[-number:]
        axes = attributes.get("scan_input_axes") or [0] * number
        inputs = [_input(home, f"state_{i}", one.value.type, one.value.shape) for i, one in enumerate(states)]
        inputs += [
            _input(home, f"element_{i}", one.value.type, _without(one, axis, where))
            for i, (one, axis) in enumerate(zip(scanned, axes, strict=False))
        ]
        graph = traced(home, "Scan body", body, inputs, [value.dtype for value in inputs[: len(states)]])
        _check_states("Scan", graph.outputs, inputs[: len(states)], where)
        lengths = [_dim(one, axis) for one, axis in zip(scanned, axes, strict=False)]
        length = next((dim for dim in lengths if dim is not None), None)
        made = graph.outputs[len(states) :]
        places = attributes.get("scan_output_axes") or [0] * len(made)
        results = [(one.value.type, one.value.shape) for one in states]
        results += [(one.type, _stacked(home, one.shape, length, at)) for one, at in zip(made, places, strict=False)]
        bodies = {"body": graph, **attributes, "num_scan_inputs": number}
        return _made(home, "Scan", given, bodies, results, name, outputs)


def _made(
    home: Operators,
    op: str,
    operands: Sequence[Any],
    attributes: dict[str, Any],
    types: Sequence[Type],
    name: str | None,
    outputs: Any,
) -> Any:
    if outputs is None:
        outputs = len(types)
    found = home.call(op, operands, attributes, name, outputs)
    for handle, (type_, shape) in zip(found if isinstance(found, tuple) else (found,), types, strict=False):
        if handle is not None:
            handle.value.type, handle.value.shape = type_, shape
    return found


def _state(home: Operators, given: Any) -> Tensor:
    if isinstance(given, Tensor | ir.Value):
        return home.tensor(given.value if isinstance(given, Tensor) else given)
    return home.constant(given)


def _input(home: Operators, name: str, type_: ir.TypeProtocol | None, shape: ir.Shape | None) -> ir.Value:
    return ir.Value(name=home.free_name(name), type=type_, shape=None if shape is None else ir.Shape(list(shape)))


def _check_loop(graph: ir.Graph, states: Sequence[ir.Value], where: str) -> None:
    if len(graph.outputs) < 1 + len(states):
        raise problem(
            "build/body",
            f"the Loop body returns {several(len(graph.outputs), 'result')}, and has {several(len(states), 'state')}",
            where=where,
            why=(
                "the body returns the condition to continue, the new states, and then the results to stack over "
                "the iterations"
            ),
            fix="return condition, " + ", ".join(f"state_{index}" for index in range(len(states))),
        )
    if graph.outputs[0].dtype not in (None, ir.DataType.BOOL):
        found = plain(type_text(graph.outputs[0]))
        raise problem(
            "build/body",
            f"the first result of the Loop body is of {found}, not of bool",
            where=where,
            why="the first result is the condition to continue",
            fix="return the condition first: return condition, state",
        )
    _check_states("Loop", graph.outputs[1:], states, where)


def _check_states(op: str, outputs: Sequence[ir.Value], states: Sequence[ir.Value], where: str) -> None:
    if len(outputs) < len(states):
        raise problem(
            "build/body",
            f"the {op} body returns {several(len(outputs), 'result')}, and has {several(len(states), 'state')}",
            where=where,
            why="the body returns the new states first, then its other results",
            fix="return every state, a tuple of tensors",
        )
    for index, (state, result) in enumerate(zip(states, outputs, strict=False)):
        before, after = type_text(state), type_text(result)
        if before and after and before != after:
            raise refuse_difference(
                f"the {op} body", index, plain(before), plain(after), ("the state", "the next state"), where
            )


def _loosened(home: Operators, types: Sequence[Type], after: Sequence[ir.Value], open_: set[str]) -> list[Type] | None:
    """Returns the types of the states with a new name for every size that an iteration changes; None if none changes.
    `open_` are the names made so far. Their sizes may differ between iterations."""
    found: list[Type] = []
    changed = False
    for (type_, shape), value in zip(types, after, strict=True):
        new = shape
        if shape is not None and (value.shape is None or len(value.shape) != len(shape)):
            new, changed = None, True
        elif shape is not None and value.shape is not None:
            dims: list[int | ir.SymbolicDim] = []
            for before, now in zip(shape, value.shape, strict=True):
                if before == now or (not isinstance(before, int) and before.value in open_):
                    dims.append(before)
                    continue
                dims.append(home.new_dim())
                open_.add(str(dims[-1]))
                changed = True
            new = ir.Shape(dims)
        found.append((type_, new))
    return found if changed else None


def _either(home: Operators, a: ir.Shape | None, b: ir.Shape | None) -> ir.Shape | None:
    """Returns the shape of a value that has either of two shapes."""
    if a is None or b is None or len(a) != len(b):
        return None
    return ir.Shape([x if x == y else home.new_dim() for x, y in zip(a, b, strict=True)])


def _stacked(home: Operators, shape: ir.Shape | None, count: Any, axis: int) -> ir.Shape | None:
    if shape is None:
        return None
    dims = list(shape)
    dims.insert(axis if axis >= 0 else len(dims) + 1 + axis, home.new_dim() if count is None else count)
    return ir.Shape(dims)


def _passes_on(graph: ir.Graph) -> bool:
    """Whether the body's condition stays true if it was true at the start."""
    maker = graph.outputs[0].producer()
    source = maker.inputs[0] if maker is not None and maker.op_type == "Identity" else None
    if source is graph.inputs[1]:
        return True
    tensor = None if source is None else source.const_value
    return tensor is not None and bool(tensor.numpy().all())


def _trip_count(trips: Any) -> int | None:
    return max(int(trips), 0) if constant_tensors.is_python(trips) and isinstance(trips, int) else None


def _dim(tensor: Tensor, axis: int) -> int | ir.SymbolicDim | None:
    shape = tensor.value.shape
    return None if shape is None or not -len(shape) <= axis < len(shape) else shape[axis]


def _without(tensor: Tensor, axis: int, where: str) -> ir.Shape | None:
    shape = tensor.value.shape
    if shape is None:
        return None
    if not -len(shape) <= axis < len(shape):
        raise _no_axis(tensor, axis, where)
    dims = list(shape)
    del dims[axis]
    return ir.Shape(dims)


def _no_axis(tensor: Tensor, axis: int, where: str) -> OnnxsmithError:
    return problem(
        "build/shape",
        f"Scan: {tensor!r} has no axis {axis} to scan",
        where=where,
        why="each iteration gets one element along this axis",
        fix="give a tensor of rank 1 or more, or another scan_input_axes=[…]",
    )
