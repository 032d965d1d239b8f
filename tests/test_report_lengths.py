"""Without `-v`, the report of every verb on a model of 300 layers has at most 60 lines, and in a terminal fits it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console

import onnxsmith
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Block, Facts, Part, Report, Table, Text, Tone
from onnxsmith.base.report.parts.quantisation import CurvePoint, LayerDamage, LeftAlone, Quantisation
from onnxsmith.base.report.parts.target_checks import NodeCheck, Stage, TargetCheck, TargetChecks, refusals, summary
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.render.terminal import show

LINES = 60
WIDTH = 100
SCREEN = 30
"""The height of the terminal in lines."""


def printed(report: Report, *, whole: bool = False, brief: bool = False) -> str:
    out = io.StringIO()
    show(report, Console(file=out, width=WIDTH, height=SCREEN), whole=whole, brief=brief)
    return out.getvalue()


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes a model of 150 products with a bias and a Relu each."""
    rng = np.random.default_rng(0)
    nodes, held, last = [], [], "x"
    for at in range(150):
        held.append(numpy_helper.from_array((rng.normal(size=(16, 16)) / 3).astype(np.float32), f"w{at}"))
        held.append(numpy_helper.from_array(rng.normal(size=16).astype(np.float32), f"b{at}"))
        nodes += [
            helper.make_node("Gemm", [last, f"w{at}", f"b{at}"], [f"h{at}"], name=f"/blocks/{at}/product/Gemm"),
            helper.make_node("Relu", [f"h{at}"], [last := f"r{at}"], name=f"/blocks/{at}/activation/Relu"),
        ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 16]) for name in ("x", last)]
    model = helper.make_model(
        helper.make_graph(nodes, "g", ports[:1], ports[1:], held),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    file = tmp_path_factory.mktemp("deep") / "m.onnx"
    onnx.save(model, file)
    return file


def edited(file: Path, steps: Callable[[Any], object]) -> Any:
    with onnxsmith.edit(file, file.with_name("edited.onnx")) as m:
        steps(m)
    return m.result


def renamed(edit: Any) -> None:
    for at in range(90):
        edit.rename(node=f"/blocks/{at}/product/Gemm", to=f"product{at}")


def second(file: Path) -> Path:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n,16] r149) => (float[n,16] v) { v = Relu(r149) }'
    onnx.save(onnx.parser.parse_model(text), file.with_name("second.onnx"))
    return file.with_name("second.onnx")


VERBS: dict[str, Callable[[Path], Any]] = {
    "simplify": lambda m: onnxsmith.simplify(m, explain=True, diff=True),
    "quantize to float16": lambda m: onnxsmith.quantize(m, to="float16", evaluations=2, measure_time=False),
    "prune": lambda m: onnxsmith.prune(m, multiple=1, measure_time=False),
    "bisect": lambda m: onnxsmith.bisect(m, tolerance=0.5, tries=8),
    "compare": lambda m: onnxsmith.compare(m, m, per_layer=True),
    "check": lambda m: onnxsmith.check(m, ["onnxruntime"]),
    "inspect": lambda m: onnxsmith.inspect(m),
    "edit": lambda m: edited(m, renamed),
    "opset": lambda m: edited(m, lambda e: e.opset(18)),
    "merge": lambda m: onnxsmith.merge(m, second(m)),
    "split": lambda m: onnxsmith.split(m, m.with_name("pieces"), into=8),
    "bundle": lambda m: onnxsmith.bundle(m, m.with_name("bundle"), form="python"),
    "run": lambda m: onnxsmith.run(m, random=True),
    "bench": lambda m: onnxsmith.bench(m, subjects=("onnxruntime",), sizes={"n": 2}, seconds=1),
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_a_report_is_short(verb: str, deep: Path) -> None:
    done = VERBS[verb](deep)
    report = done if isinstance(done, Report) else done.report
    text = printed(report)
    assert len(text.splitlines()) <= LINES, text
    text = printed(report, brief=True)
    assert len(text.splitlines()) < SCREEN, text
    assert text.startswith(report.headline), text


def test_int8_with_each_kind_of_layer() -> None:
    why = "it is out of range on the data: a reason that takes more than a line of the terminal, once it is printed"
    kinds = ({"kept": why}, {"kept": "", "weights": why}, {"kept": "", "eight": why}, {"kept": ""})
    layers = tuple(LayerDamage(f"/blocks/{at}/product/Gemm", "Gemm", 64, 0.1, **kinds[at % 4]) for at in range(300))
    curve = tuple(CurvePoint(at, 9, 0.9, False) for at in range(40))
    left = tuple(LeftAlone(f"Operator{at}", 2, 8, why) for at in range(40))
    part = Quantisation(
        "int8", "m", layers, "top1", "higher", 1, 0.99, 0.9, "1%", 9, 9, True, True, 0, 9, 4, 40, curve, left,
        notes=tuple(f"{why} {at}" for at in range(40)),
    )  # fmt: skip
    text = printed(Report("quantize", Verdict.DONE, (part,), headline=part.summary()))
    assert len(text.splitlines()) <= LINES, text


def test_each_target_of_a_check_has_its_row() -> None:
    why = "the target does not know this operator: a reason that takes more than a line of the terminal"
    nodes = tuple(NodeCheck(f"node {at}", "acme::Gate", Stage.REFUSED, why, "m.py:1", why) for at in range(9))
    checks = tuple(
        TargetCheck(f"target-{at}", "", "1.0", True, Stage.REFUSED, why, nodes=nodes, notes=(why,)) for at in range(16)
    )
    problems = refusals(checks, "m.onnx", [])
    headline = ", ".join(map(summary, checks))
    text = printed(Report("check", Verdict.DIFFERENT, (TargetChecks(checks),), headline=headline, problems=problems))
    assert len(text.splitlines()) <= LINES, text
    assert all(f"  target-{at} " in text for at in range(16))
    assert "more tables: -v, --html, --json" in text
    assert "node 0" in text


class Long(Part):
    """Has more of everything than a screen."""

    title = "Long"

    def blocks(self) -> Any:
        rows = tuple((f"layer {at}", "a reason that takes more than a line of the terminal, " * 3) for at in range(90))
        blocks: list[Block] = [Table(("name", "why"), rows), Table(("name", "why"), rows), Facts(rows)]
        blocks += [Text(f"remark {at}") for at in range(90)]
        yield from (*blocks, Text("remark on something bad", Tone.BAD))


LONG = Report(
    "long",
    Verdict.FAILED,
    (Long(),),
    notes=tuple(f"note {at}" for at in range(90)),
    problems=tuple(Problem(f"a/b{at}", "it is wrong") for at in range(90)),
    headline="the last line",
)


def test_more_of_everything_is_cut_and_counted() -> None:
    text = printed(LONG)
    assert len(text.splitlines()) <= LINES
    assert "the last line" in text
    assert "remark on something bad" in text
    assert "a/b0" in text
    for noun in ("rows", "sentences", "notes", "problems"):
        assert f"more {noun}: -v, --html, --json" in text


def test_verbose_shows_everything() -> None:
    text = printed(LONG, whole=True)
    assert "more" not in text.replace("more than", "")
    assert all(f"{name} 89" in text for name in ("layer", "remark", "note"))
    assert "a/b89" in text
