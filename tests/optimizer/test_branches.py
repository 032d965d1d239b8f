"""Ifs on constant conditions become the branch that is taken, whatever it captures and gives out."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.passes.unused import Unused
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.optimizer.branches import flatten
from onnxsmith.optimizer.journal import Journal
from onnxsmith.optimizer.simplification_state import State
from onnxsmith.verification.sessions import verify_models

HEAD = '<ir_version: 10, opset_import: ["": 20]>'


def flat(body: str) -> ir.Model:
    model = from_text(f"{HEAD} g {body}")
    copy = cloned(model)
    facts.spread_opsets(copy)
    state = State(copy, Inference(copy), Journal())
    assert flatten(state)
    Unused().run(copy)
    assert verify_models(model, copy, Verify(runtime="reference")).equal
    assert verify_models(model, copy, Verify(runtime="onnxruntime")).equal
    names = [v.name for node in copy.graph for v in node.outputs] + list(copy.graph.initializers)
    assert len(names) == len(set(names))
    assert [value.name for value in copy.graph.outputs] == [value.name for value in model.graph.outputs]
    assert not flatten(state)
    return copy


def ops(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


@pytest.mark.parametrize(("condition", "wanted"), [(1, ["Exp", "Abs", "Neg"]), (0, ["Exp", "Sqrt", "Abs", "Neg"])])
def test_the_branch_that_is_taken_stays(condition: int, wanted: list[str]) -> None:
    model = flat(
        f"""(float[N] x) => (float[N] y) <bool c = {{{condition}}}, float[1] unused = {{1}}> {{
            a = Exp(x)\n d = Log(a)
            b = If(c) <then_branch = t () => (float[M] p) {{ p = Abs(a) }},
                       else_branch = e () => (float[M] q) {{ o = Sqrt(a)\n q = Abs(o) }}>
            y = Neg(b)
        }}"""
    )
    assert ops(model) == wanted
    assert not model.graph.initializers


def test_what_the_other_branch_captured_is_freed() -> None:
    model = flat(
        """(float[N] x) => (float[N] y) <bool c = {1}, float w = {2}> {
            a = Exp(x)\n b = Mul(a, w)
            y = If(c) <then_branch = t () => (float[M] p) { p = Abs(x) },
                       else_branch = e () => (float[M] q) {
                           q = If(c) <then_branch = u () => (float[K] r) { r = Neg(b) },
                                      else_branch = v () => (float[K] s) { s = Neg(a) }> }>
        }"""
    )
    assert ops(model) == ["Abs"]
    assert not model.graph.initializers


OUTPUTS = {
    "a captured value": "{ p = Identity(a) }",
    "an initializer": "<float[2] p = {5, 6}> { o = Neg(a) }",
    "a computed value": "{ p = Neg(a) }",
}


@pytest.mark.parametrize("case", OUTPUTS)
@pytest.mark.parametrize("is_output", [True, False])
def test_kinds_of_results(case: str, is_output: bool) -> None:
    end = "" if is_output else "y = Abs(z)"
    flat(
        f"""(float[2] x) => (float[2] y) <bool c = {{1}}> {{
            a = Exp(x)
            {"y" if is_output else "z"} = If(c) <then_branch = t () => (float[2] p) {OUTPUTS[case]},
                       else_branch = e () => (float[2] q) {{ q = Neg(x) }}>
            {end}
        }}"""
    )


def direct(model: ir.Model, names: list[str]) -> ir.Model:
    """Gives the If's first branch these outputs, the same value twice if asked, which text cannot."""
    node = next(node for node in model.graph if node.op_type == "If")
    branch = node.attributes["then_branch"].as_graph()
    inner = {v.name: v for n in branch for v in n.outputs}
    for index, name in enumerate(names):
        branch.outputs[index] = inner[name]
    return model


@pytest.mark.parametrize("names", [["o", "o"], ["o", "p"], ["p", "o"], ["p", "p"]])
@pytest.mark.parametrize("ends", ["", "y = Abs(r)\n z = Neg(s)"])
def test_repeated_and_swapped_results(names: list[str], ends: str) -> None:
    left, right = ("r", "s") if ends else ("y", "z")
    model = from_text(
        f"""{HEAD} g (float[2] x) => (float[2] y, float[2] z) <bool c = {{1}}> {{
            a = Exp(x)
            {left}, {right} = If(c)
                <then_branch = t () => (float[2] o, float[2] p) {{ o = Neg(a)\n p = Sqrt(a) }},
                 else_branch = e () => (float[2] q, float[2] w) {{ q = Neg(x)\n w = Abs(x) }}>
            {ends}
        }}"""
    )
    from onnxsmith.runtimes.base import get

    wanted = {"o": "Neg", "p": "Sqrt"}
    copy = direct(model, names)
    facts.spread_opsets(copy)
    assert flatten(State(copy, Inference(copy), Journal()))
    Unused().run(copy)
    for index, name in enumerate(names):
        value = copy.graph.outputs[index]
        assert value.name == "yz"[index]
        maker = value.producer()
        assert maker is not None
        if ends or maker.op_type == "Identity":
            assert maker.inputs[0] is not None
            maker = maker.inputs[0].producer()
        assert maker is not None
        assert maker.op_type == wanted[name]
    with get("onnxruntime").prepare(copy) as session:
        assert session.signature


