"""The command lines of `stops`: every verb that writes, with its files, outputs and undisturbed runs."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from onnxsmith.base import rooms
from onnxsmith.base.options import called, fields_of, spelled
from onnxsmith.cli import application, command_words
from onnxsmith.cli.commands.base import Command
from stressing import stop_places
from stressing.stop_places import Found

COMMANDS = {one.name: one for one in rooms.classes("onnxsmith.cli.commands", Command).values()}
LEFT_OUT = {"mcp", "fleet bisect", "fleet cell", "doctor", "op", "explain"}
"""Verbs that serve until they are stopped, need a network or a key, or read no file."""
USUAL = {
    "quantize": ["quantize net.onnx -o small.onnx --to int8 --data inputs.npz"],
    "run": ["run net.onnx --input x=inputs.npz", "run net.onnx --random -o values.npz"],
    "reduce": [
        'reduce bad.onnx -o case --check "refuses onnxruntime"',
        f'reduce bad.onnx -o case --command "{sys.executable} refuses.py {{model}}"',
    ],
    "rename": ["rename net.onnx x image -o named.onnx", "rename net.onnx x image -o net.onnx"],
    "view": ["view net.onnx -o net.html", "view net.onnx --svg net.svg"],
    "bench": ["bench tiny.onnx --dim N=4 --save times.json"],
    "baseline record": ["baseline record models/net.onnx models/new.onnx --no-time -o other.json"],
    "guard": ["guard models/net.onnx models/new.onnx"],
}
"""Lines in place of the usual one, where that takes long or reads files that are not here."""
NAMES = {
    "worst_input": "worst.npz", "weights": "weights.npz", "page": "page.html", "keep_list": "kept.json",
    "write_patch": "steps.toml", "save": "times.json", "model": "mixed.onnx",
}  # fmt: skip
"""The file for each option that writes, by the option's name in Python."""
FIXED = {".onnx", ".toml", ".npz"}
"""Files that every run writes with the same bytes."""
REPORTS = {"report.html", "report.json", "written.json"}
TRIAL = "STOPS_TRIAL"
"""An environment variable of the processes of a trial, which finds those that are left running."""
DRIVER = [sys.executable, "-P", str(Path(__file__).with_name("stop_driver.py"))]
"""Runs the command line, with the moment of its stop in an environment variable."""


@dataclass
class Line:
    """A command line with what it does when nothing stops it. `seconds` is its length, `steps` the number of changes
    that it makes in its folder."""

    verb: str
    words: list[str]
    folder: str
    status: int = 0
    seconds: float = 0.0
    steps: int = 0
    before: dict[str, Found] = field(default_factory=dict)
    outputs: dict[str, list[Found]] = field(default_factory=dict)
    why_not: str = ""


