"""The nodes after expansion are counted, and a file that expands without end is refused before anything expands it."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from onnxsmith.graph.files.load import from_proto
from onnxsmith.graph.structure import function_expansion
from onnxsmith.graph.surgery.inlining import inlined
from tests.conftest import Refused

HEAD = """
<ir_version: 10, opset_import: ["": 20, "f": 1]>
g (bool c, float[2] x) => (float[2] y) {{ y = f.f{last}(c, x) }}
"""
FUNCTION = '<domain: "f", opset_import: ["": 20, "f": 1]> f{at} (c, x) => (y) {{ {body} }}\n'
BRANCHES = (
    "y = If (c) <then_branch = t () => (t1) {{ t1 = {0} (c, x) }}, else_branch = e () => (e1) {{ e1 = {0} (c, x) }}>"
)


def nested(depth: int, body: str) -> onnx.ModelProto:
    """Makes a model of functions, each of which calls the one before by `body`. The first one computes `x + x`."""
    functions = [FUNCTION.format(at=0, body="y = Add (x, x)")]
    functions += [FUNCTION.format(at=at, body=body.format(f"f.f{at - 1}")) for at in range(1, depth)]
    return onnx.parser.parse_model(HEAD.format(last=depth - 1) + "".join(functions))


TWICE = "a = {0} (c, x) y = {0} (c, a)"


@pytest.mark.parametrize("body", [TWICE, BRANCHES])
def test_functions_that_expand_without_end_are_refused(body: str, refused: Refused) -> None:
    with refused("model/expands") as refusal:
        from_proto(nested(30, body), where="m.onnx")
    assert refusal.problem.where == "m.onnx, function f::f29"
    assert "the limit is 1,000,000 nodes" in refusal.problem.why


@pytest.mark.parametrize("body", [TWICE, BRANCHES])
def test_the_count_is_that_of_the_calls_and_the_nodes_they_expand_to(body: str) -> None:
    model = nested(5, body)
    sizes: dict[tuple[str, str, str], tuple[int, int]] = {}
    for at, function in enumerate(model.functions):
        sizes["f", f"f{at}", ""] = function_expansion._size(function.node, sizes)
    flat, trouble = inlined(from_proto(model, where="m"))
    assert not trouble
    operators = ("Add", "If")
    expanded = sum(node.op_type in operators for node in flat.graph.all_nodes())
    calls = sizes["f", "f4", ""][0] - expanded
    assert calls == sum(2**level for level in range(1, 5))


def test_many_bytes_are_refused_too(refused: Refused) -> None:
    model = nested(12, TWICE)
    constant = onnx.helper.make_tensor("v", onnx.TensorProto.FLOAT, [500_000], bytes(2_000_000), raw=True)
    model.functions[0].node.append(onnx.helper.make_node("Constant", [], ["k"], value=constant))
    with refused("model/expands") as refusal:
        from_proto(model, where="m.onnx")
    assert "2,147,483,647 bytes" in refusal.problem.why


@pytest.mark.parametrize(
    ("calls", "circle"), [(("f0", "f0"), "f::f0 calls f::f0"), (("f1", "f0"), "f::f1 calls f::f0 calls f::f1")]
)
def test_recursion_is_refused(calls: tuple[str, str], circle: str, refused: Refused) -> None:
    functions = "".join(FUNCTION.format(at=at, body=f"y = f.{name} (c, x)") for at, name in enumerate(calls))
    model = onnx.parser.parse_model(HEAD.format(last=0) + functions)
    with refused("model/invalid") as refusal:
        from_proto(model, where="m.onnx")
    assert sorted(circle.split(" calls ")[:-1]) == sorted(refusal.problem.why.partition(";")[0].split(" calls ")[:-1])


def test_a_large_file_may_expand_to_a_multiple(monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    monkeypatch.setattr(function_expansion, "MOST", 20)
    function_expansion.refuse_endless(nested(5, TWICE), "m.onnx")  # 46 nodes of 9
    with refused("model/expands"):
        function_expansion.refuse_endless(nested(8, TWICE), "m.onnx")


def test_view_shows_the_file(tmp_path: Path) -> None:
    from onnxsmith.viewer import broken_models

    path = tmp_path / "m.onnx"
    onnx.save(nested(30, TWICE), path)
    _, faults = broken_models.read(path)
    assert faults is not None
    assert faults.problem.id == "model/expands"
