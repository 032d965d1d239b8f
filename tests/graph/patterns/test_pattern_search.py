"""What matches a pattern, and what does not."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.patterns.pattern_conversion import pattern_of
from onnxsmith.graph.patterns.pattern_search import find
from onnxsmith.graph.patterns.pattern_tracing import Const, Scalar, near
from tests.graph.patterns.models import BRANCHES, model, places
from tests.work import calls, grows_linearly


def test_a_function_and_a_text_match_alike() -> None:
    given = model("a = Relu(x) y = Mul(s, a)", held="float s = {0.5}")

    def pattern(op, x, scale: Const):  # type: ignore[no-untyped-def]
        return op.Mul(op.Relu(x), scale)

    for source in (pattern, "{ a = Relu(x) y = Mul(a, c_scale) }", "(x, const s) => (y) { y = Mul(Relu(x), s) }"):
        (match,) = find(given, source)
        assert match["x"].name == "x"
        assert [array.item() for array in match.constants.values()] == [0.5]
        assert [node.op_type for node in match.nodes if node] == ["Relu", "Mul"]
        assert match.kept == ()


@pytest.mark.parametrize("op", ["Add", "Mul", "Min", "Max", "Sum", "Mean"])
def test_commutative_operands_match_in_both_orders(op: str) -> None:
    given = model(f"r = Relu(x) a = {op}(r, x) b = {op}(x, r) y = Add(a, b)")
    assert places(given, f"{op}(Relu(x), _)") == ["a", "b"]


@pytest.mark.parametrize("op", ["Sub", "Div", "Pow"])
def test_other_operands_match_in_their_order(op: str) -> None:
    assert places(model(f"r = Relu(x) a = {op}(r, x) b = {op}(x, r) y = Add(a, b)"), f"{op}(Relu(x), _)") == ["a"]


def test_three_operands_match_in_any_order() -> None:
    given = model("r = Relu(x) s = Sigmoid(x) y = Sum(x, s, r)")
    assert places(given, "Sum(Relu(x), Sigmoid(x), x)") == ["y"]
    assert places(given, "Sum(Relu(x), ...)") == ["y"]
    assert places(given, "Sum(Relu(x), Sigmoid(x))") == []
    assert places(given, "Sum(Relu(x), Tanh(x), x)") == []


def test_an_add_that_broadcasts_one_way_keeps_its_order() -> None:
    head = '<ir_version: 3, opset_import: ["": 6]> g (float[2,3] x, float[3] b) => (float[2,3] y)'
    text = f"{head} {{ r = Relu(x) y = Add<broadcast = 1>(r, b) }}"
    assert places(from_text(text), "Add(Relu(x), b)") == ["y"]
    assert places(from_text(text), "Add(b, Relu(x))") == []


@pytest.mark.parametrize(("wanted", "matches"), [("axis = -1", True), ("axis = 1", False), ("axis = ?", True)])
def test_a_default_counts_as_given(wanted: str, matches: bool) -> None:
    for written in ("", "<axis = -1>"):
        assert bool(places(model(f"y = Softmax {written} (x)"), f"Softmax <{wanted}> (x)")) is matches


def test_a_default_is_that_of_the_opset() -> None:
    old, new = model("y = Softmax(x)", opset=12), model("y = Softmax(x)", opset=13)
    assert [bool(places(one, "Softmax <axis = 1> (x)")) for one in (old, new)] == [True, False]


def test_an_attribute_that_became_an_operand() -> None:
    old = model("y = ReduceMean <axes = [1], keepdims = 0> (x)", opset=13, inputs="float[N,4] x")
    new = model("y = ReduceMean <keepdims = 0> (x, a)", opset=18, inputs="float[N,4] x", held="int64[1] a = {1}")
    for given in (old, new):
        assert places(given, "ReduceMean <axes = [1]> (x)") == ["y"]
        assert places(given, "ReduceMean <axes = [2]> (x)") == []
        (match,) = find(given, "ReduceMean <axes = ?axes> (x)")
        axes = match.attributes["axes"]
        assert axes is not None
        assert list(axes.as_ints()) == [1]


def test_attributes_left_out_and_repeated() -> None:
    given = model(
        "a = Transpose(x) b = Transpose<perm = [1, 0]>(a) y = Transpose<perm = [1, 0]>(b)", inputs="float[N,4] x"
    )
    assert places(given, "Transpose <perm = none> (x)") == ["a"]
    assert places(given, "Transpose <perm = ?p> (Transpose <perm = ?p> (x))") == ["y"]


@pytest.mark.parametrize(
    "made",
    [
        "Constant <value = float {0.5}> ()",
        "Constant <value_float = 0.5> ()",
        "Constant <value_floats = [0.5]> ()",
        "Constant <value = float[1,1] {0.5}> ()",
    ],
)
def test_a_number_is_a_constant_of_any_form(made: str) -> None:
    given = model(f"c = {made} y = Mul(x, c)")
    assert places(given, "Mul(x, 0.5)") == ["y"]
    assert places(given, "Mul(x, 0.25)") == []
    assert places(given, "Mul(x, near(0.5000001, rel = 1e-6))") == ["y"]
    assert places(given, "Mul(x, near(0.5001, rel = 1e-6))") == []


def test_numbers_are_rounded_to_the_dtype() -> None:
    for dtype, bits in (("float", "0.1"), ("double", "0.1"), ("float16", "11878"), ("bfloat16", "15821")):
        given = model("y = Mul(x, c)", inputs=f"{dtype}[N] x", outputs=f"{dtype}[N] y", held=f"{dtype} c = {{{bits}}}")
        assert places(given, "Mul(x, 0.1)") == ["y"]
        assert places(given, "Mul(x, 0.11)") == []


def test_a_large_number_is_not_the_infinity_that_it_rounds_to() -> None:
    given = model("y = Mul(x, c)", inputs="float16[N] x", outputs="float16[N] y", held="float16 c = {31744}")
    assert places(given, "Mul(x, inf)") == ["y"]
    assert places(given, "Mul(x, 100000.0)") == []


def test_an_array_has_its_dtype_and_shape() -> None:
    given = model("y = Mul(x, c)", held="float[1] c = {2}")
    assert places(given, lambda op, x: op.Mul(x, np.array([2], np.float32))) == ["y"]
    assert places(given, lambda op, x: op.Mul(x, np.array(2, np.float32))) == []
    assert places(given, lambda op, x: op.Mul(x, np.array([2], np.float64))) == []
    assert places(given, lambda op, x: op.Mul(x, [2])) == ["y"]


def test_an_initializer_that_is_an_input_is_no_constant() -> None:
    given = model("y = Mul(x, c)", inputs="float[N] x, float c", held="float c = {2}")
    assert places(given, "Mul(x, 2)") == []
    assert places(given, "Mul(x, c_any)") == []
    assert places(given, "Mul(x, any)") == ["y"]


def test_a_name_twice_is_one_value_or_equal_constants() -> None:
    given = model(
        "c = Constant <value_float = 2.0> () a = Mul(x, c) b = Add(a, d) e = Mul(x, d) y = Add(e, f)",
        held="float d = {2}, float[1] f = {2}",
    )
    assert places(given, "Add(Mul(x, c_k), c_k)") == ["b"]
    assert places(given, "(x, scalar k) => (y) { y = Add(Mul(x, k), k) }") == ["b", "y"]
    assert places(model("a = Mul(x, x) b = Mul(x, a) y = Add(a, b)"), "Mul(x, x)") == ["a"]


def test_operands_left_out() -> None:
    given = model(
        'a = Clip(x, "", h) b = Clip(x, h) c = Clip(x, h, h) d = Add(a, b) y = Add(c, d)', held="float h = {6}"
    )
    assert places(given, "Clip(x, , 6)") == ["a"]
    assert places(given, "Clip(x, 6)") == ["b"]
    assert places(given, lambda op, x: op.Clip(x, None, 6)) == ["a"]
    assert places(given, lambda op, x: op.Clip(x, max=6, min=6)) == ["c"]
    assert places(given, "Clip(x, ...)") == ["a", "b", "c"]


def test_choices_and_nodes_that_may_be_missing() -> None:
    given = model("c = Cast<to = 1>(x) a = Relu(c) b = Relu(x) d = Sigmoid(x) e = Mul(a, b) y = Mul(d, e)")

    def pattern(op, x):  # type: ignore[no-untyped-def]
        return op.either(op.Relu(op.maybe("Cast", x, to=1)), op.Sigmoid(x))

    found = find(given, pattern)
    assert [match.outputs[0].name for match in found] == ["a", "b", "d"]
    assert [len([node for node in match.nodes if node]) for match in found] == [2, 1, 1]
    assert [match["x"].name for match in found] == ["x", "x", "x"]


def test_other_domains_and_any_operator() -> None:
    given = model("a = com.microsoft.Gelu(x) b = custom.Thing(a) y = Relu(b)")
    assert places(given, "com.microsoft.Gelu(x)") == ["a"]
    assert places(given, "Gelu(x)") == []
    assert places(given, lambda op, x: op.Relu(op.any(op.node("com.microsoft::Gelu", x)))) == ["y"]


def test_what_is_read_elsewhere_is_kept() -> None:
    given = model("a = Relu(x) b = Neg(a) y = Exp(b) z = Tanh(b)", outputs="float[N] y, float[N] z")
    (match,) = find(given, "Exp(Neg(Relu(x)))")
    assert [node.op_type for node in match.kept] == ["Relu", "Neg"]  # Neg is read elsewhere, and reads Relu
    assert [node.op_type for node in match.removable] == ["Exp"]
    given = model("a = Relu(x) y = Exp(a)", outputs="float[N] a, float[N] y")
    assert [node.op_type for node in find(given, "Exp(Relu(x))")[0].kept] == ["Relu"]


def test_another_output_of_a_node_keeps_it() -> None:
    given = model("v, i = TopK(x, k) y = Relu(v)", outputs="float[N] y, int64[N] i", held="int64[1] k = {1}")
    (match,) = find(given, lambda op, x, k: op.Relu(op.TopK(x, k)[0]))
    assert [node.op_type for node in match.kept] == ["TopK"]
    assert places(given, "{ v, i = TopK(x, k) y = Relu(i) }") == []


def test_several_results() -> None:
    given = model("a = Relu(x) b = Mul(a, x) c = Add(a, x) d = Sigmoid(x) e = Mul(d, x) f = Add(b, c) y = Add(e, f)")
    (match,) = find(given, "(x) => (m, s) { r = Relu(x) m = Mul(r, x) s = Add(r, x) }")
    assert [value.name for value in match.outputs] == ["b", "c"]
    assert match.kept == ()
    assert find(given, "(x) => (m, s) { r = Sigmoid(x) m = Mul(r, x) s = Add(r, x) }") == []


def test_two_results_are_two_nodes() -> None:
    given = model("a = MatMul(x, w) b = MatMul(x, v) y = Add(a, b)", inputs="float[4,4] x, float[4,4] w, float[4,4] v")
    pattern = "{ a = MatMul(x, w1) b = MatMul(x, w2) }"
    assert [[value.name for value in match.outputs] for match in find(given, pattern)] == [["a", "b"]]
    assert len(find(given, pattern, overlapping=True)) == 2


def test_matches_do_not_overlap() -> None:
    given = model("a = Relu(x) b = Relu(a) c = Relu(b) d = Relu(c) y = Relu(d)")
    assert places(given, "Relu(Relu(x))") == ["b", "d"]
    assert places(given, "Relu(Relu(x))", overlapping=True) == ["b", "c", "d", "y"]


def test_a_kept_node_is_in_two_matches() -> None:
    given = model("a = Relu(x) b = Exp(a) c = Exp(a) y = Add(b, c)")
    assert places(given, "Exp(Relu(x))") == ["b", "c"]


def test_another_order_where_the_first_overlaps() -> None:
    given = model("a = Relu(x) b = Neg(a) c = Relu(b) y = Add(b, c)")
    assert places(given, "Add(Relu(_), Neg(_))") == ["y"]


BODY = """
   r = Relu(x)
   y = If (b) <
      then_branch = t () => (float[N] p) { q = Sigmoid(x) p = Mul(q, x) },
      else_branch = e () => (float[N] p) { p = Neg(r) }>
