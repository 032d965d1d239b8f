"""`simplify` as a user calls it."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.parts.written_files import Written
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer import simplify as simplify_module
from onnxsmith.optimizer.simplification_rounds import simplified

TEXT = """
<ir_version: 10, opset_import: ["": 20], producer_name: "somebody", metadata_props: ["licence": "MIT"]>
g (float[batch,3] x) => (float[batch,3] y) { a = Identity(x)\n b = Dropout(a)\n y = Tanh(b) }
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save(from_text(TEXT), tmp_path / "in.onnx")
    return tmp_path / "in.onnx"


def test_a_file_is_simplified_and_verified(model: Path, tmp_path: Path) -> None:
    result = onnxsmith.simplify(model, tmp_path / "out.onnx")
    assert result.ok
    assert result.path == tmp_path / "out.onnx"
    assert [node.op_type for node in onnx.load(result.path).graph.node] == ["Tanh"]
    assert result.report.part(Verification).equal
    assert result.report.part(Written).files == {str(result.path): result.path.stat().st_size}
    assert result.report.from_json(result.report.to_json()) == result.report


def test_proto_and_graph_are_taken_and_not_changed() -> None:
    graph = from_text(TEXT)
    proto = onnxsmith.load(onnx.parser.parse_model(TEXT))
    for source in (graph, proto, onnx.parser.parse_model(TEXT)):
        result = onnxsmith.simplify(source, verify=Verify(runtime="reference"))
        assert result.model is not None
        assert len(result.model.graph) == 1
    assert len(graph.graph) == 3


def test_the_contract_is_kept(model: Path, tmp_path: Path) -> None:
    onnxsmith.simplify(model, tmp_path / "out.onnx", verify=Verify(runtime="reference"))
    before, after = onnx.load(model), onnx.load(tmp_path / "out.onnx")
    assert after.graph.input == before.graph.input
    assert after.graph.output == before.graph.output
    assert after.metadata_props == before.metadata_props
    assert after.producer_name == "somebody"
    assert after.opset_import == before.opset_import
    assert after.ir_version == before.ir_version


def test_a_second_run_changes_nothing(model: Path, tmp_path: Path) -> None:
    onnxsmith.simplify(model, tmp_path / "a.onnx", verify=Verify(runtime="reference"))
    onnxsmith.simplify(tmp_path / "a.onnx", tmp_path / "b.onnx", verify=Verify(runtime="reference"))
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_in_place(model: Path) -> None:
    assert onnxsmith.simplify(model, model, verify=Verify(runtime="reference")).ok
    assert len(onnx.load(model).graph.node) == 1
    assert [file.name for file in model.parent.iterdir()] == ["in.onnx"]


def test_without_verification_the_report_says_so(model: Path, tmp_path: Path) -> None:
    result = onnxsmith.simplify(model, tmp_path / "out.onnx", verify=False)
    assert result.ok
    assert not result.report.part(Verification).verified
    assert "NOT VERIFIED" in result.report.headline


