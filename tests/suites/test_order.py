"""Rules have no order: whichever comes first, the same graph comes out, up to names and the rounding of constants."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import random
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import onnxsmith
from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.optimizer.rules.base import Rule
from onnxsmith.optimizer.simplify import simplified
from tests.suites.agreement import Trap, read
from tests.suites.random_layers import texts

RULES = {
    name: rule
    for name, rule in rooms.members("onnxsmith.optimizer.rules", Rule).items()
    if not rule.domain and not rule.target
}
"""The rules that run without being asked for."""
NASTY = sorted(path.stem for path in (Path(__file__).parent / "nasty").glob("test_*.py"))


def canonical(model: ir.Model) -> tuple[list[str], Counter[str]]:
    """What each output is computed by, and how often each operator stands in the main graph."""
    seen: dict[ir.Value, str] = {value: f"input {value.name}" for value in model.graph.inputs}
    _walk(model.graph, seen)
    return [_known(value, seen) for value in model.graph.outputs], Counter(node.op_type for node in model.graph)


def _walk(graph: ir.Graph, seen: dict[ir.Value, str]) -> None:
    for node in graph:
        inputs = [_known(value, seen) for value in node.inputs]
        attributes = sorted(f"{name}={_attribute(held, seen)}" for name, held in node.attributes.items())
        for index, output in enumerate(node.outputs):
            text = f"{node.domain}.{node.op_type} {inputs} {attributes} {index}"
            seen[output] = hashlib.sha256(text.encode()).hexdigest()


def _known(value: ir.Value | None, seen: dict[ir.Value, str]) -> str:
    if value is None:
        return "nothing"
    if value in seen:
        return seen[value]
    tensor = ir.convenience.get_const_tensor(value)
    return _tensor(tensor) if tensor is not None else "unknown"


def _tensor(tensor: ir.TensorProtocol) -> str:
    """Floats by dtype and shape: factors that are merged in another order round otherwise."""
    contents = "" if tensor.dtype.is_floating_point() else tensor.numpy().tobytes().hex()
    return f"{tensor.dtype} {list(tensor.shape.numpy())} {contents}"


def _attribute(attribute: ir.Attr, seen: dict[ir.Value, str]) -> str:
    if attribute.type == ir.AttributeType.GRAPH and not attribute.is_ref():
        graph = attribute.as_graph()
        inner = {**seen, **{value: f"inner {index}" for index, value in enumerate(graph.inputs)}}
        _walk(graph, inner)
        return str([_known(value, inner) for value in graph.outputs])
    if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
        return _tensor(attribute.as_tensor())
    return str(attribute.value)


def assert_order_does_not_matter(model: ir.Model, monkeypatch: pytest.MonkeyPatch, seeds: Iterable[int]) -> None:
    """Simplifies with the rules in their own order; tried in other orders; and one after the other, each until it finds
    nothing more, in other orders still."""
    wanted = canonical(simplified(model)[0])
    for number in seeds:
        order = list(RULES)
        if number:
            random.Random(number).shuffle(order)
        else:
            order.reverse()
        found = canonical(tried_in(order, model, monkeypatch))
        assert found[1] == wanted[1], f"tried in the order {order}"
        assert found == wanted, f"tried in the order {order}"
        found = canonical(one_after_the_other(order, model))
        assert found[1] == wanted[1], f"one after the other: {order}"
        assert found == wanted, f"one after the other: {order}"


def tried_in(order: list[str], model: ir.Model, monkeypatch: pytest.MonkeyPatch) -> ir.Model:
    """Simplified, with each node held to the rules in this order."""
    members = rooms.members

    def ordered(room: str, kind: type) -> dict[str, Any]:
        return {name: RULES[name] for name in order} if room == "onnxsmith.optimizer.rules" else members(room, kind)

    with monkeypatch.context() as patch:
        patch.setattr(rooms, "members", ordered)
        return simplified(model)[0]


def one_after_the_other(order: list[str], model: ir.Model) -> ir.Model:
    """Simplified by each rule alone, and then by all."""
    for name in order:
        model, _ = simplified(model, only=[name])
    return simplified(model)[0]


def before(rule: Rule) -> str:
    """The text before the rule, from its page."""
    match = re.search(r"^Before:\n((?:    .*\n|\n)+)", inspect.getdoc(type(rule)) or "", re.MULTILINE)
    assert match
    return textwrap.dedent(match[1])


def prefixed(model: ir.Model, prefix: str) -> onnx.ModelProto:
    """The model with another name for each value, in branches and bodies too."""
    for graph in walk.main_graphs(model):
        for value in (*graph.inputs, *graph.initializers.values(), *(v for node in graph for v in node.outputs)):
            if value.name:
                value.name = f"{prefix}{value.name}"
    proto: onnx.ModelProto = ir.to_proto(model)
    return proto


def combined() -> Iterator[tuple[int, onnx.ModelProto]]:
    """For each opset, one model of what all rules rewrite, side by side."""
    found: dict[int, onnx.ModelProto] = {}
    for number, rule in enumerate(RULES.values()):
        model = prefixed(from_text(before(rule)), f"r{number}_")
        whole = found.setdefault(model.opset_import[0].version, model)
        if whole is not model:
            for part in ("node", "input", "output", "initializer"):
                getattr(whole.graph, part).extend(getattr(model.graph, part))
    yield from found.items()


OPSETS = [opset for opset, _ in combined()]


@pytest.mark.parametrize("opset", OPSETS)
def test_what_all_rules_rewrite(opset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_order_does_not_matter(load(dict(combined())[opset]), monkeypatch, range(3))


@pytest.mark.whole
@pytest.mark.parametrize("first", range(3, 20, 3))
@pytest.mark.parametrize("opset", OPSETS)
def test_what_all_rules_rewrite_in_more_orders(opset: int, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_order_does_not_matter(load(dict(combined())[opset]), monkeypatch, range(first, first + 3))


def traps_in(name: str) -> list[Trap]:
    module = importlib.import_module(f"tests.suites.nasty.{name}")
    traps: dict[str, Trap] = getattr(module, "TRAPS", {})
    return list(traps.values())


@pytest.mark.parametrize("name", NASTY)
def test_traps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for trap in traps_in(name)[::12]:
        if not trap.tensors:
            assert_order_does_not_matter(read(trap.text, trap.opset), monkeypatch, range(1))


@pytest.mark.whole
@pytest.mark.parametrize("part", range(6))
@pytest.mark.parametrize("name", NASTY)
def test_all_traps(name: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for trap in traps_in(name)[part::6]:
        if not trap.tensors:
            assert_order_does_not_matter(read(trap.text, trap.opset), monkeypatch, range(3))


@pytest.mark.whole
def test_an_export(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small network as torch exports it, unsimplified."""
    torch = pytest.importorskip("torch")
    nn = torch.nn
    layers = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu", dropout=0.0)
    network = nn.Sequential(
        nn.Conv1d(3, 8, 3, padding=1), nn.BatchNorm1d(8), nn.Hardswish(), nn.Flatten(1), nn.Unflatten(1, (8, 6)),
        nn.Conv1d(8, 8, 1), nn.SiLU(), nn.Linear(6, 8), layers, nn.LayerNorm(8), nn.Dropout(), nn.Softmax(-1),
    ).eval()  # fmt: skip
    result = onnxsmith.export(
        network, (torch.randn(2, 3, 6),), dynamic={"input": {0: "batch"}}, simplify=False, verify=False
    )
    assert result.model is not None
    assert_order_does_not_matter(result.model, monkeypatch, range(3))