"""


def test_bodies_and_what_they_read_outside() -> None:
    given = model(BODY, inputs="float[N] x, bool b")
    (inside,) = find(given, "Mul(Sigmoid(x), x)")
    assert inside.graph.name == "t"
    assert inside.kept == ()
    (across,) = find(given, "Neg(Relu(x))")
    assert across.graph.name == "e"
    assert [node.op_type for node in across.kept] == ["Relu"]


def test_an_outer_constant_in_a_body() -> None:
    assert places(model(BRANCHES, inputs="float[N] x, bool b", held="float s = {2}"), "Mul(x, 2)") == ["p"]


def test_functions_have_their_own_opsets() -> None:
    given = from_text(
        """<ir_version: 10, opset_import: ["": 20, "local": 1]> g (float[N] x) => (float[N] y) { y = local.f(x) }
        <domain: "local", opset_import: ["": 12]> f (x) => (z) { s = Softmax(x) z = Relu(s) }"""
    )
    assert places(given, "Relu(Softmax<axis = 1>(x))") == ["z"]
    assert places(given, "Softmax<axis = -1>(x)") == []
    (match,) = find(given, "Softmax(x)")
    assert isinstance(match.graph, ir.Function | ir.Graph)


def test_a_function_attribute_is_not_known() -> None:
    given = from_text(
        """<ir_version: 10, opset_import: ["": 20, "local": 1]> g (float[N] x) => (float[N] y) { y = local.f<a = 0>(x) }
        <domain: "local", opset_import: ["": 20]> f <a> (x) => (z) { z = Softmax<axis: int = @a>(x) }"""
    )
    assert places(given, "Softmax<axis = 0>(x)") == []
    assert places(given, "Softmax<axis = -1>(x)") == []
    assert places(given, "Softmax<axis = ?>(x)") == ["z"]


def chain(count: int, step: int) -> ir.Model:
    """A chain of Adds; each reads the one before, and the one `step` before, or an input."""
    values = [ir.val("c"), ir.val("x")]
    nodes = []
    for index in range(count):
        node = ir.node("Add", [values[-1], values[-1 - step] if step else values[0]])
        node.outputs[0].name = f"v{index}"
        nodes.append(node)
        values.append(node.outputs[0])
    graph = ir.Graph(values[:2], [values[-1]], nodes=nodes, opset_imports={"": 20})
    return ir.Model(graph, ir_version=10)


def nest(depth: int, last: str) -> str:
    text = f"Add({last})"
    for index in range(depth):
        text = f"Add({text}, q{index})"
    return text


def test_a_long_chain() -> None:
    assert len(find(chain(300, 0), "Add(Add(x, c), c)")) == 150
    assert len(find(chain(300, 0), "Add(Add(x, c), c)", overlapping=True)) == 299
    assert grows_linearly(lambda size: find(chain(size, 0), "Add(Add(x, c), c)"), 150)
    assert grows_linearly(lambda size: find(chain(size, 0), "Add(Add(x, c), c)", overlapping=True), 150)


@pytest.mark.parametrize("last", ["a, b", "z, z", "Relu(z), z", "q9, q5"])
def test_a_nest_of_commutative_operators(last: str) -> None:
    """Each Add has two Adds as operands: 2 ** depth orders at every node. Work on four more does not grow so."""
    given = chain(100, 1)
    for overlapping in (False, True):
        work = [calls(find, given, nest(depth, last), overlapping=overlapping) for depth in (6, 6, 10)]
        assert work[2] < 4 * work[1]


def test_too_many_ways_are_said() -> None:
    operands = ", ".join(f"Relu(a{index})" for index in range(16))
    names = ", ".join(f"r{index}" for index in range(16))
    given = model("".join(f"r{index} = Relu(x) " for index in range(16)) + f"y = Sum({names})")
    with pytest.raises(OnnxsmithError, match="pattern/too-many-ways"):
        find(given, f"Sum({operands})")


def test_annotations() -> None:
    given = model("a = Mul(x, w) y = Mul(a, s)", inputs="float[4] x", held="float[4] w = {1,2,3,4}, float[1] s = {2}")
    assert places(given, _scaled) == ["y"]
    assert places(given, lambda op, x: op.Mul(x, op.constant("w"))) == ["a", "y"]
    assert places(given, lambda op, x: op.Mul(x, near(2.0))) == ["y"]


def _scaled(op, x, s: Scalar):  # type: ignore[no-untyped-def]
    return op.Mul(x, s)


def test_a_dtype_by_its_name() -> None:
    given = model("y = Cast <to = 10> (x)", outputs="float16[N] y")
    found: list[object] = ["Cast <to = FLOAT16> (x)", "Cast <to = float16> (x)", "Cast <to = 10> (x)"]
    for source in (*found, lambda op, x: op.Cast(x, to=np.float16), lambda op, x: op.Cast(x, to="float16")):
        assert places(given, source) == ["y"]
    for wrong in ("Cast <to = FLOAT61> (x)", "Softmax <axis = last> (x)"):
        with pytest.raises(OnnxsmithError):
            places(given, wrong)


def test_results_without_a_name() -> None:
    given = model(
        "a, h = LSTM <hidden_size = 2> (x, w, w) y = Relu(h)",
        inputs="float[T,N,2] x, float[1,8,2] w",
        outputs="float[1,N,2] y",
    )
    for results in ("_, h", "_, h, _"):
        pattern = pattern_of(f"{results} = LSTM(x, w, w)  y = Relu(h)")
        assert pattern_of(pattern.text()) == pattern
        assert places(given, pattern) == ["y"]
    assert places(given, "h, _, _ = LSTM(x, w, w)  y = Relu(h)") == []
    assert places(given, "_, _, h = LSTM(x, w, w)  y = Relu(h)") == []
