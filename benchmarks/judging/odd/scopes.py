"""Functions, branches, loops, and names that are used again in another scope."""

# ruff: noqa: E501 — models in ONNX text, a line each

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from judging.odd.base import Odd, X, affine, floats, model, text, value, weight

LOCAL = "local.fn"


def models() -> Iterator[Odd]:
    yield from _functions()
    yield from _branches()
    yield from _loops()
    yield from _microsoft()


def function(
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    nodes: Sequence[onnx.NodeProto],
    *,
    opset: int = 17,
    domain: str = LOCAL,
    **more: Any,
) -> onnx.FunctionProto:
    """A function; `more` goes to `onnx.helper.make_function`."""
    ids = [helper.make_opsetid("", opset), helper.make_opsetid(LOCAL, 1)]
    return helper.make_function(domain, name, list(inputs), list(outputs), list(nodes), ids, **more)


def calling(
    functions: Sequence[onnx.FunctionProto],
    *,
    ir: int = 10,
    opset: int = 17,
    domain: str = LOCAL,
    name: str = "F",
    **attributes: Any,
) -> onnx.ModelProto:
    """`y = F(x)` of a function."""
    node = helper.make_node(name, ["x"], ["y"], domain=domain, **attributes)
    return model([node], [value("x")], [value("y")], imports={"": opset, domain: 1}, functions=functions, ir=ir)