def lines(only: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yields each verb with its command lines: all outputs that its options name are written."""
    for name, command in sorted(COMMANDS.items()):
        if name in LEFT_OUT or (only and name not in only):
            continue
        for usual in USUAL.get(name, [command.usual_line.removeprefix("onnxsmith ")]):
            yield name, [*shlex.split(usual), *_more(command, shlex.split(usual))]


def _more(command: type[Command], usual: list[str]) -> list[str]:
    written = command_words.written(application.command(usual))
    fields = [one for one in fields_of(command) if one.metadata.get("writes") and called(one) not in written]
    more = [word for one in fields for word in (spelled(one), NAMES.get(called(one), "")) if NAMES.get(called(one))]
    if command.takes_record() and "--write-patch" not in more:
        more += ["--record", "written.json"]
    return [*more, "--html", "report.html", "--report", "report.json"]


def environment(trial: str, place: Path) -> dict[str, str]:
    """Returns the variables of the processes of a trial, whose temporary files lie below `place`."""
    root = str(Path(application.__file__).parents[2])
    return {
        **os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1", TRIAL: trial, "TMPDIR": str(place / "temporary"),
        "XDG_CACHE_HOME": str(place.parent / "cache"),
    }  # fmt: skip


def undisturbed(words: list[str], place: Path, seconds: float = 300) -> tuple[int, float, int, str]:
    """Runs a command in `place/here`. Returns its status, its length, its steps, and what it says."""
    (place / "temporary").mkdir(exist_ok=True)
    count = place / "count"
    count.unlink(missing_ok=True)
    begun = time.monotonic()
    done = subprocess.run(
        [*DRIVER, *words], cwd=place / "here", stdin=subprocess.DEVNULL, capture_output=True,
        env={**environment("undisturbed", place), "STOPS_COUNT": str(count)}, text=True, check=False, timeout=seconds,
    )  # fmt: skip
    passed = time.monotonic() - begun
    return done.returncode, passed, int(count.read_text()) if count.exists() else 0, done.stdout + done.stderr


def prepared(work: Path, only: list[str]) -> list[Line]:
    """Makes the folders in which the commands begin, with outputs of an earlier run, and records undisturbed runs.
    What `work` has already is used again."""
    world = work / "world" / "here"
    if not world.exists():
        _make_world(world)
    found = []
    for number, (verb, words) in enumerate(lines([])):
        if only and verb not in only:
            continue
        file = work / f"line{number}.json"
        if not file.exists():
            line = _recorded(Line(verb, words, str(work / f"line{number}")), world, work)
            file.write_text(json.dumps(asdict(line)))
        line = Line(**json.loads(file.read_text()))
        found.append(line)
        if line.why_not:
            print(f"  not tried: {shlex.join(line.words)}: {line.why_not}", flush=True)
    return [one for one in found if not one.why_not]


def _make_world(world: Path) -> None:
    stop_places.write_inputs(world, 0)
    for line in (
        "simplify net.onnx -o smaller.onnx --record record.json",
        "baseline record models/net.onnx models/new.onnx --no-time",
        "fleet run plan.toml --name yesterday",
    ):
        status, _, _, said = undisturbed(line.split(), world.parent)
        assert status == 0, said
    for name in ("one", "two"):
        stop_places.copied_file(world / "fleet.sqlite", world / f"{name}.sqlite")


def _recorded(line: Line, world: Path, work: Path) -> Line:
    """Records runs of a command: one for the outputs that exist already, and two of which outputs may be the new
    ones."""
    place = Path(line.folder)
    begin, here = place / "begin", place / "here"
    stop_places.copied(world, here)
    _take_away_others(line, here)
    undisturbed(line.words, place)
    stop_places.copied(here, begin)
    stop_places.write_inputs(begin, 1)
    for with_outputs in (True, False):  # some verbs refuse a folder that exists
        if not with_outputs:
            stop_places.copied(world, begin)
            stop_places.write_inputs(begin, 1)
        _take_away_others(line, begin)
        line.before = stop_places.states(begin)
        runs = []
        while len(runs) < 2:
            stop_places.copied(begin, here)
            line.status, line.seconds, line.steps, said = undisturbed(line.words, place)
            runs.append(stop_places.states(here))
            if all(one in REPORTS or Path(one).suffix in FIXED for one in stop_places.changed(line.before, runs[0])):
                break
        if line.status < 2:
            break
    names = {name for run in runs for name in stop_places.changed(line.before, run)}
    line.outputs = {name: [run.get(name) for run in runs] for name in sorted(names)}
    for name in names:  # a stopped command has another report, or other cells; a baseline keeps the data of two texts
        if name in REPORTS or name.endswith((".zip", "-cells")):
            line.outputs[name].append(stop_places.OTHER)
    line.why_not = said[-300:] if line.status > 1 else "" if names else "it writes nothing"
    return line


def _take_away_others(line: Line, folder: Path) -> None:
    """Removes the models that the command does not name: copies of the folder take less time."""
    text = " ".join(line.words)
    if not any(word in text for word in ("models/", "plan.toml", "baseline")):
        shutil.rmtree(folder / "models")
    for name in ("new", "functions"):
        if f"{name}.onnx" not in text:
            for file in (f"{name}.onnx", f"{name}.onnx.data"):
                (folder / file).unlink(missing_ok=True)