def test_nested_ifs_go_at_once() -> None:
    model = flat(
        """(float[N] x) => (float[N] y) <bool c = {1}> {
            a = Exp(x)
            y = If(c) <then_branch = t () => (float[M] p) {
                           no = Constant<value = bool {0}>()\n b = Neg(a)
                           p = If(no) <then_branch = u () => (float[K] r) { r = Sin(b) },
                                       else_branch = v () => (float[K] s) { k = Cos(b)\n s = Add(k, a) }> },
                       else_branch = e () => (float[M] q) { q = Neg(a) }>
        }"""
    )
    assert ops(model) == ["Exp", "Neg", "Cos", "Add"]


@pytest.mark.parametrize("order", [(1, 0), (0, 1), (1, 1)])
def test_the_same_names_in_several_branches(order: tuple[int, int]) -> None:
    ifs = [
        f"""{name} = If({condition}) <then_branch = t () => (float[2] p) <float[2] w = {{1, 2}}> {{
            o = Add({source}, w)\n p = Exp(o) }},
            else_branch = e () => (float[2] p) <float[2] w = {{3, 4}}> {{ o = Mul({source}, w)\n p = Abs(o) }}>"""
        for name, source, condition in (("a", "x", f"c{order[0]}"), ("b", "a", f"c{order[1]}"), ("d", "b", "live"))
    ]
    text = "\n".join(ifs)
    model = flat(
        f"(float[2] x, bool live) => (float[2] y) <bool c0 = {{0}}, bool c1 = {{1}}> {{ {text}\n y = Neg(d) }}"
    )
    assert ops(model).count("If") == 1


def test_conditions_that_may_change_stay() -> None:
    for text in (
        "(float[2] x, bool c) => (float[2] y) <bool c = {1}>",
        "(float[2] x, bool c) => (float[2] y)",
    ):
        model = from_text(
            f"""{HEAD} g {text} {{ y = If(c) <then_branch = t () => (float[2] p) {{ p = Neg(x) }},
                else_branch = e () => (float[2] q) {{ q = Abs(x) }}> }}"""
        )
        assert not flatten(State(model, Inference(model), Journal()))


def test_a_loop_in_a_branch_moves_with_what_it_captures(tmp_path: object) -> None:
    from pathlib import Path

    model = flat(
        """(float[2] x) => (float[2] y) <bool c = {1}, int64 n = {3}> {
            a = Exp(x)
            y = If(c) <then_branch = t () => (float[2] p) <float[2] w = {1, 2}> {
                           b = Neg(a)
                           p = Loop(n, c, b) <body = l (int64 i, bool go, float[2] s) => (bool on, float[2] r) {
                               on = Identity(go)\n m = Add(s, w)\n r = Add(m, a) }> },
                       else_branch = e () => (float[2] q) { q = Neg(a) }>
        }"""
    )
    assert ops(model) == ["Exp", "Neg", "Loop"]
    save(model, Path(str(tmp_path)) / "m.onnx")


def test_an_if_inside_a_branch_that_stays() -> None:
    model = flat(
        """(float[2] x, bool live) => (float[2] y) <bool c = {0}> {
            a = Exp(x)
            y = If(live) <then_branch = t () => (float[2] p) {
                     b = Neg(a)
                     p = If(c) <then_branch = u () => (float[2] r) { r = Sin(b) },
                                else_branch = v () => (float[2] s) <float[2] w = {1, 2}> { s = Mul(b, w) }> },
                  else_branch = e () => (float[2] q) { q = Neg(a) }>
        }"""
    )
    branch = next(node for node in model.graph if node.op_type == "If").attributes["then_branch"].as_graph()
    assert [node.op_type for node in branch] == ["Neg", "Mul"]


def test_a_branch_with_an_output_too_many_stays() -> None:
    """It is no valid model; a runtime says so."""
    model = from_text(
        f"""{HEAD} g (float[2] x) => (float[2] y) <bool c = {{1}}> {{
            y = If(c) <then_branch = t () => (float[2] p, float[2] o) {{ p = Neg(x)\n o = Neg(x) }},
                       else_branch = e () => (float[2] q) {{ q = Abs(x) }}> }}"""
    )
    assert not flatten(State(model, Inference(model), Journal()))
