"""fuse/layer-norm and fuse/rms-norm: the ways they are written, and what only looks like them."""

from __future__ import annotations

import pytest

from tests.refusals import refusals, refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

LAYER, RMS = "fuse/layer-norm", "fuse/rms-norm"
CONSTANTS = """float two = {2}, float eps = {0.00001}, float one = {1}, float[2] s = {2, 3}, float[2] b = {3, -5},
    float[1] o = {2}, int64[1] last = {-1}"""
MEAN = "ReduceMean<axes = [-1]>({})"
SQUARE, DIVIDE = "Pow(d, two)", "n = Div(d, r)"
END = "p = Mul(n, s)\n y = Add(p, b)"


def norm(end: str = END, square: str = SQUARE, divide: str = DIVIDE, mean: str = MEAN, shape: str = "N,2") -> str:
    return f"""g (float[{shape}] x) => (float[{shape}] y) <{CONSTANTS}> {{
        m = {mean.format("x")}\n d = Sub(x, m)\n q = {square}\n v = {mean.format("q")}\n e = Add(v, eps)\n r = Sqrt(e)
        {divide}\n {end} }}"""


def rms(end: str = "y = Mul(n, s)", square: str = "Mul(x, x)", divide: str = "n = Div(x, r)") -> str:
    return f"""g (float[N,2] x) => (float[N,2] y) <{CONSTANTS}> {{
        q = {square}\n v = ReduceMean(q, last)\n e = Add(eps, v)\n r = Sqrt(e)\n {divide}\n {end} }}"""