ONCE = {
    "query, key and value stacked along a dimension of 1": """<ir_version: 8, opset_import: ["": 17]>
        g (float[5,n,12] x) => (float[n,5,4] y)
        <int64[4] made = {5, -1, 3, 4}, int64[1] first = {0}, int64[1] axis = {3}, int64 q = {0}, int64 k = {1}> {
            a = Reshape(x, made)
            b = Unsqueeze(a, first)
            c = Transpose <perm = [3, 2, 1, 0, 4]> (b)
            d = Squeeze(c, axis)
            e = Gather(d, q)
            f = Gather(d, k)
            y = Sub(e, f)
        }""",
    "a shape taken apart and joined in an output": """<ir_version: 8, opset_import: ["": 17]>
        g (float[n,2,m] x) => (int64[3] y) <int64[1] zero = {0}, int64[1] two = {2}, int64[1] three = {3}> {
            a = Shape(x)
            b = Slice(a, zero, two)
            c = Slice(a, two, three)
            d = Concat <axis = 0> (b, c)
            y = Add(d, zero)
        }""",
    "a product of matrices and zeros": """<ir_version: 8, opset_import: ["": 17]>
        g (float[n,2] x) => (float[n,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2] zeros = {0, 0}> {
            a = MatMul(x, w)
            y = Add(a, zeros)
        }""",
    "a transposed weight that folding takes": """<ir_version: 8, opset_import: ["": 17]>
        g (float[n,3] x) => (float[n,2] y) <float[2,3] w = {1, 2, 3, 4, 5, 6}> {
            t = Transpose <perm = [1, 0]> (w)
            y = MatMul(x, t)
        }""",
    "a transpose without a permutation before a view that does nothing": """<ir_version: 8, opset_import: ["": 17]>
        g (float[2,2] x) => (float[2,2] y) <int64[2] s = {2, 2}> {
            t = Transpose(x)
            y = Reshape(t, s)
        }""",
    "a known target that is an output too": """<ir_version: 8, opset_import: ["": 17]>
        g (float[3] x, float z) => (float[3] y, int64[1] s) {
            s = Shape(x)
            y = Expand(z, s)
        }""",
    "a known target with the size of the data": """<ir_version: 8, opset_import: ["": 17]>
        g (float[2,1] x) => (float[2,3] y) <int64[1] three = {3}> {
            a = Shape <start = 0, end = 1> (x)
            b = Concat <axis = 0> (a, three)
            y = Expand(x, b)
        }""",
}
"""Graphs that once came out differently."""


@pytest.mark.parametrize("name", ONCE)
def test_what_once_differed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_order_does_not_matter(from_text(ONCE[name]), monkeypatch, range(2))


def test_random_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    for_random_graphs(20, monkeypatch)


@pytest.mark.whole
@pytest.mark.parametrize("part", range(1, 11))
def test_more_random_graphs(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for_random_graphs(50, monkeypatch, part)


def for_random_graphs(count: int, monkeypatch: pytest.MonkeyPatch, part: int = 0) -> None:
    """A failure is not made smaller, because that takes minutes: its graph is in the note."""

    @seed(part)
    @settings(
        max_examples=count,
        derandomize=False,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(texts())
    def holds(text: str) -> None:
        try:
            assert_order_does_not_matter(from_text(text), monkeypatch, range(1))
        except (AssertionError, OnnxsmithError) as error:
            error.add_note(text)
            raise

    holds()
