"""Inputs that a graph ignores although the module uses them, and tensors inside objects that cannot be unpacked."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
import torch

from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.graph import baked_inputs
from onnxsmith.exporter.inputs import module_program as programs
from onnxsmith.graph.files.text import from_text


class Uses(torch.nn.Module):
    """A forward given as a function. Counts its calls."""

    def __init__(self, forward: Any) -> None:
        super().__init__()
        self.given, self.calls = forward, 0

    def forward(self, x: Any, y: Any) -> Any:
        self.calls += 1
        return self.given(x, y)


def lost(forward: Any, y: torch.Tensor, body: str = "z = Relu(x)", head: str = "") -> list[str]:
    """The inputs said to be constants, for a graph of x and y that is written as ONNX text."""
    module = Uses(forward)
    built = programs.build(TorchModel(module, (torch.ones(2, 3), y)), {})
    text = f'<ir_version: 10, opset_import: ["": 21]> g (float[2,3] x, float y) => (float[2,3] z) {head} {{ {body} }}'
    found = baked_inputs.constant_inputs(built, from_text(text), "net.py:3")
    return [str(problem.what).split("'")[1] for problem in found]


HALF, ZERO, LONG, FLAG = torch.tensor(0.5), torch.tensor(0.0), torch.tensor(7), torch.tensor(True)
BYTE = torch.tensor(255, dtype=torch.uint8)


@pytest.mark.parametrize("y", [HALF, ZERO, LONG, FLAG, BYTE, torch.zeros(3), torch.tensor([], dtype=torch.float32)])
def test_an_input_that_changes_the_results_is_found(y: torch.Tensor) -> None:
    used = y.numel() > 0
    assert lost(lambda x, y: x + y.sum(), y) == (["y"] if used else [])
    assert lost(lambda x, y: (x, x * y.sum()), y) == (["y"] if used else [])


@pytest.mark.parametrize("y", [HALF, LONG, FLAG])
def test_an_input_that_the_module_ignores_is_no_problem(y: torch.Tensor) -> None:
    assert lost(lambda x, y: x * 2, y) == []


def test_only_a_zero_or_only_another_number_may_show_the_difference() -> None:
    assert lost(lambda x, y: x + (y == 0), LONG) == ["y"]
    assert lost(lambda x, y: x + (y == 8), LONG) == ["y"]
    assert lost(lambda x, y: x + (y == 1), torch.tensor(0)) == ["y"]
    assert lost(lambda x, y: x + (y < 0), HALF) == ["y"]
    assert lost(lambda x, y: x + (y > 0), ZERO) == ["y"]


def test_a_result_that_is_not_a_number_hides_no_difference() -> None:
    assert lost(lambda x, y: (x * float("nan"), x + y), HALF) == ["y"]
    assert lost(lambda x, y: x * float("nan") + y, HALF) == []


def test_a_module_that_draws_or_rejects_other_values_says_nothing() -> None:
    assert lost(lambda x, y: x + torch.rand(2, 3) + y, HALF) == []

    def rejects(x: Any, y: Any) -> Any:
        if y != 7:
            raise ValueError("seven")
        return x + y

    assert lost(rejects, LONG) == []

    def rejects_zero(x: Any, y: Any) -> Any:
        return x / (1 if y else y.item() // 0) + y

    assert lost(rejects_zero, LONG) == ["y"]


def test_a_module_that_fails_when_it_runs_again_says_nothing() -> None:
    state = []

    def once(x: Any, y: Any) -> Any:
        state.append(1)
        if len(state) > 1:
            raise ValueError("again")
        return x + y

    assert lost(once, HALF) == []


def test_the_problem_names_the_input_and_the_line() -> None:
    built = programs.build(TorchModel(Uses(lambda x, y: x + y), (torch.ones(2, 3), HALF)), {})
    text = '<ir_version: 10, opset_import: ["": 21]> g (float[2,3] x, float y) => (float[2,3] z) { z = Relu(x) }'
    (found,) = baked_inputs.constant_inputs(built, from_text(text), "net.py:3")
    assert (found.id, found.where) == ("export/constant-input", "net.py:3")
    assert found.what == "input 'y' became a constant: no output of the graph depends on it"


READING = {
    "directly": "z = Add(x, y)",
    "through nodes": "a = Neg(y) z = Add(x, a)",
    "twice": "a = Add(y, y) b = Add(a, a) c = Add(x, a) z = Add(b, c)",
    "after a left-out operand": "z = Clip(x, , y)",
    "in a branch": "c = Constant <value = bool {1}> () z = If (c) <"
    "then_branch = t () => (float[2,3] p) { a = Neg(y) p = Add(x, a) }, "
    "else_branch = e () => (float[2,3] q) { q = Identity(x) }>",
}


@pytest.mark.parametrize("body", READING.values(), ids=READING)
def test_the_module_is_not_run_where_the_graph_depends_on_every_input(body: str) -> None:
    module = Uses(lambda x, y: x + y)
    built = programs.build(TorchModel(module, (torch.ones(2, 3), HALF)), {})
    text = f'<ir_version: 10, opset_import: ["": 21]> g (float[2,3] x, float y) => (float[2,3] z) {{ {body} }}'
    before = module.calls
    assert baked_inputs.constant_inputs(built, from_text(text)) == ()
    assert module.calls == before


def test_a_node_that_no_output_needs_does_not_read_an_input() -> None:
    assert lost(lambda x, y: x + y, HALF, "a = Add(x, y) z = Relu(x)") == ["y"]
    dead = "c = Constant <value = bool {1}> () z = If (c) <"
    dead += "then_branch = t () => (float[2,3] p) { a = Neg(y) p = Identity(x) }, "
    dead += "else_branch = e () => (float[2,3] q) { q = Identity(x) }>"
    assert lost(lambda x, y: x + y, HALF, dead) == ["y"]


def test_a_graph_of_a_list_of_graphs_may_read_an_input() -> None:
    text = '<ir_version: 10, opset_import: ["": 21]> g (float[2,3] x, float y) => (float[2,3] z) { z = Relu(x) }'
    model = from_text(text)
    inner = ir.Node("", "Neg", [model.graph.inputs[1]])
    listed = ir.AttrGraphs("bodies", [ir.Graph([], list(inner.outputs), nodes=[inner], name="body")])
    model.graph.node(0).attributes["bodies"] = listed
    built = programs.build(TorchModel(Uses(lambda x, y: x + y), (torch.ones(2, 3), HALF)), {})
    assert baked_inputs.constant_inputs(built, model) == ()


class Holder:
    def __init__(self, tensor: Any, number: int = 3) -> None:
        self.tensor, self.number, self.listed = tensor, number, [tensor]


class Slotted:
    __slots__ = ("one", "two", "unset")

    def __init__(self, one: Any) -> None:
        self.one, self.two = one, 2


class Narrow:
    __slots__ = "only"

    def __init__(self, only: Any) -> None:
        self.only = only


class Below(Narrow):
    """Has a dictionary beside the slot of its base."""


TENSOR = torch.ones(3)
HELD = {
    "a dictionary": (Holder(TENSOR), ["tensor", "listed"]),
    "no tensor": (Holder(None), []),
    "slots": (Slotted(TENSOR), ["one"]),
    "slots without a tensor": (Slotted(1), []),
    "one slot": (Narrow(TENSOR), ["only"]),
    "a slot of the base": (Below(TENSOR), ["only"]),
    "a tensor": (TENSOR, []),
    "a module": (torch.nn.Linear(2, 2), []),
    "a class": (type("Named", (), {"tensor": TENSOR}), []),
    "a number": (3.5, []),
}


@pytest.mark.parametrize(("value", "names"), HELD.values(), ids=HELD)
def test_objects_with_tensors_inside_are_found(value: Any, names: list[str]) -> None:
    built = programs.build(TorchModel(Uses(lambda x, y: x), (torch.ones(2, 3), HALF)), {})
    program = built.program
    program.leaves, program.names = [*program.leaves, value], [*program.names, None]
    expected = [(value, names)] if names else []
    found = baked_inputs.closed_objects(program)
    assert [(one, held) for one, held in found if one is value] == expected
    assert len(found) == len(expected)
    said = list(baked_inputs.notes(program))
    assert len(said) == len(expected)
    assert all(f"class {type(value).__name__} cannot" in one and ", ".join(names) in one for one in said)
