"""Fixes of what `onnxsmith diagnose` notes in a module: the code or the option in the fix is pasted, and exported."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.base.problem import Problem
from onnxsmith.cli import application
from tests import gallery
from tests.fixes.harness import Case, parameters

PLACE = re.compile(r"write lines? (\d+)(?: to (\d+))? of (.+?) as below \(")


def noted(
    id_: str,
    *lines: str,
    example: str = "torch.rand(3, 4)",
    dynamic: str = "",
    init: str = "",
    nth: int = 0,
    then: dict[str, str] | None = None,
    says: str = "",
    name: str = "",
) -> Case:
    """A module with these lines as its `forward`, about which `diagnose` says something. Where the fix is more than
    code, `then` maps further texts in the file, or in the options, to what the reader makes of them; `says` is the part
    of the fix that leads there."""
    body = "".join(f"        {line}\n" for line in lines)
    made = f"    def __init__(self):\n        super().__init__()\n        {init}\n\n" if init else ""
    text = (
        f"import torch\n\n\nclass Net(torch.nn.Module):\n{made}    def forward(self, x):\n{body}\n\n"
        f"def build():\n    return Net(), ({example},)\n"
    )
    options = f" --dynamic {dynamic}" if dynamic else ""
    return Case(id_, options, {"model.py": text}, nth, then or {}, says=[says] if says else (), name=name)


CASES = [
    noted("forward/assert-on-data", "assert x.max() <= 1", "return x * 2"),
    noted("forward/copied-tensor", "s = torch.tensor([x.min(), x.max()])", "return x * s.sum()"),
    noted("forward/data-attribute", "return x / x.data.abs().max()"),
    noted("forward/input-written", "x[:, 0] = 0", "return x * 2"),
    noted("forward/input-written", "return x.clamp_(0, 1) * 2", name="in an expression"),
    noted("forward/literal-size", "return x.view(3, -1) + 1", dynamic="x:0=n"),
    noted(
        "forward/loop-over-axis",
        "out = []",
        "for row in x:",
        "    out.append(row / row.sum())",
        "return torch.stack(out)",
        dynamic="x:0=n",
    ),
    noted(
        "forward/loop-over-blocks",
        "out = []",
        "for i in range(0, x.shape[1], 2):",
        "    out.append(x[:, i : i + 2].cumsum(1))",
        "return torch.cat(out, 1)",
        dynamic="x:1=n",
    ),
    noted("forward/python-value", "peak = x.abs().max().item()", "return x / peak"),
    noted(
        "forward/random",
        "return x + torch.randn_like(x)",
        then={
            "(torch.rand(3, 4),)": "(torch.rand(3, 4), torch.randn_like(torch.rand(3, 4)))",
            "x:0=n": "'x:0=n;noise:0=n'",
        },
        dynamic="x:0=n",
        says="noise:AXIS=NAME",
    ),
    noted(
        "forward/random",
        "return torch.nn.functional.dropout(x, 0.5)",
        name="dropout",
    ),
    noted("forward/size-as-number", "return x.reshape(int(x.shape[0]), 2, 2)", dynamic="x:0=n"),
    noted("forward/size-compared", "k = 2 if x.shape[0] > 2 else x.shape[0]", "return x[:k]", dynamic="x:0=n"),
    noted(
        "forward/state",
        "self.count += 1",
        "return x * self.count",
        init="self.register_buffer('count', torch.zeros(1))",
    ),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_what_a_diagnosis_says_is_pasted(one: Case, tmp_path: Path) -> None:
    with gallery.inside(tmp_path, {}):
        file, options = tmp_path / "model.py", one.command
        file.write_text(str(one.files["model.py"]))
        report = diagnosed(options)
        found = next((said for said in report["problems"] if said["id"] == one.id), None)
        assert found is not None, report["problems"]
        problem = Problem(**{name: found[name] for name in ("id", "what", "where", "why", "fix")})
        assert all(part in problem.fix for part in one.says), problem.fix
        remedy = problem.remedies[one.nth]
        if remedy.kind == "command":
            called(remedy.text)
            return
        assert remedy.kind == "code", problem.fix
        file.write_text(pasted(problem, remedy.text))
        text = file.read_text()
        for old, new in one.fill.items():
            assert old in text or old in options, old
            text, options = text.replace(old, new), options.replace(old, new)
        file.write_text(text)
        called(f"onnxsmith export model.py:build -o m.onnx{options}")
        left = [said for said in diagnosed(options)["problems"] if said["id"] == one.id]
        assert not left, f"{problem}\n\nis said again after the fix:\n{file.read_text()}\n{left}"


def pasted(problem: Problem, code: str) -> str:
    """The text of the file that a fix names, with the code of the fix in the lines that it names."""
    place = PLACE.match(problem.fix)
    assert place is not None, problem.fix
    first, last, file = int(place[1]), int(place[2] or place[1]), Path(place[3])
    lines = file.read_text().splitlines()
    return "\n".join([*lines[: first - 1], *code.splitlines(), *lines[last:]]) + "\n"


def diagnosed(options: str) -> Any:
    text = called(f"onnxsmith diagnose model.py:build{options} --json", fails=(0, 1))
    return json.JSONDecoder().raw_decode(text[text.index('{\n  "schema"') :])[0]


def called(command: str, fails: tuple[int, ...] = (0,)) -> str:
    for name in [name for name in sys.modules if name == "model"]:
        del sys.modules[name]
    text, status = gallery.called(application.main, shlex.split(command)[1:])
    assert status in fails, f"{command}:\n{text}"
    return text
