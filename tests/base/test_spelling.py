"""Errors name options on the command line, and arguments in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.base.spelling import respelled, typed
from onnxsmith.cli.application import app
from onnxsmith.graph.files.save import save
from tests.conftest import Refused
from tests.precision.test_weight_storage import HEAD, made

ARGUMENTS = {
    "to": "auto", "data": None, "metric": None, "budget": "1%", "keep": (), "target": None, "samples": None,
    "evaluations": 20, "allow_slower": False, "measure_time": True, "sizes": None, "keep_list": None, "by": "norm",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("give --samples 100", "give samples=100"),
        ("a share, --budget 0.5%, or --budget 0.01", 'a share, budget="0.5%", or budget=0.01'),
        ("give more --evaluations, a wider --budget, or another --to",
         "give more evaluations=…, a wider budget=…, or another to=…"),
        ("give --to int8 --target tensorrt-10", 'give to="int8", target="tensorrt-10"'),
        ("--target openvino", 'target="openvino"'),
        ("leave --target out: or", "leave target=… out: or"),
        ("add --allow-slower if", "add allow_slower=True if"),
        ("or --no-time.", "or measure_time=False."),
        ("write --dim batch=1", 'write sizes={"batch": 1}'),
        ("leave --dim out: all", "leave sizes=… out: all"),
        ("in float32: --keep keep.txt; or", 'in float32: keep=["name", …]; or'),
        ("`echo LAYER > wide.txt`, then add --keep wide.txt", 'keep=["LAYER"]'),
        ("give some: --data DATA", "give some: data=…"),
        ("--metric top1", 'metric="top1"'),
        ("or --by norm", 'or by="norm"'),
        ("`onnxsmith compare A B --budget 3` and --budget 3", "`onnxsmith compare A B --budget 3` and budget=3"),
        ("--opset 18 of another command", "--opset 18 of another command"),
    ],
)  # fmt: skip
def test_options_become_arguments(text: str, expected: str) -> None:
    assert respelled(text, ARGUMENTS) == expected


def product(folder: Path) -> Path:
    path = folder / "model.onnx"
    text = f"{HEAD} g (float[n,64] x, float[64,64] v, float[64,64] w) => (float[n,64] y) "
    save(made(text + "{ a = MatMul(x, v) b = Relu(a) y = MatMul(b, w) }", v=None, w=None), path)
    return path


@pytest.mark.parametrize("verb", ["quantize", "prune"])
def test_python_gets_arguments_and_a_command_options(tmp_path: Path, refused: Refused, verb: str) -> None:
    path = product(tmp_path)
    with refused("quantize/samples") as refusal:
        getattr(onnxsmith, verb)(path, samples=0)
    assert refusal.problem.fix == "give samples=100"
    with typed(), refused("quantize/samples") as refusal:
        getattr(onnxsmith, verb)(path, samples=0)
    assert refusal.problem.fix == "give --samples 100"


def test_problems_of_a_report_are_respelled(tmp_path: Path) -> None:
    result = onnxsmith.quantize(product(tmp_path), to="int4", budget=0.0, measure_time=False, evaluations=1)
    (found,) = result.report.problems
    assert found.id == "quantize/budget-not-met"
    assert "--" not in found.fix
    assert "budget=" in found.fix


def test_no_message_of_the_command_is_respelled(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    ran = CliRunner().invoke(app, ["quantize", str(product(tmp_path)), "--samples", "0", "--json"])
    assert "give --samples 100" in ran.output