def _functions() -> Iterator[Odd]:
    relu = helper.make_node("Relu", ["a"], ["b"])
    plain = function("F", ["a"], ["b"], [relu])
    yield Odd("function", calling([plain]), X)
    yield Odd("function_ir_8", calling([plain], ir=8), X)
    for inner, outer in ((13, 17), (17, 18), (11, 17), (15, 21), (18, 17)):
        softmax = function("F", ["a"], ["b"], [helper.make_node("Softmax", ["a"], ["b"], axis=1)], opset=inner)
        yield Odd(f"function_opset_{inner}_in_{outer}", calling([softmax], opset=outer), X)
    made = affine(functions=[plain], imports={"": 17, LOCAL: 1}, ir=10)
    yield Odd("function_unused", made, X)
    chain = [helper.make_node("Softplus", ["a"], ["c"]), helper.make_node("G", ["c"], ["b"], domain=LOCAL)]
    tanh = function("G", ["a"], ["b"], [helper.make_node("Tanh", ["a"], ["b"])])
    yield Odd("function_calls_function", calling([function("F", ["a"], ["b"], chain), tanh]), X)
    yield Odd("function_calls_function_listed_before", calling([tanh, function("F", ["a"], ["b"], chain)]), X)
    deep = [
        function(
            "F" if n == 0 else f"F{n}",
            ["a"],
            ["b"],
            [helper.make_node(f"F{n + 1}" if n < 6 else "Relu", ["a"], ["b"], domain=LOCAL if n < 6 else "")],
        )
        for n in range(7)
    ]
    yield Odd("function_seven_deep", calling(deep), X)
    leaky = helper.make_node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    yield Odd("function_attribute", calling([function("F", ["a"], ["b"], [leaky], attributes=["slope"])], slope=0.3), X)
    default = function("F", ["a"], ["b"], [leaky], attribute_protos=[helper.make_attribute("slope", 0.2)])
    yield Odd("function_attribute_default", calling([default]), X)
    yield Odd("function_attribute_default_given", calling([default], slope=0.7), X)
    yield Odd("function_attribute_left_out", calling([function("F", ["a"], ["b"], [leaky], attributes=["slope"])]), X)
    constant = helper.make_node("Constant", [], ["k"])
    constant.attribute.append(
        onnx.AttributeProto(name="value_float", ref_attr_name="k", type=onnx.AttributeProto.FLOAT)
    )
    body = [constant, helper.make_node("Mul", ["a", "k"], ["b"])]
    yield Odd("function_constant_attribute", calling([function("F", ["a"], ["b"], body, attributes=["k"])], k=2.5), X)
    yield Odd(
        "function_same_names_as_graph",
        calling([function("F", ["x"], ["y"], [helper.make_node("Relu", ["x"], ["y"])])]),
        X,
    )
    yield Odd(
        "function_in_default_looking_domain",
        calling([function("F", ["a"], ["b"], [relu], domain="pkg.torch-2.0/x")], domain="pkg.torch-2.0/x"),
        X,
    )
    gives_input = function("F", ["a", "c"], ["a", "b"], [helper.make_node("Relu", ["c"], ["b"])])
    node = helper.make_node("F", ["x", "x"], ["p", "q"], domain=LOCAL)
    yield Odd(
        "function_gives_its_input",
        model(
            [node], [value("x")], [value("p"), value("q")], imports={"": 17, LOCAL: 1}, functions=[gives_input], ir=10
        ),
        X,
    )
    optional = function("F", ["a", "low"], ["b"], [helper.make_node("Clip", ["a", "low"], ["b"])])
    node = helper.make_node("F", ["x", ""], ["y"], domain=LOCAL)
    yield Odd(
        "function_optional_input_empty",
        model([node], [value("x")], [value("y")], imports={"": 17, LOCAL: 1}, functions=[optional], ir=10),
        X,
    )
    node = helper.make_node("F", ["x"], ["y"], domain=LOCAL)
    yield Odd(
        "function_optional_input_left_out",
        model([node], [value("x")], [value("y")], imports={"": 17, LOCAL: 1}, functions=[optional], ir=10),
        X,
    )
    first, second = (
        function("F", ["a"], ["b"], [helper.make_node(op, ["a"], ["b"])], overload=op.lower())
        for op in ("Relu", "Tanh")
    )
    nodes = [
        helper.make_node("F", ["x"], ["h"], domain=LOCAL, overload="relu"),
        helper.make_node("F", ["h"], ["y"], domain=LOCAL, overload="tanh"),
    ]
    yield Odd(
        "function_overloads",
        model(nodes, [value("x")], [value("y")], imports={"": 17, LOCAL: 1}, functions=[first, second], ir=10),
        X,
    )
    branch = [
        helper.make_graph([helper.make_node(op, ["a"], ["r"])], op, [], [value("r", None)]) for op in ("Relu", "Neg")
    ]
    inside = [
        helper.make_node("ReduceSum", ["a"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["b"], then_branch=branch[0], else_branch=branch[1]),
    ]
    zero = helper.make_node("Constant", [], ["zero"], value_float=0.0)
    yield Odd("function_with_if", calling([function("F", ["a"], ["b"], [zero, *inside])]), X)
    yield Odd(
        "function_named_like_an_operator",
        model(
            [helper.make_node("Relu", ["x"], ["y"], domain=LOCAL)],
            [value("x")],
            [value("y")],
            imports={"": 17, LOCAL: 1},
            functions=[function("Relu", ["a"], ["b"], [helper.make_node("Tanh", ["a"], ["b"])])],
            ir=10,
        ),
        X,
    )
    aliased = function("F", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"], domain="ai.onnx")])
    del aliased.opset_import[:]
    aliased.opset_import.append(helper.make_opsetid("ai.onnx", 17))
    yield Odd("function_alias_domain", calling([aliased]), X)
    yield Odd("function_shared_by_many", _many_calls(plain), X)


def _many_calls(plain: onnx.FunctionProto) -> onnx.ModelProto:
    names = ["x", *(f"v{i}" for i in range(29)), "y"]
    nodes = [helper.make_node("F", [a], [b], domain=LOCAL) for a, b in itertools.pairwise(names)]
    return model(nodes, [value("x")], [value("y")], imports={"": 17, LOCAL: 1}, functions=[plain], ir=10)


def _branches() -> Iterator[Odd]:
    feeds = {**X, "c": np.array(True)}
    head = "g (bool c, float[N,3] x) => (float[N,3] y)"
    yield text(
        "if_captures",
        head
        + " { y = If(c) <then_branch = t () => (float[N,3] r) { r = Relu(x) }, else_branch = e () => (float[N,3] r) { r = Neg(x) }> }",
        feeds,
    )
    yield text(
        "if_same_names_in_branches",
        head
        + " { y = If(c) <then_branch = t () => (float[N,3] r) { a = Relu(x) r = Neg(a) }, else_branch = t () => (float[N,3] r) { a = Neg(x) r = Tanh(a) }> }",
        feeds,
    )
    yield text(
        "if_nested",
        head
        + """ { y = If(c) <then_branch = t () => (float[N,3] r) { m = Neg(x) r = If(c) <then_branch = tt () => (float[N,3] q) { q = Relu(m) },
        else_branch = te () => (float[N,3] q) { q = Add(m, x) }> }, else_branch = e () => (float[N,3] p) { p = Identity(x) }> }""",
        feeds,
    )
    yield text(
        "if_names_reused_later",
        head
        + " { y0 = If(c) <then_branch = t () => (float[N,3] r) { a = Relu(x) r = Neg(a) }, else_branch = e () => (float[N,3] s) { s = Neg(x) }> a = Tanh(y0) y = Abs(a) }",
        feeds,
    )
    yield text(
        "if_constant_condition",
        "g (float[N,3] x) => (float[N,3] y) { c = Constant<value = bool {1}>() y = If(c) <then_branch = t () => (float[N,3] r) { r = Relu(x) }, else_branch = e () => (float[N,3] r) { r = Neg(x) }> }",
        X,
    )
    yield text(
        "if_different_shapes",
        "g (bool c, float[N,3] x) => (float[A,B] y) { y = If(c) <then_branch = t () => (float[N,3] r) { r = Relu(x) }, else_branch = e () => (float[3,N] r) { r = Transpose(x) }> }",
        feeds,
    )
    yield text(
        "if_condition_of_one_element",
        "g (bool[1] c, float[N,3] x) => (float[N,3] y) { y = If(c) <then_branch = t () => (float[N,3] r) { r = Relu(x) }, else_branch = e () => (float[N,3] r) { r = Neg(x) }> }",
        {**X, "c": np.array([True])},
    )
    then = helper.make_graph([], "t", [], [value("k", (3,))], [weight("k", floats(3))])
    other = helper.make_graph(
        [helper.make_node("Constant", [], ["k"], value=weight("v", floats(3)))], "e", [], [value("k", (3,))]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    yield Odd(
        "if_branch_gives_initializer",
        model([node], [value("c", (), TensorProto.BOOL)], [value("y", (3,))]),
        {"c": np.array(True)},
    )
    typeless = [
        helper.make_graph([helper.make_node(op, ["x"], ["r"])], op, [], [onnx.ValueInfoProto(name="r")])
        for op in ("Relu", "Neg")
    ]
    node = helper.make_node("If", ["c"], ["y"], then_branch=typeless[0], else_branch=typeless[1])
    yield Odd(
        "if_branch_output_without_type",
        model([node], [value("c", (), TensorProto.BOOL), value("x")], [value("y")]),
        feeds,
    )
    inner = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["r"])], "t", [], [value("r")], [weight("w", floats(3))]
    )
    outer = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["r"])], "e", [], [value("r")], [weight("w", floats(3))]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=outer)
    yield Odd(
        "if_initializers_of_one_name",
        model([node], [value("c", (), TensorProto.BOOL), value("x")], [value("y")]),
        feeds,
    )


