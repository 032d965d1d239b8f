"""Which opset a runtime's kernels allow, and which nodes lack one; and who may ask for a runtime's own operators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.kernels import Kernels
from onnxsmith.runtimes.base import Runtime
from onnxsmith.runtimes.onnxruntime import OnnxRuntime
from tests.rewrites import head

SILU = "g (float[N,4] x) => (float[N,4] y) { s = Sigmoid(x)\n y = Mul(x, s) }"
FLOAT = {"T": ["tensor(float)"]}


class Listed(OnnxRuntime):
    """A runtime with these kernels: operator to first version, last version and types."""

    def __init__(self, kernels: dict[str, tuple[int, int | None, dict[str, list[str]]]] | None) -> None:
        self._kernels = kernels

    def kernels(self, domain: str, op: str = "") -> list[dict[str, Any]] | None:
        if self._kernels is None:
            return None
        found: Iterator[tuple[str, tuple[int, int | None, dict[str, list[str]]]]] = iter(self._kernels.items())
        return [{"name": n, "first": a, "last": b, "types": t} for n, (a, b, t) in found if domain == ""]


def kernels(**of: tuple[int, int | None, dict[str, list[str]]]) -> Kernels:
    return Kernels(Listed(of), 28)


def model(text: str, opset: int) -> ir.Model:
    return from_text(head(opset) + text)


def test_the_newest_opset_in_which_nothing_loses_its_kernel() -> None:
    """DequantizeLinear changed in 19, 21, 23, 24, 25 and 28."""
    text = "g (uint8[N] x, float s) => (float[N] y) { y = DequantizeLinear(x, s) }"
    assert kernels(DequantizeLinear=(19, 20, {})).best_opset(model(text, 19), 19) == 20
    assert kernels(DequantizeLinear=(19, None, {})).best_opset(model(text, 19), 19) == 20
    assert kernels(DequantizeLinear=(19, 24, {})).best_opset(model(text, 19), 19) == 24
    assert kernels(Relu=(6, None, {})).best_opset(model(text, 19), 19) == 28  # there was none to lose


def test_an_opset_with_fused_operators_goes_before_a_newer_one_without() -> None:
    text = "g (float[N] x) => (float[N] y) { y = Neg(x) }"
    found = kernels(Neg=(13, None, FLOAT), Attention=(24, None, {}), Gelu=(20, None, FLOAT))
    assert found.best_opset(model(text, 17), 17) == 24  # Attention has another form since 25
    assert found.best_opset(model(text, 25), 25) == 28


def test_a_runtime_that_lists_no_kernels_has_them_all() -> None:
    text = "g (float[N] x) => (float[N] y) { y = Neg(x) }"
    found = Kernels(Listed(None), 22)
    one = model(text, 17)
    assert found.best_opset(one, 17) == 22
    assert not found.lacks(one.graph[0], {"": 17})


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("g (float[N] x) => (float[N] y) { y = Gelu(x) }", False),
        ("g (double[N] x) => (double[N] y) { y = Gelu(x) }", True),
        ("g (float[N] x) => (float[N] y) { y = Swish(x) }", True),
    ],
)
def test_a_node_without_a_kernel_of_its_dtype(text: str, lacks: bool) -> None:
    assert kernels(Gelu=(20, None, FLOAT)).lacks(model(text, 24).graph[0], {"": 24}) is lacks


def simple(text: str, opset: int = 17, **options: Any) -> onnxsmith.Result:
    return onnxsmith.simplify(from_text(head(opset) + text), target="onnxruntime", **options)


def test_no_operator_is_made_for_which_onnxruntime_has_no_kernel() -> None:
    found = simple(SILU)
    assert found.model is not None
    assert [node.op_type for node in found.model.graph] == ["Sigmoid", "Mul"]
    assert any("has no kernel for them: fuse/swish" in note for note in found.report.part(Simplification).notes)


@pytest.mark.parametrize("dtype", ["float", "float16"])
def test_nor_without_a_target(dtype: str) -> None:
    found = onnxsmith.simplify(from_text(head(24) + SILU.replace("float", dtype)))
    assert found.model is not None
    assert [node.op_type for node in found.model.graph] == ["Sigmoid", "Mul"]
    reasons = [entry.why_not for entry in found.report.part(Simplification).refused]
    assert reasons == ["ONNX Runtime has no kernel for Swish, and would expand the operator into others"]


ATTENTION = """g (float[2,2,4,8] q, float[2,2,8,3] k, float[2,2,3,8] v) => (float[2,2,4,8] y) {
    s = MatMul(q, k)\n p = Softmax(s)\n y = MatMul(p, v) }"""


@pytest.mark.parametrize(
    ("dtype", "opset", "said"),
    [("double", 23, "Attention with double"), ("float", 25, "Attention,"), ("float", 24, "")],
)
def test_nor_in_a_dtype_or_a_form_without_one(dtype: str, opset: int, said: str) -> None:
    found = onnxsmith.simplify(from_text(head(opset) + ATTENTION.replace("float", dtype)))
    assert found.model is not None
    assert ("Attention" in [node.op_type for node in found.model.graph]) == (not said)
    assert any(f"no kernel for {said}" in entry.why_not for entry in found.report.part(Simplification).refused) == bool(
        said
    )


def test_another_runtime_decides_for_itself() -> None:
    found = onnxsmith.simplify(from_text(head(24) + SILU), verify=Verify(runtime="reference"))
    assert found.model is not None
    assert [node.op_type for node in found.model.graph] == ["Swish"]


def test_a_quantised_model_keeps_an_opset_whose_kernels_there_are() -> None:
    text = """g (float[N,4] x) => (float[N,4] y) <float s = {0.1}, uint8 z = {3}> {
        q = QuantizeLinear(x, s, z)\n d = DequantizeLinear(q, s, z)\n i = Identity(d)\n y = Neg(i) }"""
    found = simple(text)
    assert found.ok
    assert found.model is not None
    assert found.model.opset_imports[""] > 17


def test_a_rule_for_the_target_runs_for_it_alone() -> None:
    text = """g (float[2,4,3,8] q, float[2,2,8,3] k) => (float[2,4,3,3] y) <int64[4] each = {0, 0, 1, 1}> {
        r = Gather<axis = 1>(k, each)\n y = MatMul(q, r) }"""
    usual = onnxsmith.simplify(from_text(head(17) + text), verify=Verify(runtime="reference")).model
    found = simple(text).model
    assert usual is not None
    assert found is not None
    assert [node.op_type for node in usual.graph] == ["Gather", "MatMul"]
    assert [node.op_type for node in found.graph] == ["Reshape", "MatMul", "Reshape"]


def test_the_runtimes_own_operators_are_made_when_asked_for_and_told(tmp_path: Path) -> None:
    found = simple(SILU, contrib=True)
    assert found.ok
    assert found.model is not None
    assert [node.domain for node in found.model.graph] == ["com.microsoft"]
    assert "runs on onnxruntime only: 1 operator of its own (com.microsoft)" in found.report.headline
    assert "onnxruntime only" not in simple(SILU).report.headline


def test_the_command_makes_them_too(tmp_path: Path) -> None:
    from onnxsmith.cli.commands.simplify import Simplify

    source, target = tmp_path / "silu.onnx", tmp_path / "quick.onnx"
    save(from_text(head(17) + SILU), source)
    report = Simplify(model=str(source), output=str(target), target="onnxruntime", contrib=True).run()
    assert report.verdict.exit_code == 0
    assert [node.op_type for node in onnxsmith.load(target).graph] == ["QuickGelu"]


@pytest.mark.parametrize("target", [None, "openvino"])
def test_they_are_refused_for_another_target(target: str | None) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.simplify(from_text(head(17) + SILU), target=target, contrib=True, verify=Verify(runtime="reference"))
    assert caught.value.problem.id == "simplify/contrib"


def test_each_rule_for_a_runtime_has_a_kernel_in_it() -> None:
    """In the installed onnxruntime, for the operator that the page of the rule shows."""
    from onnxsmith.base import rooms
    from onnxsmith.optimizer.rules.base import Rule
    from tests.contracts.test_rules import snippet

    listed = OnnxRuntime().kernels("com.microsoft")
    assert listed is not None
    names = {one["name"] for one in listed}
    for rule in rooms.members("onnxsmith.optimizer.rules", Rule).values():
        if rule.domain:
            made = {node.op_type for node in from_text(snippet(rule, "After")).graph if node.domain == rule.domain}
            assert made
            assert made <= names
    assert isinstance(OnnxRuntime(), Runtime)
