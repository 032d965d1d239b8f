"""`simplify(target=…)`: the opset and the IR version that a target reads, and no operator that it refuses."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.target_form import ForTarget
from tests.conftest import Refused

GELU = """<ir_version: 12, opset_import: ["": %d]> g (float[n,8] x) => (float[n,8] y) {
  two = Constant<value = float {1.4142135}>()
  one = Constant<value = float {1.0}>() half = Constant<value = float {0.5}>()
  a = Div(x, two) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half) }"""


def board(folder: Path, text: str) -> str:
    (folder / "board.toml").write_text('title = "Board"\n' + text, encoding="utf-8")
    return f"profile:{folder / 'board.toml'}"


def simple(opset: int, target: str) -> tuple[ir.Model, tuple[str, ...]]:
    result = onnxsmith.simplify(from_text(GELU % opset), target=target, verify=Verify(runtime="reference"))
    assert result.ok
    assert result.model is not None
    return result.model, result.report.part(Simplification).notes


def ops(model: ir.Model) -> set[str]:
    return {node.op_type for node in model.graph}


def test_without_a_limit_the_newest_operator_is_made(tmp_path: Path) -> None:
    model, _ = simple(20, board(tmp_path, 'unlisted = "unknown"'))
    assert "Gelu" in ops(model)


@pytest.mark.parametrize("opset", [13, 20, 21])
def test_an_operator_that_the_target_refuses_is_not_made(tmp_path: Path, opset: int) -> None:
    model, notes = simple(opset, board(tmp_path, 'unlisted = "unknown"\nrefused = ["Gelu"]'))
    assert "Gelu" not in ops(model)
    assert "Erf" in ops(model)
    assert (
        any(
            ("refuses the operators that these rules create, or has no kernel for them: fuse/") in note
            for note in notes
        )
        or opset < 20
    )


def test_the_rules_that_the_caller_skips_stay_skipped(tmp_path: Path) -> None:
    target = board(tmp_path, 'unlisted = "unknown"\nrefused = ["Gelu"]')
    text = (GELU % 20).replace("y = Mul(d, half)", "e = Mul(d, half) y = Identity(e)")
    result = onnxsmith.simplify(
        from_text(text), target=target, skip=["algebra/identity"], verify=Verify(runtime="reference")
    )
    assert result.model is not None
    assert {"Identity", "Erf"} <= ops(result.model)


@pytest.mark.parametrize(("opset", "limit", "expected"), [(20, 17, 17), (13, 17, 17), (17, 17, 17), (13, 19, 19)])
def test_the_newest_opset_that_the_target_reads(tmp_path: Path, opset: int, limit: int, expected: int) -> None:
    model, _ = simple(opset, board(tmp_path, f'unlisted = "unknown"\nopset = {{ min = 7, max = {limit} }}'))
    assert model.opset_imports[""] == expected


def test_the_newest_ir_version_that_the_target_reads(tmp_path: Path) -> None:
    model, notes = simple(17, board(tmp_path, 'unlisted = "unknown"\nmax_ir_version = 9'))
    assert model.ir_version == 9
    assert any("IR version 12 → 9" in note for note in notes)


def test_an_ir_version_that_the_model_needs_stays_and_is_told(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["": 21]> g (int4[2] x) => (float[2] y) { y = Cast<to = 1>(x) }'
    target = board(tmp_path, 'unlisted = "unknown"\nmax_ir_version = 8')
    result = onnxsmith.simplify(from_text(text), target=target, verify=Verify(runtime="reference"))
    assert result.model is not None
    assert result.model.ir_version == 10
    assert any("the model needs 10" in note for note in result.report.part(Simplification).notes)


@pytest.mark.parametrize(("name", "opset", "ir_version"), [("onnxruntime@1.17", 20, 9), ("onnxruntime@1.20.1", 21, 10)])
def test_a_stated_version(name: str, opset: int, ir_version: int) -> None:
    wanted = ForTarget.named(name)
    assert (wanted.opset, wanted.ir_version) == (opset, ir_version)


@pytest.mark.parametrize(
    ("name", "id_", "told"),
    [
        ("onnxruntme", "target/unknown", "write onnxruntime in place of onnxruntme"),
        ("onnxruntime@0.1", "profile/unknown", "write onnxruntime@1.16, the nearest"),
        ("openvino@2026", "profile/unknown", "onnxruntime@VERSION"),
        ("profile:none.toml", "profile/unreadable", "path of a .toml file"),
    ],
)
def test_names_that_are_refused(refused: Refused, name: str, id_: str, told: str) -> None:
    with refused(id_) as refusal:
        ForTarget.named(name)
    assert told in refusal.problem.fix