REWRITTEN = {
    "as torch writes it": (norm(), "", 17),
    "a product as square": (norm(square="Mul(d, d)"), "", 17),
    "a reciprocal": (norm(divide="i = Reciprocal(r)\n n = Mul(i, d)"), "", 17),
    "one over": (norm(divide="i = Div(one, r)\n n = Mul(d, i)"), "", 17),
    "no bias": (norm("y = Mul(s, n)"), "", 17),
    "neither": (norm("y = Neg(n)"), " Neg", 17),
    "no scale": (norm("y = Add(n, b)"), "", 17),
    "axes as an input": (norm(mean="ReduceMean({}, last)"), "", 18),
    "the last axis by its number": (norm(mean="ReduceMean<axes = [1]>({})"), "", 17),
    "a residual instead of a bias": (norm("p = Mul(n, s)\n y = Add(p, x)"), " Add", 17),
    "a scale that is read again": (norm("p = Mul(n, s)\n z = Add(p, b)\n y = Mul(p, z)"), " Add Mul", 17),
    "three axes": (norm(shape="N,5,2"), "", 17),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_layer_norm(case: str) -> None:
    text, more, opset = REWRITTEN[case]
    assert_rewritten(LAYER, f"LayerNormalization{more}", text, opset)


WRITTEN = {
    "a power of a half": (norm().replace("Sqrt(e)", "Pow(e, half)"), "", 17),
    "a power of minus a half": (norm(divide="n = Mul(d, r)").replace("Sqrt(e)", "Pow(e, minus)"), "", 17),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_layer_norm_with_powers(case: str) -> None:
    text, _, opset = WRITTEN[case]
    text = text.replace("float two", "float half = {0.5}, float minus = {-0.5}, float two")
    assert_rewritten(LAYER, "LayerNormalization", text, opset)


def test_layer_norm_in_a_branch() -> None:
    names = {"two": "float {2}", "eps": "float {0.00001}", "s": "float[2] {2, 3}", "b": "float[2] {3, -5}"}
    constants = "\n ".join(f"{name} = Constant<value = {value}>()" for name, value in names.items())
    body = norm().split("{\n", 1)[1].rsplit("}", 1)[0].replace("y = Add", "z = Add")
    text = f"""g (bool k, float[N,2] x) => (float[N,2] y) {{
        y = If (k) <then_branch = t () => (float[N,2] z) {{ {constants}\n {body} }},
            else_branch = e () => (float[N,2] o) {{ o = Neg(x) }}> }}"""
    result = assert_rewritten(LAYER, "If", text)
    branch = result.graph[0].attributes["then_branch"].as_graph()
    assert [node.op_type for node in branch if node.op_type != "Constant"] == ["LayerNormalization"]


HALVES = "s16 = Cast<to = 10>(s)\n b16 = Cast<to = 10>(b)"


def widened(text: str, end: str) -> str:
    """The normalisation in float of data in half precision, and what follows it."""
    text = text.replace("g (float[N,2] x) => (float[N,2] y)", "g (float16[N,2] h) => (float16[N,2] y)")
    return text.replace("{\n", f"{{ {HALVES}\n x = Cast<to = 1>(h)\n", 1).replace("END", end)


ENDS = {
    "scale and bias": ("c = Cast<to = 10>(n)\n p = Mul(c, s16)\n y = Add(b16, p)", ""),
    "a scale": ("c = Cast<to = 10>(n)\n y = Mul(s16, c)", ""),
    "nothing": ("y = Cast<to = 10>(n)", ""),
    "more": ("c = Cast<to = 10>(n)\n p = Mul(c, s16)\n y = Add(p, h)", " Add"),
}


@pytest.mark.parametrize("case", ENDS)
def test_half_precision_that_is_widened(case: str) -> None:
    """Held by onnxruntime: the evaluator's kernels pass over `stash_type` and compute in half precision."""
    end, more = ENDS[case]
    assert_rewritten(LAYER, f"LayerNormalization{more}", widened(norm("END"), end), runtime="onnxruntime")
    if case != "scale and bias":
        text = widened(rms("END").replace("{ q =", "{\n q ="), end)
        assert_rewritten(RMS, f"RMSNormalization{more}", text, 23, runtime="onnxruntime")


def test_a_scale_before_it_is_narrowed() -> None:
    text = widened(norm("END"), "p = Mul(n, s)\n z = Add(p, b)\n y = Cast<to = 10>(z)")
    assert_rewritten(LAYER, "Cast LayerNormalization Cast", text)


REFUSED = {
    "1: an old opset": ("opset 16 has no", norm(), 16),
    "3: double": ("not known to be float", norm().replace("float", "double"), 17),
    "4: an unknown size": ("not known", norm("y = Neg(n)", shape="N,M"), 17),
    "2: the centred value is read": ("used elsewhere", norm("p = Mul(n, s)\n z = Add(p, b)\n y = Mul(z, d)"), 17),
}


@pytest.mark.parametrize("case", refusals(LAYER, REFUSED))
def test_layer_norm_refused(case: str) -> None:
    assert_refused(LAYER, *REFUSED[case])


ALONE = {
    "another axis": norm(mean="ReduceMean<axes = [0]>({})"),
    "a mean of all": norm(mean="ReduceMean({})"),
    "another power": norm(square="Pow(d, one)").replace("e = Add(v, eps)", "w = Abs(v)\n e = Add(w, eps)"),
    "another value divided": norm(divide="n = Div(x, r)"),
    "the wrong way round": norm(divide="n = Div(r, d)"),
    "two axes in one mean and one in the other": norm(shape="N,3,2").replace("[-1]>(q)", "[-2, -1]>(q)"),
}


@pytest.mark.parametrize("case", ALONE)
def test_layer_norm_left_alone(case: str) -> None:
    assert_left_alone(LAYER, ALONE[case])


@refuses(LAYER, 5)
def test_scale_and_bias_of_fewer_axes_stay_behind() -> None:
    text = norm(mean="ReduceMean<axes = [-2, -1]>({})", shape="N,3,2")
    assert_rewritten(LAYER, "LayerNormalization Add", text)  # distant-factor takes the scale
    assert_refused(LAYER, "are not the normalised axes", text, opset=16)


def test_a_scale_of_one_number_goes_into_the_scale() -> None:
    result = assert_rewritten(LAYER, "LayerNormalization", norm("y = Mul(n, o)"))
    assert [value.const_value.numpy().tolist() for value in result.graph.initializers.values()] == [[2, 2]]


RMS_REWRITTEN = {
    "a quotient": (rms(), ""),
    "a power": (rms(square="Pow(x, two)"), ""),
    "a reciprocal": (rms(divide="i = Reciprocal(r)\n n = Mul(x, i)"), ""),
    "one over": (rms(divide="i = Div(one, r)\n n = Mul(x, i)", end="y = Mul(s, n)"), ""),
    "no scale": (rms(end="y = Neg(n)"), " Neg"),
    "a bias": (rms(end="p = Mul(n, s)\n y = Add(p, b)"), " Add"),
    "a bias alone": (rms(end="y = Add(n, b)"), " Add"),
}


@pytest.mark.parametrize("case", RMS_REWRITTEN)
def test_rms_norm(case: str) -> None:
    text, more = RMS_REWRITTEN[case]
    assert_rewritten(RMS, f"RMSNormalization{more}", text, 23)


RMS_REFUSED = {
    "1: an old opset": ("opset 18 has no", rms(), 18),
    "2: the root is read": ("used elsewhere", rms(end="p = Mul(n, s)\n y = Add(p, r)"), 23),
    "3: double": ("not known to be float", rms().replace("float", "double"), 23),
    "4: an unknown size": ("not known", rms(end="y = Neg(n)").replace("[N,2]", "[N,M]"), 23),
}


@pytest.mark.parametrize("case", refusals(RMS, RMS_REFUSED))
def test_rms_norm_refused(case: str) -> None:
    assert_refused(RMS, *RMS_REFUSED[case])


@refuses(RMS, 5)
def test_a_scale_of_fewer_axes_stays_behind_an_rms_norm() -> None:
    text = rms().replace("last)", "both)").replace("[N,2]", "[N,3,2]")
    text = text.replace("int64[1] last = {-1}", "int64[2] both = {-2, -1}")
    assert_rewritten(RMS, "RMSNormalization Mul", text, 23)
    assert_refused(RMS, "are not the normalised axes", text, opset=18)


def test_a_layer_norm_is_no_rms_norm() -> None:
    assert_left_alone(RMS, norm(mean="ReduceMean({}, last)"), 23)
