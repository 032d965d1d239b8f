"""What makes a file larger, or the work: nothing is stored that one small operator makes, and long graphs take their
time, not its square."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

from onnxsmith.optimizer.simplification_rounds import simplified
from tests.suites.agreement import Trap, assert_harmless, read

SLACK = 4096

TRAPS = {
    "a large constant of one number": Trap(
        "(float[1] x) => (float[a] y) <int64[1] n = {1000000}> { a = ConstantOfShape(n)\n y = Add(x, a) }",
    ),
    "a large tile": Trap(
        """(float[1] x) => (float[a] y) <int64[1] n = {1000000}, float[2] w = {1,2}> { a = Tile(w, n)
        y = Add(x, a) }""",
    ),
    "a large range": Trap(
        """(int64[1] x) => (int64[a] y) <int64 z = {0}, int64 n = {1000000}, int64 o = {1}> { a = Range(z, n, o)
        y = Add(x, a) }""",
    ),
    "a large expand": Trap(
        """(float[1] x) => (float[a,b] y) <int64[2] n = {1000,1000}, float[1] w = {3}> { a = Expand(w, n)
        b = Sqrt(a)\n y = Add(x, b) }""",
    ),
    "a large one-hot": Trap(
        """(float[1] x) => (float[a,b] y) <int64[4] i = {1,2,3,4}, int64 d = {100000}, float[2] v = {0,1}> {
        a = OneHot(i, d, v)\n y = Add(x, a) }""",
    ),
    "a large unit matrix": Trap(
        """(float[1] x) => (float[a,b] y) <int64[2] n = {1000,1000}> { c = ConstantOfShape(n)\n a = EyeLike(c)
        y = Add(x, a) }""",
    ),
    "a large pad": Trap(
        """(float[1] x) => (float[a] y) <int64[2] p = {0, 1000000}, float[1] w = {3}> { a = Pad(w, p)
        y = Add(x, a) }""",
    ),
    "a large resize": Trap(
        """(float[1] x) => (float[a,b,c,d] y) <float[4] s = {1,1,500,500}, float[1,1,2,2] w = {1,2,3,4}> {
        a = Resize<mode = "nearest">(w, "", s)\n y = Add(x, a) }""",
    ),
    "a large outer product": Trap(
        """(float[1] x) => (float[a,b] y) <int64[2] p = {1,1000}, int64[2] q = {1000,1}, float[1] w = {3}> {
        a = Expand(w, p)\n b = Expand(w, q)\n c = Mul(a, b)\n y = Add(x, c) }""",
    ),
    "a large mask": Trap(
        """(float[1] x) => (float[a,b] y) <int64[2] n = {1000,1000}> { c = ConstantOfShape(n)\n a = Trilu(c)
        b = Cast<to = 9>(a)\n d = Cast<to = 1>(b)\n y = Add(x, d) }""",
    ),
    "a large gather": Trap(
        """(float[1] x) => (float[a,b] y) <int64[1] n = {100000}, float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}> {
        i = ConstantOfShape<value = int64[1] {2}>(n)\n a = Gather(w, i)\n y = Add(x, a) }""",
    ),
    "a large concat of one with itself": Trap(
        """(float[1] x) => (float[a] y) <int64[1] n = {1000}, float[1] w = {3}> { a = Expand(w, n)
        b = Concat<axis = 0>(a, a, a, a, a, a, a, a)\n c = Concat<axis = 0>(b, b, b, b, b, b, b, b)
        y = Add(x, c) }""",
    ),
    "a large value on the way to a small one": Trap(
        """(float[1] x) => (float[1] y) <int64[1] n = {100000}> { a = ConstantOfShape<value = float[1] {0.5}>(n)
        b = ReduceSum(a)\n y = Add(x, b) }""",
    ),
    "a small range that a large one is cut from": Trap(
        """(int64[1] x)
        => (int64[a] y) <int64 z = {0}, int64 n = {1000000}, int64 o = {1}, int64[1] s = {5}, int64[1] e = {9}> {
        a = Range(z, n, o)\n b = Slice(a, s, e)\n y = Add(x, b) }""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str) -> None:
    simple = TRAPS[name].check()
    before = len(ir.to_proto(read(TRAPS[name].text)).SerializeToString())
    assert len(ir.to_proto(simple.model).SerializeToString()) <= before + SLACK


