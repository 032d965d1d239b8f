"""The nodes that stop a target are found by asking about parts of the model."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
import pytest

from onnxsmith.deployment.checking.refused_nodes import Ask, narrow
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.targets.judges.base import Refusal

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


def test_an_operator_that_the_message_names_is_blamed_before_a_tensor_with_the_name_of_a_word() -> None:
    text = HEAD.replace("20]", '20, "own": 1]') + "g (float[4] x) => (float[4] to) { m = own.Magic(x) to = Relu(m) }"
    ask = refusing(lambda node: node.domain == "own", say=lambda _: "Magic belongs to a domain of its own")
    assert labels(text, ask) == ["-> m"]


def test_nodes_of_sequences_are_blamed_by_a_target_that_takes_tensors_only() -> None:
    text = HEAD + (
        "g (float[3,4] x) => (seq(float[a,4]) s, float[b,c] y) <int64 i = {1}> "
        "{ s = SplitToSequence<axis = 0>(x) e = SequenceAt(s, i) y = Relu(e) }"
    )

    def ask(model: ir.Model) -> Refusal | None:
        ports = (*model.graph.inputs, *model.graph.outputs)
        refused = any(node.op_type == "SequenceAt" for node in model.graph)
        listed = any(isinstance(value.type, ir.SequenceType) for value in ports)
        return Refusal("the runtime accepts and returns only tensors") if refused or listed else None

    found = labels(text, ask)
    assert "-> e" in found
    assert "-> y" not in found


def test_each_node_has_its_own_reason_though_the_message_names_a_later_one() -> None:
    def ask(model: ir.Model) -> Refusal | None:
        refused = [node for node in model.graph if node.op_type in ("Exp", "Abs")]
        return Refusal(f"cannot run {refused[-1].outputs[0].name}: {refused[-1].op_type}") if refused else None

    text = HEAD + "g (float[n,4] x) => (float[n,4] b, float[n,4] c) { b = Exp(x) c = Abs(x) }"
    model = inferred(from_text(text))[0]
    found = narrow(model, ask, Refusal("cannot run c: Abs"))
    assert [(one.op, one.why) for one in found.culprits] == [
        ("Exp", "cannot run b: Exp"),
        ("Abs", "cannot run c: Abs"),
    ]


def test_a_model_that_is_taken_with_other_node_names_is_refused_as_a_whole() -> None:
    def ask(model: ir.Model) -> Refusal | None:
        names = [node.name for node in model.graph if node.name]
        return Refusal("two nodes have one name") if len(set(names)) < len(names) else None

    model = inferred(from_text(HEAD + "g (float[n] x) => (float[n] y) { [n] a = Neg(x) [n] y = Relu(a) }"))[0]
    found = narrow(model, ask, Refusal("two nodes have one name"))
    assert found.whole is not None
    assert found.whole.why == "two nodes have one name; 2 nodes are called 'n'"
    assert not found.culprits
