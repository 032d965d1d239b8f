"""`compare --from … --to …`: the same part of both models is compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands.compare import Compare
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'


def chain(folder: Path, name: str, *ops: str) -> Path:
    """x → a → b → c → y, by one operator each."""
    lines = [f"[n_{made}] {made} = {op}({read})" for op, read, made in zip(ops, "xabc", "abcy", strict=True)]
    save(from_text(HEAD + f"g (float[N,3] x) => (float[N,3] y) {{ {' '.join(lines)} }}"), folder / name)
    return folder / name


def outputs(path: Path, other: Path, **part: list[str]) -> tuple[Verdict, list[str]]:
    report = onnxsmith.compare(path, other, **part).report  # type: ignore[arg-type]
    return report.verdict, [one.name for one in report.part(Verification).outputs]


def test_only_the_part_is_compared(tmp_path: Path) -> None:
    path = chain(tmp_path, "m.onnx", "Tanh", "Exp", "Neg", "Sin")
    other = chain(tmp_path, "other.onnx", "Abs", "Exp", "Neg", "Cos")
    assert outputs(path, other) == (Verdict.DIFFERENT, ["y"])
    assert outputs(path, other, start=["a"], end=["c"]) == (Verdict.DONE, ["c"])
    assert outputs(path, other, end=["a"]) == (Verdict.DIFFERENT, ["a"])
    assert outputs(path, other, start=["c"]) == (Verdict.DIFFERENT, ["y"])


def test_a_wrong_part_is_seen(tmp_path: Path) -> None:
    """Sign hides at the output what differs in the middle."""
    path = chain(tmp_path, "m.onnx", "Tanh", "Exp", "Abs", "Sign")
    other = chain(tmp_path, "other.onnx", "Tanh", "Cosh", "Abs", "Sign")
    found = onnxsmith.compare(path, other, start=["a"], end=["b"], per_layer=True).report
    assert found.verdict is Verdict.DIFFERENT
    assert found.part(Layers).culprits == ("b",)
    assert [one.path for one in found.models] == [str(path), str(other)]


def test_the_command_on_two_runtimes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    chain(tmp_path, "m.onnx", "Tanh", "Exp", "Neg", "Sin")
    report = Compare("m.onnx@reference", "m.onnx@onnxruntime", start=("a",), end=("{ producer = 'n_c' }",)).run()
    assert report.verdict is Verdict.DONE
    assert report.headline.startswith("a part of m.onnx on reference and a part of m.onnx on onnxruntime: equal on ")


def test_given_inputs_are_those_of_the_part(tmp_path: Path) -> None:
    path = chain(tmp_path, "m.onnx", "Tanh", "Exp", "Neg", "Sin")
    given = {"a": np.ones((2, 3), np.float32)}
    report = onnxsmith.compare(path, path, inputs=given, generate=False, start=["a"], end=["b"]).report
    assert len(report.part(Verification).runs) == 1


def test_what_has_no_such_part(tmp_path: Path, refused: Refused) -> None:
    path = chain(tmp_path, "m.onnx", "Tanh", "Exp", "Neg", "Sin")
    with refused("edit/no-match") as caught:
        onnxsmith.compare(path, path, start=["nowhere"])
    assert caught.problem.where.startswith("m.onnx on onnxruntime, ")
    with refused("edit/unused-cut"):
        onnxsmith.compare(path, path, start=["c"], end=["b"])
    values = tmp_path / "values.safetensors"
    onnxsmith.dump(path, values, runtime="reference")
    with refused("compare/no-part"):
        onnxsmith.compare(path, values, start=["a"])
