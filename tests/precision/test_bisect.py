"""Which nodes must stay in float32: planted ones are found, all of them and no others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onnxsmith
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.quantisation import NO_KERNEL, Precision
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.files.text import from_text
from onnxsmith.precision import bisect
from onnxsmith.precision import keep_list as keeping
from onnxsmith.runtimes.base import get
from onnxsmith.verification.value_comparison import difference
from tests.conftest import Refused


def model(body: str, *, opset: int = 18) -> ir.Model:
    return from_text(f'<ir_version: 10, opset_import: ["": {opset}]>\ng {body}')


def weight(name: str, *shape: int, scale: float = 1.0) -> str:
    """An initializer as text, of random numbers."""
    numbers = np.random.default_rng(len(name)).standard_normal(int(np.prod(shape))) * scale
    dims = ",".join(map(str, shape))
    return f"float[{dims}] {name} = {{{', '.join(f'{number:.6f}' for number in numbers)}}}"


def kept(result: Result) -> list[str]:
    assert result.report.verdict is Verdict.DONE, result.report
    part = result.report.part(Precision)
    assert part.checked == sum(node.why != NO_KERNEL for node in part.kept), "it is not known to be minimal"
    assert Report.from_json(result.report.to_json()) == result.report
    return [node.name for node in part.kept]


VARIANCE = """(float[n,8] x) => (float[n,8] y) <float[1] k = {1000.0}> {
    [scale] big = Mul(x, k)
    [mean] m = ReduceMean<axes = [-1]>(big)
    [centre] c = Sub(big, m)
    [square] sq = Mul(c, c)
    [variance] v = ReduceMean<axes = [-1]>(sq)
    [deviation] s = Sqrt(v)
    [divide] y = Div(c, s)
}"""


@pytest.mark.parametrize("runtime", ["onnxruntime", "reference"])
def test_the_variance_of_large_numbers_stays(runtime: str) -> None:
    result = onnxsmith.bisect(model(VARIANCE, opset=13), tolerance=1e-2, runtime=runtime)
    assert kept(result) == ["square", "variance", "deviation"]
    square = result.report.part(Precision).kept[0]
    assert square.why.startswith("overflow: sq reaches ")
    assert square.why.endswith("the largest float16 is 65504")
    assert square.own == np.inf
    assert "y: " in square.without
    assert len([part for part in result.report.parts if isinstance(part, Verification)]) == 2


@pytest.mark.parametrize("runtime", ["onnxruntime", "reference"])
def test_weights_in_external_data(tmp_path: Path, runtime: str) -> None:
    weights = f"{weight('w', 32, 32)}, {weight('big', 32, 32, scale=20000)}, float k = {{0.001}}"
    body = f"""(float[n,32] x) => (float[n,32] y) <{weights}> {{
        [first] a = MatMul(x, w)
        [overflow] b = MatMul(a, big)
        [last] y = Mul(b, k)
    }}"""
    save(model(body), tmp_path / "m.onnx", external_data=True)
    before = (tmp_path / "m.onnx.data").read_bytes()
    result = onnxsmith.bisect(
        tmp_path / "m.onnx", tolerance=1e-2, runtime=runtime, any_runtime=True, model=tmp_path / "mixed.onnx"
    )
    assert kept(result) == ["overflow", "last"]
    assert (tmp_path / "m.onnx.data").read_bytes() == before
    assert onnxsmith.compare(tmp_path / "m.onnx", tmp_path / "mixed.onnx", tolerance=1e-2).ok


def test_bfloat16_has_the_range() -> None:
    result = onnxsmith.bisect(model(VARIANCE, opset=13), to="bfloat16", any_runtime=True, runtime="reference")
    assert kept(result) == []


def test_a_norm_that_overflows_is_found_with_its_neighbours() -> None:
    text = """(float[n,64] x) => (float[n,64] y) <float[1] k = {100.0}> {
        [before] a = Mul(x, k)
        [square] s = Mul(a, a)
        [sum] t = ReduceSum<keepdims = 1>(s, axis)
        [root] r = Sqrt(t)
        [y_] y = Div(a, r)
    }""".replace("<float[1] k = {100.0}>", "<float[1] k = {100.0}, int64[1] axis = {-1}>")
    assert kept(onnxsmith.bisect(model(text), tolerance=5e-3, runtime="reference")) == ["square", "sum", "root"]


def test_large_logits_keep_what_makes_and_reads_them() -> None:
    text = f"""(float[n,16] x) => (float[n,16] y) <{weight("w", 16, 16)}, float[1] k = {{40000.0}}> {{
        [logits] l = MatMul(x, w)
        [large] b = Mul(l, k)
        [small] s = Div(b, k)
        [softmax] y = Softmax(s)
    }}"""
    names = kept(onnxsmith.bisect(model(text), tolerance=1e-2, runtime="reference"))
    assert names == ["large", "small"]


def test_a_small_network_needs_nothing() -> None:
    text = f"""(float[n,3,8,8] x) => (float[n,4] y) <{weight("w", 4, 3, 3, 3, scale=0.2)}, {weight("b", 4)}> {{
        [conv] c = Conv<pads = [1,1,1,1]>(x, w, b)
        [relu] r = Relu(c)
        [pool] p = GlobalAveragePool(r)
        [flat] y = Flatten(p)
    }}"""
    result = onnxsmith.bisect(model(text))
    assert kept(result) == []
    part = result.report.part(Precision)
    assert (part.tries, part.candidates) == (1, 4)
    assert part.before == part.after
    assert result.model is not None
    assert result.model.graph.initializers["w"].dtype == ir.DataType.FLOAT16


BRANCH = """(float[n] x, bool c) => (float[n] y) <float[1] k = {12.0}> {
    [choose] z = If (c) <
        then_branch = then_g () => (float[n] t) {
            [fixed] f = Clip(x, , top)
            [wide] w = Mul(f, k)
            [exp] e = Exp(w)
            [log] l = Log(e)
            [t_] t = Div(l, k)
        },
        else_branch = else_g () => (float[n] u) { [same] u = Abs(x) }
    >
    [out] y = Add(z, x)
}"""


def test_an_overflow_in_a_branch_is_found_there(tmp_path: Path) -> None:
    text = BRANCH.replace("<float[1] k = {12.0}>", "<float[1] k = {12.0}, float top = {3.0}>")
    result = onnxsmith.bisect(
        model(text), tmp_path / "keep.txt", tolerance=2e-2, runtime="reference", model=tmp_path / "mixed.onnx"
    )
    assert kept(result) == ["exp", "log"]
    assert keeping.read(tmp_path / "keep.txt") == ("exp", "log")
    part = result.report.part(Precision)
    assert part.kept[0].why.startswith("overflow: e reaches ")
    assert any("outputs of bodies stay float32" in reason for reason in part.fixed)
    assert check(load(tmp_path / "mixed.onnx")) == ()


def test_the_list_and_the_model_are_written(tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    save(model(VARIANCE, opset=13), source)
    result = onnxsmith.bisect(
        source, tmp_path / "keep.json", tolerance=1e-2, runtime="reference", model=tmp_path / "mixed.onnx"
    )
    assert result.path == tmp_path / "keep.json"
    content = json.loads((tmp_path / "keep.json").read_text())
    assert content == {"to": "float16", "keep": ["square", "variance", "deviation"]}
    mixed = load(tmp_path / "mixed.onnx")
    dtypes = {node.name: node.outputs[0].dtype for node in mixed.graph if node.op_type != "Cast"}
    assert dtypes["square"] in (ir.DataType.FLOAT, None)
    assert dtypes["centre"] == ir.DataType.FLOAT16
    assert [value.dtype for value in (*mixed.graph.inputs, *mixed.graph.outputs)] == [ir.DataType.FLOAT] * 2
    part = result.report.part(Precision)
    assert part.bytes_before == source.stat().st_size
    assert part.bytes_after == (tmp_path / "mixed.onnx").stat().st_size
    again = onnxsmith.bisect(source, keep=keeping.read(tmp_path / "keep.json"), tolerance=1e-2, runtime="reference")
    assert [node.name for node in again.report.part(Precision).kept] == content["keep"]
    assert again.report.part(Precision).tries == 1


def test_operators_without_a_kernel_stay() -> None:
    """Of bfloat16 onnxruntime has a kernel for Sign on a CPU, and none for Pow."""
    text = "(float[n] x) => (float[n] y, float[n] z) <float k = {2.0}> { [pow] y = Pow(x, k) [sign] z = Sign(x) }"
    result = onnxsmith.bisect(model(text), runtime="onnxruntime", to="bfloat16")
    assert kept(result) == ["pow"]
    assert [node.why for node in result.report.part(Precision).kept] == [NO_KERNEL]


def test_unnamed_nodes_are_called_after_what_they_make() -> None:
    text = (
        "(float[n] x) => (float[n] y) { s = Mul(x, x) t = Mul(s, s) u = Mul(t, t) v = Exp(u) w = Log(v) y = Sqrt(w) }"
    )
    names = kept(onnxsmith.bisect(model(text), tolerance=1e-2, runtime="reference"))
    assert {"-> v", "-> w"} <= set(names)


def test_few_tries_say_so(refused: Refused) -> None:
    with refused("bisect/tries"):
        onnxsmith.bisect(model(VARIANCE, opset=13), tolerance=1e-2, tries=1, runtime="reference")


@pytest.mark.parametrize(
    ("given", "problem_id"),
    [
        ({"to": "float8"}, "bisect/unknown-dtype"),
        ({"tolerance": -1.0}, "bisect/tolerance"),
        ({"tolerance": float("nan")}, "bisect/tolerance"),
        ({"tries": 0}, "bisect/tries"),
        ({"keep": ["nobody"]}, "bisect/unknown-node"),
        ({"to": "bfloat16", "runtime": "onnxruntime"}, "bisect/no-kernels"),
        ({"output": "/nowhere/at/all/keep.txt"}, "save/no-folder"),
        ({"only_given": True}, "verify/nothing-compared"),
        ({"runtime": "abacus"}, "runtime/unknown"),
    ],
)
def test_what_cannot_be_done_is_refused(given: dict[str, object], problem_id: str, refused: Refused) -> None:
    with refused(problem_id):
        onnxsmith.bisect(model(VARIANCE, opset=13), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(float16[n] x) => (float16[n] y) { y = Exp(x) }", "already uses a narrow dtype"),
        ("(int64[n] x) => (int64[n] y) { y = Neg(x) }", "no floats"),
    ],
)
def test_models_without_a_node_to_narrow_are_refused(text: str, why: str, refused: Refused) -> None:
    with refused("bisect/nothing-to-narrow") as refusal:
        onnxsmith.bisect(model(text))
    assert why in refusal.problem.why


def test_an_older_model_is_raised_first(tmp_path: Path) -> None:
    path = tmp_path / "mixed.onnx"
    result = onnxsmith.bisect(model(VARIANCE, opset=12), to="bfloat16", tolerance=0.1, any_runtime=True, model=path)
    part = result.report.part(Precision)
    assert part.notes[0] == "opset 12 is too old for bfloat16: the model was first converted to opset 18"
    assert load(path).opset_imports[""] == 18
    assert part.file is not None
    assert part.file.nodes == sum(node.op_type != "Constant" for node in load(path).graph)
    assert part.file.narrow == part.narrow > 0


def test_a_model_that_cannot_be_raised_is_refused(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> None:
        raise problem("export/opset", "Upsample cannot be converted", where="node up")

    monkeypatch.setattr(bisect.opsets, "convert", cannot)
    with refused("bisect/opset") as refusal:
        onnxsmith.bisect(model(VARIANCE, opset=12), to="bfloat16")
    assert "Upsample cannot be converted" in refusal.problem.why


def test_the_mixed_model_computes_what_was_measured() -> None:
    tolerance = 1e-2
    result = onnxsmith.bisect(model(VARIANCE, opset=13), tolerance=tolerance, runtime="reference")
    assert result.model is not None
    x = np.random.default_rng(5).standard_normal((3, 8)).astype(np.float32)
    with get("reference").prepare(result.model) as mixed, get("reference").prepare(model(VARIANCE, opset=13)) as whole:
        ours, theirs = whole.run({"x": x})["y"], mixed.run({"x": x})["y"]
    assert isinstance(theirs, np.ndarray)
    assert theirs.dtype == np.float32
    assert not difference(ours, theirs, tolerance).reason
    assert (theirs == theirs.astype(np.float16)).all(), "the last node is narrow"


@settings(max_examples=5)
@given(st.lists(st.sampled_from(["Abs", "Neg", "overflow", "Sigmoid"]), min_size=1, max_size=4))
def test_planted_overflows_are_found_in_chains(steps: list[str]) -> None:
    """An overflow is a pair: what goes beyond 65504, and what brings it back. Nothing else need stay."""
    nodes, planted, value = [], [], "x"
    for place, step in enumerate(steps):
        if step == "overflow":
            nodes += [f"[up{place}] u{place} = Mul({value}, k)", f"[down{place}] v{place} = Div(u{place}, k)"]
            planted += [f"up{place}", f"down{place}"]
        else:
            nodes.append(f"[node{place}] v{place} = {step}({value})")
        value = f"v{place}"
    text = f"(float[4] x) => (float[4] y) <float k = {{1000000.0}}> {{ {' '.join(nodes)} [last] y = Tanh({value}) }}"
    names = kept(onnxsmith.bisect(model(text), tolerance=1e-2, runtime="reference"))
    assert names == planted


FUSED = """
<ir_version: 10, opset_import: ["": 17, "com.microsoft": 1]>
g (float[n,8] x) => (float[n,8] y) <float[8] b = {1,2,3,4,5,6,7,8}> {
    h = Mul(x, b)
    f = com.microsoft.QuickGelu(h)
    k = Add(f, b)
    y = Tanh(k)
}
"""


def test_operators_of_the_runtime_are_narrow_and_so_is_what_follows_them() -> None:
    result = onnxsmith.bisect(from_text(FUSED), tolerance=0.5, runtime="onnxruntime")
    found = result.report.part(Precision)
    assert (found.narrow, found.weights_narrow, found.fixed) == (4, 1, {})
    assert "4 of 4 nodes became float16; 1 of 1 weight became float16" in result.report.headline


def test_the_headline_says_what_cannot_be_narrow() -> None:
    text = """
    <ir_version: 10, opset_import: ["": 17]>
    g (float[n,8] x) => (float[n,8] y)
    <float s = {0.1}, int8 z = {0}, float[8] b = {1,2,3,4,5,6,7,8}> {
        q = QuantizeLinear(x, s, z)
        d = DequantizeLinear(q, s, z)
        k = Add(d, b)
        y = Tanh(k)
    }
    """
    report = onnxsmith.bisect(from_text(text), tolerance=0.5, runtime="onnxruntime").report
    assert "2 of 4 nodes became float16" in report.headline
    assert "2 cannot be float16 (QuantizeLinear, DequantizeLinear)" in report.headline
    assert "1 of 2 weights became float16, 32 B of 36 B" in report.headline
    assert "the operator does not support float16 before opset 19" in report.part(Precision).fixed


def test_where_nothing_was_gained_it_fails_and_writes_nothing(tmp_path: Path) -> None:
    """All that is left in float32 of a model in float16 is a Cast."""
    text = """
    <ir_version: 10, opset_import: ["": 17]>
    g (float[n,8] x) => (float16[n,8] y) { h = Cast<to = 10>(x) y = Tanh(h) }
    """
    result = onnxsmith.bisect(from_text(text), tmp_path / "keep.txt", tolerance=0.5, runtime="onnxruntime")
    assert not result.ok
    assert result.report.verdict is Verdict.FAILED
    assert [one.id for one in result.report.problems] == ["bisect/nothing-narrow"]
    assert not list(tmp_path.iterdir())


def test_weights_of_an_old_file_which_are_inputs_too_become_narrow() -> None:
    text = """
    <ir_version: 3, opset_import: ["": 9]>
    g (float[n,8] x, float[8] b) => (float[n,8] y) <float[8] b = {1,2,3,4,5,6,7,8}> { h = Add(x, b) y = Tanh(h) }
    """
    report = onnxsmith.bisect(from_text(text), tolerance=0.5, runtime="onnxruntime").report
    assert report.verdict is Verdict.DONE
    assert report.part(Precision).weights_narrow == 1