def _loops() -> Iterator[Odd]:
    feeds = {"n": np.array(3, np.int64), "x": floats(2)}
    cond = helper.make_node("Identity", ["go"], ["on"])

    def loop(
        nodes: Sequence[onnx.NodeProto],
        outputs: Sequence[onnx.ValueInfoProto],
        inputs: Sequence[str],
        results: Sequence[str],
        states: Sequence[str],
        *extra: onnx.NodeProto,
    ) -> onnx.ModelProto:
        ports = [
            value("i", (), TensorProto.INT64),
            value("go", (), TensorProto.BOOL),
            *(value(s, (2,)) for s in states),
        ]
        body = helper.make_graph([cond, *nodes], "body", ports, [value("on", (), TensorProto.BOOL), *outputs])
        node = helper.make_node("Loop", list(inputs), list(results), body=body)
        return model(
            [*extra, node],
            [value("n", (), TensorProto.INT64), value("x", (2,))],
            [value(r, None) for r in results if r],
        )

    add = helper.make_node("Add", ["s", "x"], ["t"])
    yield Odd("loop_captures", loop([add], [value("t", (2,))], ["n", "", "x"], ["y"], ["s"]), feeds)
    scan = helper.make_node("Mul", ["s", "s"], ["u"])
    yield Odd(
        "loop_scan_output",
        loop([add, scan], [value("t", (2,)), value("u", (2,))], ["n", "", "x"], ["y", "z"], ["s"]),
        feeds,
    )
    yield Odd(
        "loop_result_not_taken",
        loop([add, scan], [value("t", (2,)), value("u", (2,))], ["n", "", "x"], ["", "z"], ["s"]),
        feeds,
    )
    yield Odd(
        "loop_only_scan", loop([helper.make_node("Abs", ["x"], ["u"])], [value("u", (2,))], ["n", ""], ["z"], []), feeds
    )
    yield Odd(
        "loop_zero_trips",
        loop([add], [value("t", (2,))], ["n", "", "x"], ["y"], ["s"]),
        {**feeds, "n": np.array(0, np.int64)},
    )
    untyped = [onnx.ValueInfoProto(name="t")]
    yield Odd("loop_output_without_type", loop([add], untyped, ["n", "", "x"], ["y"], ["s"]), feeds)
    yield text(
        "scan_9",
        """g (float[2] s, float[T,2] x) => (float[2] t, float[T,2] y) {
        t, y = Scan<num_scan_inputs=1, body = b (float[2] a, float[2] v) => (float[2] c, float[2] w) { c = Add(a, v) w = Identity(c) }>(s, x) }""",
        {"s": floats(2), "x": floats(4, 2)},
    )
    yield text(
        "scan_reversed",
        """g (float[2] s, float[T,2] x) => (float[2] t, float[T,2] y) {
        t, y = Scan<num_scan_inputs=1, scan_input_directions=[1], body = b (float[2] a, float[2] v) => (float[2] c, float[2] w) { c = Add(a, v) w = Mul(c, s) }>(s, x) }""",
        {"s": floats(2), "x": floats(4, 2)},
    )
    yield text(
        "loop_with_if_inside",
        """g (int64 n, float[2] x) => (float[2] y) { yes = Constant<value = bool {1}>()
        y = Loop(n, yes, x) <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) { on = Identity(go) one = Constant<value_int=1>() odd = Equal(i, one)
            t = If(odd) <then_branch = th () => (float[2] r) { r = Neg(s) }, else_branch = el () => (float[2] r) { r = Add(s, x) }> }> }""",
        feeds,
    )


