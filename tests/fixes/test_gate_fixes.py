"""Fixes of problems of baselines."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxsmith.gate.baselines import verbs
from onnxsmith.gate.baselines.settings import Settings
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests.fixes.harness import Case, Content, helps, parameters

NEG = '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
ABS = NEG.replace("Neg", "Abs")


RANDOM = '<ir_version: 10, opset_import: ["": 20]> g () => (float[2] y) { y = RandomNormal<shape = [2]>() }'
DRAWN = '<ir_version: 10, opset_import: ["": 20]> g (float[2] noise) => (float[2] y) { y = Neg(noise) }'
REFUSING = """<ir_version: 10, opset_import: ["": 20]>
g (float[n] x) => (float[k] y) <int64[2] s = {-1, 4}, int64[1] f = {-1}> { t = Reshape(x, s) y = Reshape(t, f) }"""
LARGE = """<ir_version: 10, opset_import: ["": 20]>
g (float[n] x) => (float[n,m] y) <int64[1] k = {1048576}> { s = Shape(x) t = Concat<axis = 0>(s, k)
  a = Constant<value = int64[1] {1}>() u = Unsqueeze(x, a) y = Expand(u, t) }"""


def recorded(*, protected: bool = False, data: bool = True, edited: bool = False) -> Content:
    """Writes a baseline of `m.onnx` as it was before: a Neg."""

    def write(path: Path) -> None:
        model, now = path.with_name("m.onnx"), path.with_name("m.onnx").read_bytes()
        save(from_text(NEG), model)
        verbs.record([model], path, Settings(times=False))
        model.write_bytes(now)
        if edited:
            path.write_text(path.read_text().replace('"tolerance": 1e-05', '"tolerance": 0.5'))
        if protected:
            path.chmod(0o444)
        if not data:
            path.with_suffix(".zip").unlink()

    return write


def gone(path: Path) -> None:
    """Records n.onnx, and removes it."""
    model = path.with_name("n.onnx")
    verbs.record([model], path.with_name("baseline.json"), Settings(times=False))
    model.unlink()


SAME: dict[str, Content] = {"m.onnx": NEG, "baseline.json": recorded()}
CHANGED: dict[str, Content] = {"m.onnx": ABS, "baseline.json": recorded()}
RECORD = "onnxsmith baseline record n.onnx -o baseline.json"
"""The command measures times; `--no-time` saves that here."""
CASES = [
    Case(
        "gate/already-recorded",
        "onnxsmith baseline record m.onnx --no-time",
        CHANGED,
    ),
    Case("gate/worse", "onnxsmith baseline check --no-time", CHANGED, nth=1),
    Case(
        "gate/baseline-data",
        "onnxsmith baseline check --no-time",
        {"m.onnx": NEG, "baseline.json": recorded(data=False)},
        changes={"baseline.json": lambda path: (path.unlink(), recorded()(path))},  # type: ignore[operator]
        says=["remove the baseline and record the models again"],
    ),
    Case(
        "gate/model-missing",
        "onnxsmith baseline check --no-time",
        {**SAME, "gone": lambda path: path.with_name("m.onnx").unlink()},
        changes={"m.onnx": NEG},
        says=["bring the file back"],
    ),
    Case(
        "gate/model-missing",
        "onnxsmith baseline check --no-time",
        {**SAME, "n.onnx": ABS, "gone": gone},
        nth=1,
        name="drop",
    ),
    Case(
        "gate/model-new",
        "onnxsmith baseline check m.onnx n.onnx --no-time",
        {**SAME, "n.onnx": ABS},
    ),
    Case(
        "gate/no-baseline",
        "onnxsmith baseline check n.onnx --no-time",
        {"n.onnx": NEG},
        by_hand=f"{RECORD} --no-time",
        says=[f"`{RECORD}`"],
    ),
    Case(
        "gate/no-model",
        "onnxsmith baseline record --no-time",
        {"m.onnx": NEG},
        by_hand="onnxsmith baseline record m.onnx --no-time",
        says=["`onnxsmith baseline record m.onnx`"],
    ),
    Case(
        "gate/random",
        "onnxsmith baseline record r.onnx --no-time",
        {"r.onnx": RANDOM},
        changes={"r.onnx": DRAWN},
        says=["make the random tensor an input of the model"],
    ),
    Case(
        "gate/entry-changed",
        "onnxsmith baseline check --no-time",
        {"m.onnx": NEG, "baseline.json": recorded(edited=True)},
        by_hand='onnxsmith baseline accept m.onnx -o baseline.json --reason "why" --no-time',
        says=['onnxsmith baseline accept m.onnx -o baseline.json --reason "why"'],
    ),
    Case(
        "gate/dim",
        "onnxsmith baseline record m.onnx --dim n=3 --no-time",
        {"m.onnx": REFUSING},
        by_hand="onnxsmith baseline record m.onnx --dim n=8 --no-time",
        says=["declare only sizes that the model accepts"],
    ),
    Case(
        "gate/too-large",
        "onnxsmith baseline record m.onnx --dim n=128 --no-time",
        {"m.onnx": LARGE},
        by_hand="onnxsmith baseline record m.onnx --dim n=1 --no-time",
        says=["record smaller sizes: --dim n="],
    ),
    Case("gate/no-reason", "onnxsmith baseline accept m.onnx --no-time", CHANGED),
    Case(
        "gate/not-in-baseline",
        "onnxsmith baseline check n.onnx --no-time",
        SAME,
        by_hand="onnxsmith baseline check m.onnx --no-time",
        says=["write m.onnx in place of n.onnx"],
    ),
    Case("gate/nothing-changed", "onnxsmith baseline accept m.onnx --reason x --no-time", SAME, nth=1, goes_on=False),
    Case(
        "gate/read-only",
        "onnxsmith baseline accept m.onnx --reason x --no-time",
        {"m.onnx": ABS, "baseline.json": recorded(protected=True)},
    ),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case, tmp_path: Path) -> None:
    helps(one, tmp_path)
