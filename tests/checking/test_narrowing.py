"""The nodes that stop a target are found by asking about parts of the model."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
import pytest

from onnxsmith.checking.narrowing import Ask, narrow
from onnxsmith.model.files.text import from_text
from onnxsmith.model.graph import walk
from onnxsmith.model.shapes.inferred import inferred
from onnxsmith.targets.base import Refusal

HEAD = '<ir_version: 10, opset_import: ["": 20]> '
CHAIN = HEAD + "g (float[n,4] x) => (float[n,4] y) { a = Neg(x) b = Exp(a) c = Abs(b) d = Exp(c) y = Relu(d) }"


def refusing(condition: Callable[[ir.Node], bool], *, say: Callable[[ir.Node], str] = lambda _: "no") -> Ask:
    def ask(model: ir.Model) -> Refusal | None:
        return next((Refusal(say(node)) for node in walk.all_nodes(model) if condition(node)), None)

    return ask


def labels(text: str, ask: Ask) -> list[str]:
    model = inferred(from_text(text))[0]
    said = ask(model)
    assert said is not None
    found = narrow(model, ask, said)
    assert found.whole is None
    return [one.label for one in found.culprits]


def test_every_node_of_a_refused_operator_is_named() -> None:
    assert labels(CHAIN, refusing(lambda node: node.op_type == "Exp")) == ["-> b", "-> d"]


def test_nodes_of_several_operators() -> None:
    assert labels(CHAIN, refusing(lambda node: node.op_type in ("Exp", "Relu", "Neg"))) == [
        "-> a",
        "-> b",
        "-> d",
        "-> y",
    ]


@pytest.mark.parametrize("wrong", ["-> a", "unnamed", "y"])
def test_a_message_that_names_another_node_misleads_nobody(wrong: str) -> None:
    ask = refusing(lambda node: node.op_type == "Abs", say=lambda _: f"failed at {wrong}")
    assert labels(CHAIN, ask) == ["-> c"]


def test_a_message_that_names_the_node_saves_questions() -> None:
    chain = " ".join(f"v{i + 1} = Neg(v{i})" for i in range(60))
    text = HEAD + f"g (float[n] v0) => (float[n] y) {{ {chain} w = Exp(v60) y = Relu(w) }}"

    def asked(say: Callable[[ir.Node], str]) -> int:
        model = inferred(from_text(text))[0]
        found = narrow(model, refusing(lambda node: node.op_type == "Exp", say=say), Refusal(f"{say(model.graph[-2])}"))
        assert [one.label for one in found.culprits] == ["-> w"]
        return found.asked

    assert asked(lambda node: f"cannot run {node.outputs[0].name}") < asked(lambda _: "cannot run it")


def test_a_node_is_refused_in_its_context_only() -> None:
    def ask(model: ir.Model) -> Refusal | None:
        for node in model.graph:
            made_by = node.inputs[0].producer() if node.inputs and node.inputs[0] is not None else None
            if node.op_type == "Abs" and made_by is not None and made_by.op_type == "Exp":
                return Refusal("Abs behind Exp")
        return None

    assert labels(CHAIN, ask) == ["-> c"]


def test_a_node_in_a_branch() -> None:
    text = HEAD + (
        "g (float[n] x, bool c) => (float[n] y) { w = Neg(x) y = If(c) <then_branch = t () => (float[n] p) "
        "{ q = Abs(w) p = Exp(q) }, else_branch = e () => (float[n] r) { r = Relu(w) }> }"
    )
    assert labels(text, refusing(lambda node: node.op_type == "Exp")) == ["-> y/-> p"]


def test_a_node_that_is_refused_for_having_branches() -> None:
    text = HEAD + (
        "g (float[n] x, bool c) => (float[n] y) { w = Neg(x) y = If(c) <then_branch = t () => (float[n] p) "
        "{ p = Abs(w) }, else_branch = e () => (float[n] r) { r = Relu(w) }> }"
    )
    assert labels(text, refusing(lambda node: node.op_type == "If")) == ["-> y"]


def test_the_file_as_a_whole() -> None:
    model = inferred(from_text(CHAIN))[0]
    found = narrow(model, lambda part: Refusal(f"opset {part.opset_imports['']}"), Refusal("opset 20"))
    assert found.whole == Refusal("opset 20")
    assert not found.culprits


def test_a_graph_that_cannot_be_cut_between_two_nodes_names_both() -> None:
    text = HEAD + (
        "g (float[n,4] x) => (float[n,4] y) { s = SplitToSequence<axis = 1>(x) a = ConcatFromSequence<axis = 1>(s) "
        "b = SequenceInsert(s, a) y = ConcatFromSequence<axis = 1>(b) }"
    )
    model = inferred(from_text(text))[0]
    ask = refusing(lambda node: node.op_type == "SequenceInsert")
    found = narrow(model, ask, Refusal("no"))
    assert "SequenceInsert" in {one.op for one in found.culprits} | {
        op for one in found.culprits for op in one.related
    } or any(one.related for one in found.culprits)


def test_the_search_ends_at_its_limit() -> None:
    chain = " ".join(f"v{i + 1} = {'Exp' if i % 2 else 'Log'}(v{i})" for i in range(60))
    model = inferred(from_text(HEAD + f"g (float[n] v0) => (float[n] v60) {{ {chain} }}"))[0]
    found = narrow(model, refusing(lambda node: node.op_type in ("Exp", "Log")), Refusal("no"), most=5)
    assert len(found.culprits) == 5
    assert not found.complete


def test_the_rest_is_asked_about() -> None:
    model = inferred(from_text(CHAIN))[0]
    found = narrow(model, refusing(lambda node: node.op_type == "Abs"), Refusal("no"))
    assert found.rest is True
