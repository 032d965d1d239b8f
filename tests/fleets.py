"""Plans, models and steps for the tests of the fleet. Most tests do not ask about the process of a step and play it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.fleet import cells, plan_reader, step_process
from onnxsmith.fleet.cells import Cell
from onnxsmith.fleet.row import Outcome, StepResult
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

TEXT = '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) {{ {} }}'
THRICE = TEXT.format("a = Neg(x) b = Neg(a) y = Neg(b)")
"""A model that `simplify` makes smaller."""


def models(folder: Path, *names: str, text: str = THRICE) -> None:
    """Writes a small model under each name."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        save(from_text(text), folder / name)


def plan(
    folder: Path, text: str = 'models = ["*.onnx"]\nsteps = ["simplify", "check"]\n', name: str = "p.toml"
) -> Path:
    """Writes a plan."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def cells_of(path: Path) -> list[Cell]:
    return cells.of_plan(plan_reader.read(path))


def keys(path: Path) -> dict[tuple[str, str, str], str]:
    """The key of each cell of a plan, by its place."""
    return {cell.place: cell.key for cell in cells_of(path)}


Ending = Outcome | Callable[[], object]
"""How a played step ends: an outcome, or a function that is called first, such as one that raises."""


@dataclass
class Steps:
    """Plays the processes of steps. `endings` maps a verb, or a verb and its model (`check a.onnx`), to how it ends;
    others are done. A verb that writes copies its model. `called` has the words of each step."""

    endings: Mapping[str, Ending] = field(default_factory=dict)
    writes: bool = True
    called: list[tuple[str, ...]] = field(default_factory=list)
    how: list[dict[str, Any]] = field(default_factory=list)

    def run(self, verb: str, words: Sequence[str], **how: Any) -> StepResult:
        self.called.append((verb, *words))
        self.how.append(how)
        ending = self.endings.get(f"{verb} {Path(words[0]).name}", self.endings.get(verb, Outcome.DONE))
        if not isinstance(ending, Outcome):
            ending()
            ending = Outcome.DONE
        if "-o" in words and self.writes and ending is Outcome.DONE:
            target = Path(how["folder"]) / words[words.index("-o") + 1]
            shutil.copy(Path(how["folder"]) / words[0], target) if words[0].endswith(".onnx") else models(
                target.parent, target.name
            )
        headline = f"{verb} of {Path(words[0]).name}: {ending}"
        report = {"verdict": str(ending), "headline": headline, "problems": []}
        return StepResult(verb, ("onnxsmith", verb, *words), ending, headline, 0.01, "", report)

    @property
    def verbs(self) -> list[str]:
        return [words[0] for words in self.called]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Steps without processes."""
    played = Steps()
    monkeypatch.setattr(step_process, "run", played.run)
    return played


MINUTE = 60.0
"""Limits what a test waits for. Only a broken program reaches it."""


def until(condition: Callable[[], object]) -> None:
    """Waits for a condition."""
    end = time.monotonic() + MINUTE
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def is_running(process: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        try:
            os.kill(process, 0)
        except OSError:
            return False
        return not Path("/proc").exists()
    return state not in "ZX"
