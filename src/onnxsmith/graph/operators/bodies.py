"""Traces a Python function into a branch or a body. Its operators become nodes there, and its results the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.operators import constant_tensors
from onnxsmith.graph.operators.tensor import Tensor

if TYPE_CHECKING:
    from onnxsmith.graph.operators.operator_methods import Operators


def traced(
    home: Operators, what: str, function: Any, inputs: Sequence[ir.Value], wishes: Sequence[Any] = ()
) -> ir.Graph:
    """Calls `function` with handles of the inputs; returns a graph with the nodes that it makes. `wishes` are the
    dtypes for results that are Python values, by position.

    Raises: OnnxsmithError: `build/body` if `function` is not callable, takes other arguments, or returns no tensors.
    """
    where = home.blame()
    if not callable(function):
        raise problem(
            "build/body",
            f"{what} is {function!r}, not a function",
            where=where,
            why="the nodes of a branch or body must be made inside it",
            fix=f"write {what} as a function: lambda: g.Relu(x)",
        )
    graph = ir.Graph(list(inputs), [], nodes=[], name=what.replace(" ", "_"))
    with home.inside(graph):
        found = _called(function, what, [Tensor(value, home) for value in inputs], where)
        outputs: list[ir.Value] = []
        for index, one in enumerate(found):
            wish = wishes[index] if index < len(wishes) else None
            outputs.append(_output(home, graph, what, one, wish, outputs, where))
    graph.outputs.extend(outputs)
    return graph


def _called(function: Callable[..., Any], what: str, handles: Sequence[Tensor], where: str) -> Sequence[Any]:
    try:
        found = function(*handles)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise  # an error inside the function, not of the call
        raise problem(
            "build/body",
            f"the function for {what} does not take {len(handles)} arguments",
            where=where,
            why=str(error),
            fix=f"give it {len(handles)} parameters: {', '.join(map(repr, handles))}"
            if handles
            else "give it no parameter",
        ) from error
    results = list(found) if isinstance(found, list | tuple) else [found]
    if not results or any(one is None for one in results):
        raise problem(
            "build/body",
            f"the function for {what} returns {'nothing' if found is None or not results else 'None for a result'}",
            where=where,
            why="what it returns becomes the result of the node",
            fix="return a tensor, or a tuple of tensors",
        )
    return results


def _output(
    home: Operators,
    graph: ir.Graph,
    what: str,
    one: Any,
    dtype: ir.DataType | None,
    taken: Sequence[ir.Value],
    where: str,
) -> ir.Value:
    """Returns the output for one result. A value that the graph does not make itself passes through an Identity,
    because a subgraph cannot return it."""
    if not isinstance(one, Tensor | ir.Value):
        if not (constant_tensors.is_array(one) or constant_tensors.is_python(one)):
            raise problem(
                "build/body",
                f"the function for {what} returns a {type(one).__name__}",
                where=where,
                why="results are tensors of the graph, arrays, or Python numbers",
                fix="return a tensor, or a tuple of tensors",
            )
        one = home.constant(one, dtype if constant_tensors.is_python(one) else None)
    handle = home.tensor(one.value if isinstance(one, Tensor) else one)
    value = handle.value
    if value.producer() is None or value.graph is not graph or any(value is other for other in taken):
        made: Tensor = home.Identity(handle)
        return made.value
    return value


def refuse_difference(what: str, index: int, a: str, b: str, labels: tuple[str, str], where: str) -> OnnxsmithError:
    """Returns the error for two results with different types in the same position."""
    return problem(
        "build/body",
        f"result {index} of {what} is of {a} in {labels[0]}, and of {b} in {labels[1]}",
        where=where,
        why="the result of a node has one type, whichever way it is computed",
        fix=f'convert one of them: g.Cast(tensor, to="{a}")',
    )