def test_a_wrong_rewrite_is_not_written(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = simplified

    def sabotaged(*args: object, **kwargs: object) -> tuple[object, Simplification]:
        result, part = honest(*args, **kwargs)  # type: ignore[arg-type]
        next(iter(result.graph)).op_type = "Sigmoid"
        return result, part

    monkeypatch.setattr(simplify_module, "simplified", sabotaged)
    (tmp_path / "out.onnx").write_text("what was there before")
    result = onnxsmith.simplify(model, tmp_path / "out.onnx", verify=Verify(runtime="reference"))
    assert not result.ok
    assert result.report.verdict.exit_code == 1
    assert result.report.problems[0].id == "verify/different"
    assert result.model is None
    assert (tmp_path / "out.onnx").read_text() == "what was there before"
    assert {file.name for file in tmp_path.iterdir()} == {"in.onnx", "out.onnx"}


def test_rules_can_be_chosen_and_left_out(model: Path) -> None:
    only = onnxsmith.simplify(model, only=["algebra/identity"], verify=Verify(runtime="reference"))
    skip = onnxsmith.simplify(model, skip=["algebra/identity"], verify=Verify(runtime="reference"))
    assert only.model is not None
    assert skip.model is not None
    assert [node.op_type for node in only.model.graph] == ["Dropout", "Tanh"]
    assert [node.op_type for node in skip.model.graph] == ["Identity", "Tanh"]


def test_an_unknown_rule_is_refused(model: Path) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.simplify(model, skip=["fuse/everything"])
    assert caught.value.problem.id == "simplify/unknown-rule"


def test_a_pattern_takes_all_rules_of_a_kind(model: Path) -> None:
    result = onnxsmith.simplify(model, only=["algebra/ident*"], verify=Verify(runtime="reference"))
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["Dropout", "Tanh"]


def test_an_unknown_rule_is_answered_with_the_nearest(model: Path) -> None:
    for text, near in {"algebra/identiti": "algebra/identity", "batchnorm": "fuse/conv-batchnorm"}.items():
        with pytest.raises(onnxsmith.OnnxsmithError) as caught:
            onnxsmith.simplify(model, only=[text])
        assert near in caught.value.problem.fix
        assert "explain all" in caught.value.problem.fix


def test_a_model_is_verified_around_what_nobody_runs(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["": 20, "mine": 1]>
    g (float[n] x, bool c) => (float[n] y) {
        a = Identity(x)
        y = If(c) <then_branch = t () => (float[n] p) { p = mine.Op(a) },
                   else_branch = e () => (float[n] q) { q = Abs(a) }>
    }
    """
    result = onnxsmith.simplify(from_text(text), tmp_path / "out.onnx")
    assert result.ok
    assert "in parts" in result.report.headline
    assert any("left out: 1 If" in note for note in result.report.part(Verification).notes)


def test_provenance_survives_a_fusion() -> None:
    model = from_text(
        """
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y)
        <float[1,1,1,1] w = {2}, float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {0.9}> {
            a = Conv(x, w)
            y = BatchNormalization(a, s, b, m, v)
        }
        """
    )
    for node, module in zip(model.graph, ("stem.conv", "stem.norm"), strict=True):
        node.metadata_props["pkg.torch.onnx.name_scopes"] = repr(["", module, "op"])
    result, _ = simplified(model)
    (fused,) = result.graph
    assert "stem." in fused.metadata_props["pkg.torch.onnx.name_scopes"]


@pytest.mark.parametrize("body", ["y = Mul(x, one)", "a = Neg(one)\n y = Neg(a)"])
def test_provenance_survives_where_an_output_needs_a_node(body: str) -> None:
    """An Identity of what stands for it, or the Constant that it is."""
    head = '<ir_version: 8, opset_import: ["": 17]>'
    model = from_text(f"{head} g (float[N] x) => (float[N] y) <float one = {{1}}> {{ {body} }}")
    for node in model.graph:
        node.metadata_props["pkg.torch.onnx.name_scopes"] = repr(["", "head", "op"])
    result, _ = simplified(model)
    (left,) = result.graph
    assert left.op_type in ("Identity", "Constant")
    assert "head" in left.metadata_props["pkg.torch.onnx.name_scopes"]


def test_a_doc_string_survives_a_rewrite() -> None:
    """It is where the TorchScript exporter says which line of the user's a node comes from."""
    head = '<ir_version: 8, opset_import: ["": 17]>'
    text = f"{head} g (float[N,2,3] x) => (float y) {{ a = Transpose<perm = [0, 2, 1]>(x)\n y = Transpose(a) }}"
    model = from_text(text)
    model.graph[0].doc_string = "model.py(7): forward"
    result, _ = simplified(model)
    assert [node.doc_string for node in result.graph] == ["model.py(7): forward"]
