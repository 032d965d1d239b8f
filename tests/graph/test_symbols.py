"""Expressions over symbolic dimensions: one form for all that are equal, and the numbers that Python gives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxsmith.graph.shapes import symbols

NAMES = ("n", "m", "_d0")
SIZES = (
    {"n": 0, "m": 1, "_d0": 0},
    {"n": 1, "m": 0, "_d0": 1},
    {"n": 3, "m": 8, "_d0": 5},
    {"n": 10, "m": 7, "_d0": 2},
)


def value(element: int | str, sizes: dict[str, int]) -> int:
    """The number that an expression is at these sizes."""
    functions = {"Max": max, "Min": min, "floor": int, "__builtins__": {}}
    return element if isinstance(element, int) else int(eval(element, functions, sizes))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("n", "n"),
        ("4", 4),
        ("n + n", "2*n"),
        ("n - n", 0),
        ("n**2", "n*n"),
        ("b*a", "a*b"),
        ("floor(floor(n/4 - 1/4)/8 - 7/8) + 1", "((n + 3)//32)"),
        ("(((n - 1)//4) - 7)//8 + 1", "((n + 3)//32)"),
        ("(batch*n)//batch", "n"),
        ("ceiling(n/2)", "((n + 1)//2)"),
        ("n - ceiling(n/2 - 1/2)", "n - ((n)//2)"),
        ("floor(64*a*(n//2 + 1)/(16*(n//2) + 16))", "4*a"),
        ("(2*n + 5)//2", "n + 2"),
        ("(2*n + 1)//4", "((n)//2)"),
        ("Max(0, n - 1)", "Max(0, n - 1)"),
        ("Max(0, _d3 - 1)", "Max(0, _d3 - 1)"),
        ("Min(Min(n, 512), 512)", "Min(512, n)"),
        ("Mod(n, 4)", "n - 4*((n)//4)"),
        ("n % 4", "n - 4*((n)//4)"),
        ("x.y_1*2", "2*x.y_1"),
        ("batch size", "batch size"),
        ("n +", "n +"),
        ("sqrt(n)", "sqrt(n)"),
        ("n/2", "n/2"),
    ],
)
def test_equal_expressions_have_one_form(text: str, form: int | str) -> None:
    assert symbols.canonical(text) == form
    assert symbols.canonical(symbols.canonical(text)) == form


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(NAMES) | st.integers(0, 9).map(str))
    a, b = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    kind = draw(st.sampled_from("+-*/mx"))
    if kind == "/":
        return f"(({a})//{draw(st.integers(1, 9))})"
    if kind in "mx":
        return f"{'Min' if kind == 'm' else 'Max'}({a}, {b})"
    return f"(({a}) {kind} ({b}))"


@settings(max_examples=300, deadline=None)
@given(expressions(), expressions())
def test_arithmetic_is_that_of_integers(a: str, b: str) -> None:
    results = {
        "+": symbols.add(a, b),
        "-": symbols.subtract(a, b),
        "*": symbols.multiply(a, b),
        "//": symbols.floor_divide(a, b),
        "/": symbols.truncate_divide(a, b),
        "%": symbols.modulo(a, b),
        "max": symbols.largest([a, b]),
        "min": symbols.smallest([a, b]),
    }
    for sizes in SIZES:
        x, y = value(a, sizes), value(b, sizes)
        assert value(symbols.canonical(a), sizes) == x
        expected = {"+": x + y, "-": x - y, "*": x * y, "max": max(x, y), "min": min(x, y)}
        if y > 0:
            expected |= {"//": x // y, "%": x % y}
        if y:
            expected["/"] = abs(x) // abs(y) * (1 if x * y > 0 else -1)
        for operation, number in expected.items():
            found = results[operation]
            assert found is None or value(found, sizes) == number, (operation, found, sizes)
        if symbols.at_least(a, b):
            assert x >= y
        if symbols.differ(a, b):
            assert x != y


def test_exact_quotients() -> None:
    assert symbols.exact_quotient("a*b*64 + b*16", "b*16") == "4*a + 1"
    assert symbols.exact_quotient("a + 1", "a") is None
    assert symbols.exact_quotient("6*a", 4) is None
    assert symbols.exact_quotient("a", 0) is None


def test_quotients_of_unknown_sign_are_unknown() -> None:
    assert symbols.truncate_divide("n - 3", 2) is None
    assert symbols.truncate_divide("n - 1", 2) == "((Max(0, n - 1))//2)"  # -1 / 2 is 0
    assert symbols.truncate_divide("n + 1", 2) == "((n + 1)//2)"
    assert symbols.truncate_divide(-7, 2) == -3
    assert symbols.truncate_divide(7, 0) is None
    assert symbols.floor_divide("n", 0) is None
    assert symbols.floor_divide("n", "m - 3") is None


def test_an_input_may_be_empty() -> None:
    assert not symbols.differ("n", 0)
    assert symbols.differ("n", -1)
    assert symbols.at_least("n", 0)
    assert not symbols.at_least("n", 1)
    assert symbols.is_size("n", positive=False)
    assert not symbols.is_size("n", positive=True)
    assert symbols.is_size("n + 1", positive=True)
    assert not symbols.is_size("n - 1", positive=False)
    assert symbols.largest(["n", 1]) == "Max(1, n)"
    assert symbols.smallest(["n", 1]) == "Min(1, n)"
    with symbols.assuming({"n": 1}):
        assert symbols.largest(["n", 1]) == "n"


def test_whether_a_machines_integers_hold_it() -> None:
    sizes = (-(2**31), 2**31 - 1, 2**16)
    assert symbols.fits("768*n*m", *sizes)
    assert not symbols.fits("2147483655*n", *sizes)
    assert symbols.fits("Min(12, 2147483655*n)", *sizes)
    assert not symbols.fits("n - 2147483655", *sizes)
    assert symbols.fits("((2147483655*n)//2147483655) - m", *sizes)
    assert not symbols.fits("((n)//m)*2147483655", *sizes)
    assert symbols.fits("batch size", *sizes)
    assert not symbols.fits(2**31, *sizes)


def test_what_is_no_expression_is_not_computed_with() -> None:
    assert symbols.add("batch size", 1) is None
    assert symbols.product(["batch size", 2]) is None
    assert symbols.largest(["batch size", 2]) is None
    assert not symbols.is_expression("batch size")
    assert symbols.names("batch size") == {"batch size"}
    assert symbols.total([1, None]) is None


def test_names_of_an_expression() -> None:
    assert symbols.names("Max(0, n - 2) + ((m)//3)") == {"n", "m"}
    assert symbols.names(3) == set()


def test_what_goes_together() -> None:
    assert symbols.broadcast([1, "n"]) == "n"
    assert symbols.broadcast(["n", 4, None]) == 4
    assert symbols.broadcast(["n", None]) is None
    assert symbols.broadcast([]) == 1
    both = symbols.broadcast(["n", "m"])
    assert both == "Broadcast(m, n)"
    assert symbols.broadcast([both, "n", "k"]) == "Broadcast(k, m, n)"
    assert symbols.broadcast(["n", "Min(n, 512)"]) == "n"
    assert symbols.broadcast(["n", "2*n"]) == "2*n"
    assert symbols.broadcast(["n", "n + 1"]) == "Broadcast(n, n + 1)"  # 0 and 1 give 0
    with symbols.assuming({"m": 2}):
        assert symbols.broadcast(["n", "m", "n"]) == "Broadcast(m, n)"
    assert symbols.broadcast(["_d0", "_d0 + 1"]) == "Broadcast(_d0, _d0 + 1)"
    assert symbols.canonical("Broadcast(n, 1, Broadcast(m, n))") == both
    assert symbols.covers(both, "m")
    assert symbols.covers(4, "n")
    assert symbols.covers(4, None)
    assert not symbols.covers("m", "n")
    assert not symbols.covers(1, "n")
    assert not symbols.covers(None, "n")


def test_the_least_sizes_that_leave_something() -> None:
    assert symbols.needed("((n + 10)//20) - 1") == {"n": 30}
    assert symbols.needed("n") == {"n": 1}
    assert symbols.needed("6*n*m") == {"n": 1, "m": 1}
    assert symbols.needed("n - m") == {}
    assert symbols.needed("3 - n") == {}
    assert symbols.needed("n + 1") == {}
    assert symbols.needed("Max(1, n)") == {}
    assert symbols.needed("Min(n, 0)") == {}
    assert symbols.needed("a b") == {}


def test_what_is_assumed_decides() -> None:
    assert symbols.truncate_divide("((n)//10) - 3", 2) is None
    with symbols.assuming({"n": 30}):
        assert symbols.truncate_divide("((n)//10) - 3", 2) == "((n + 10)//20) - 2"
        assert symbols.canonical("Max(0, n - 30)") == "n - 30"
    assert symbols.canonical("Max(0, n - 30)") == "Max(0, n - 30)"


def test_what_grows_too_large_is_unknown() -> None:
    sum_ = "+".join(f"a{n}" for n in range(40))
    assert symbols.multiply(sum_, sum_) is None