def test_int8_weights_stay_int8() -> None:
    weights = ", ".join(str(n % 256 - 128) for n in range(64 * 64))
    model = read(f"(float[n,64] x) => (float[n,64] y) <int8[64,64] w = {{{weights}}}, float s = {{0.5}}> "
                 "{ a = DequantizeLinear(w, s) b = Transpose(a) y = MatMul(x, b) }")  # fmt: skip
    simple = assert_harmless(model)
    assert len(ir.to_proto(simple.model).SerializeToString()) < 64 * 64 * 2


def test_too_large_to_make() -> None:
    """2**62 elements: not even tried."""
    text = ("(float[1] x) => (float[1] y) <int64[2] n = {2147483648, 2147483648}> { a = ConstantOfShape(n)\n"
            " b = ReduceSum<keepdims = 0>(a)\n y = Add(x, b) }")  # fmt: skip
    model = read(text)
    simple, part = simplified(model)
    assert simple.graph[0].op_type == "ConstantOfShape"
    assert part.nodes_after == 3


def chain(count: int) -> str:
    lines = [f"c{i} = {('Neg', 'Abs', 'Relu', 'Exp')[i % 4]}(c{i - 1})" for i in range(1, count)]
    return "(float[2] c0) => (float[2] y) { " + "\n".join(lines) + f"\n y = Sin(c{count - 1}) }}"


def constant_chain(count: int) -> str:
    lines = [f"c{i} = Add(c{i - 1}, o)" for i in range(1, count)]
    return (
        "(float[2] x) => (float[2] y) <float[2] c0 = {0, 1}, float o = {1}> { "
        + "\n".join(lines)
        + f"\n y = Add(x, c{count - 1}) }}"
    )


def removable_chain(count: int) -> str:
    lines = [f"c{i} = {('Identity', 'Transpose', 'Dropout', 'Neg')[i % 4]}(c{i - 1})" for i in range(1, count)]
    return "(float[2] c0) => (float[2] y) { " + "\n".join(lines) + f"\n y = Sin(c{count - 1}) }}"


def fan(count: int) -> str:
    """One value that thousands read, and one node that reads thousands; half of them are equal to others."""
    lines = [f"c{i} = {('Exp', 'Neg')[i % 2]}(a)" for i in range(count)]
    every = ", ".join(f"c{i}" for i in range(count))
    return f"(float[2] x) => (float[m] y) {{ a = Abs(x)\n {chr(10).join(lines)}\n y = Concat<axis = 0>({every}) }}"


def reshapes(count: int) -> str:
    lines = [f"s{i} = Shape(c{i - 1})\n c{i} = Reshape(x, s{i})" for i in range(1, count)]
    return "(float[n,2] x) => (float[n,2] y) { c0 = Abs(x)\n " + "\n".join(lines) + f"\n y = Sin(c{count - 1}) }}"


LONG = {
    "a chain": (chain, 20_000),
    "a chain of constants": (constant_chain, 5_000),
    "a chain that goes": (removable_chain, 20_000),
    "a fan": (fan, 5_000),
    "computed reshapes": (reshapes, 2_000),
}


@pytest.mark.parametrize("name", LONG)
def test_long_graphs(name: str, whole: bool) -> None:
    """Not timed, but a square would show: 20,000 nodes squared, at 100 ns, are 40 s."""
    make, count = LONG[name]
    count = count if whole else count // 10
    model = read(make(count))
    simple, part = simplified(model)
    assert part.nodes_before >= count
    proto = ir.to_proto(simple)
    onnx.checker.check_model(proto)
    again, still = simplified(ir.from_proto(proto))
    assert not [entry for entry in still.fired if not entry.rule.startswith("pass")]
    assert len(again.graph) == len(simple.graph)


def test_deep_nesting() -> None:
    inner = "p0 = Neg(x)"
    for depth in range(1, 25):
        inner = (f"p{depth} = If(c) <then_branch = t{depth} () => (float[2] p{depth - 1}) {{ {inner} }}, "
                 f"else_branch = e{depth} () => (float[2] q{depth}) {{ q{depth} = Exp(x) }}>")  # fmt: skip
    for given, left in (("bool c", "If"), ("", "Neg")):
        inputs, constants = (f"float[2] x, {given}", "") if given else ("float[2] x", "<bool c = {1}>")
        simple = assert_harmless(read(f"({inputs}) => (float[2] p24) {constants} {{ {inner} }}"))
        assert simple.ops() == [left]
