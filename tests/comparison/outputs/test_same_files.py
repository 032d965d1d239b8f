"""Files with the same bytes are not run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.comparison.outputs.same_files import NOTHING_RUN
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

HEAD = '<ir_version: 10, opset_import: ["": 20]> '
TEXT = HEAD + "g (float[n,2] x) => (float[n,2] y) <float[2] w = {1.5, 2.5}> { y = Mul(x, w) }"
RANDOM = HEAD + "g (float[2] x) => (float[2] y) { r = RandomNormalLike(x) y = Add(x, r) }"


def files(folder: Path, *texts: str) -> list[Path]:
    """Files with these models, `0.onnx` and so on."""
    made = [folder / f"{at}.onnx" for at in range(len(texts))]
    for file, text in zip(made, texts, strict=True):
        save(from_text(text), file)
    return made


def part(*sides: Path, **how: Any) -> Verification:
    """The verification of a comparison."""
    return onnxsmith.compare(*sides, **how).report.part(Verification)


def test_the_same_bytes_are_equal_without_a_run(tmp_path: Path) -> None:
    report = onnxsmith.compare(*files(tmp_path, TEXT, TEXT)).report
    found = report.part(Verification)
    assert (report.verdict.value, found.runs, found.notes) == ("done", (), (NOTHING_RUN,))
    assert report.headline == "0.onnx and 1.onnx: equal byte by byte, nothing was run"


@pytest.mark.parametrize("how", [{"thorough": True}, {"seed": 1}, {"runtime": "onnxruntime"}, {"tolerance": 0.1}])
def test_who_asks_for_more_gets_runs(tmp_path: Path, how: dict[str, Any]) -> None:
    assert part(*files(tmp_path, TEXT, TEXT), **how).runs


def test_one_other_weight_is_a_difference(tmp_path: Path) -> None:
    found = part(*files(tmp_path, TEXT, TEXT.replace("2.5", "2.6")))
    assert found.runs
    assert found.differs


def test_random_numbers_are_always_run(tmp_path: Path) -> None:
    assert part(*files(tmp_path, RANDOM, RANDOM)).runs


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    broken = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for file in broken:
        file.write_bytes(b"no model")
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.compare(*broken)
    assert caught.value.problem.id.startswith("model/")
