"""`order`: changes the order of the graph inputs and outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.handles import TensorHandle
from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True)
class Order(Step):
    """Changes the order of the graph inputs to `inputs`, and of the graph outputs to `outputs`: lists that name each of
    them once. Inputs that have a default value may be left out; they follow the others. No number changes."""

    first = ("inputs", "outputs")

    inputs: list[Any] | tuple[Any, ...] = ()
    outputs: list[Any] | tuple[Any, ...] = ()

    def apply(self, work: Work) -> str:
        graph = work.model.graph
        if not self.inputs and not self.outputs:
            names = ", ".join(f'"{value.name}"' for value in graph.outputs)
            raise problem(
                "edit/step-argument",
                "order needs inputs or outputs",
                why="without them, nothing changes",
                fix=f"write outputs = [{names}], in the order that you want",
            )
        said = []
        for what, given, ports in (("inputs", self.inputs, graph.inputs), ("outputs", self.outputs, graph.outputs)):
            if given:
                values = _ordered(what, given, list(ports))
                ports.clear()
                ports.extend(values)
                said.append(f"{what}: {', '.join(value.name or '' for value in values)}")
        if self.inputs:
            work.adapt_reference.append(lambda model: _as_edited(model, work))
        return "; ".join(said)


def _as_edited(model: ir.Model, work: Work) -> ir.Model:
    """Returns the original of the comparison with its inputs in the order of the edited model."""
    order = {work.inputs.get(value.name or ""): at for at, value in enumerate(work.model.graph.inputs)}
    inputs = sorted(model.graph.inputs, key=lambda value: order.get(value.name, len(order)))
    model.graph.inputs.clear()
    model.graph.inputs.extend(inputs)
    return model


def _ordered(what: str, given: Sequence[Any], ports: list[ir.Value]) -> list[ir.Value]:
    """Returns the ports in the given order.

    Raises:
        OnnxsmithError: `edit/port-order` for a name that is absent, doubled or left out.
    """
    names = [one.name if isinstance(one, TensorHandle) else str(one) for one in given]
    by_name = {value.name or "": value for value in ports}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        near = near_names(unknown[0], [name for name in by_name if name not in names] or list(by_name), 1)
        raise _refusal(what, f"no graph {what[:-1]} is called {unknown[0]!r}", f"write {near[0]!r}" if near else "",
                       by_name)  # fmt: skip
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise _refusal(what, f"{what} names {twice[0]!r} more than once", f"leave one {twice[0]!r} out", by_name)
    left = [value for value in ports if value.name not in names]
    needed = [value.name or "" for value in left if not (what == "inputs" and value.is_initializer())]
    if needed:
        full = ", ".join(f'"{name}"' for name in (*names, *needed))
        raise _refusal(what, f"{what} leaves {needed[0]!r} out", f"write {what} = [{full}]", by_name)
    return [*(by_name[name] for name in names), *left]


def _refusal(what: str, text: str, fix: str, known: dict[str, ir.Value]) -> OnnxsmithError:
    return problem(
        "edit/port-order",
        text,
        where=what,
        why=f"the graph {what} are {', '.join(known)}, and the order needs each of them once",
        fix=fix or f"write one of {', '.join(map(repr, known))}",
    )