def _microsoft() -> Iterator[Odd]:
    both = {"": 17, "com.microsoft": 1}
    for operator, inputs, more in (
        ("Gelu", ["x"], {}),
        ("FastGelu", ["x"], {}),
        ("QuickGelu", ["x"], {"alpha": 1.5}),
        ("BiasGelu", ["x", "w"], {}),
    ):
        node = helper.make_node(operator, inputs, ["y"], domain="com.microsoft", **more)
        yield Odd(
            f"microsoft_{operator}",
            model(
                [node], [value("x")], [value("y")], [weight("w", floats(3))] if len(inputs) > 1 else [], imports=both
            ),
            X,
        )
    fused = helper.make_node("FusedMatMul", ["x", "w"], ["y"], domain="com.microsoft", alpha=0.5, transB=1)
    yield Odd(
        "microsoft_FusedMatMul",
        model([fused], [value("x")], [value("y", None)], [weight("w", floats(4, 3))], imports=both),
        X,
    )
    skip = helper.make_node("SkipLayerNormalization", ["x", "s", "w", "b"], ["y"], domain="com.microsoft")
    yield Odd(
        "microsoft_SkipLayerNorm",
        model(
            [skip],
            [value("x", ("B", "N", 3)), value("s", ("B", "N", 3))],
            [value("y", None)],
            [weight("w", floats(3)), weight("b", floats(3))],
            imports=both,
        ),
        {"x": floats(1, 2, 3), "s": floats(1, 2, 3)},
    )
    quantised = helper.make_node("DynamicQuantizeMatMul", ["x", "w", "s"], ["y"], domain="com.microsoft")
    yield Odd(
        "microsoft_DynamicQuantizeMatMul",
        model(
            [quantised],
            [value("x")],
            [value("y", None)],
            [weight("w", np.ones((3, 4), np.int8)), weight("s", np.array([0.1], np.float32))],
            imports=both,
        ),
        X,
    )
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], domain="com.microsoft"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], domain="com.microsoft"),
    ]
    yield Odd(
        "microsoft_QDQ",
        model(
            nodes,
            [value("x")],
            [value("y")],
            [weight("s", np.array(0.1, np.float32)), weight("z", np.array(0, np.int8))],
            imports=both,
        ),
        X,
    )
    yield Odd(
        "microsoft_untyped_output",
        model(
            [helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")],
            [value("x")],
            [onnx.ValueInfoProto(name="y")],
            imports=both,
        ),
        X,
    )
