"""Saves the figures of a benchmark to a file, and compares a later benchmark with them.

A time from another machine, or from other versions, proves nothing about the model. The file therefore holds the
circumstances on which times depend, and a comparison is refused if they have changed.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from onnxsmith.base import user_files
from onnxsmith.base.folders import replacing
from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.report.parts.measurements import Regression, Regressions
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.system import machine
from onnxsmith.base.words import pasted
from onnxsmith.deployment.benching.bench_options import Request
from onnxsmith.deployment.benching.measurement_statistics import LEAST_ROUNDS, between
from onnxsmith.deployment.benching.rounds import Track
from onnxsmith.deployment.benching.summary import Bench, versions
from onnxsmith.graph.files.digest import sha256
from onnxsmith.graph.files.save import disk_problems

FORMAT = 1
_LARGEST_LOG = 50
"""Limits the logarithm of a time in seconds. A choice: far beyond what can be measured, and it has an exponential."""
Ended: TypeAlias = tuple[Verdict, tuple[Problem, ...]]
"""Holds the verdict of a comparison, and the problems that explain it."""


@dataclass(frozen=True)
class Saved:
    """Describes a subject in the file. `logs` are the logarithms of its time (in seconds) in each round."""

    subject: str
    on: str
    file: str
    sha256: str
    logs: tuple[float, ...]


@dataclass(frozen=True)
class Baseline:
    """Holds the figures in a file, and their circumstances: machine, versions, inputs."""

    path: str
    machine: Mapping[str, str]
    inputs: str
    subjects: tuple[Saved, ...]


def save(path: Path, done: Bench) -> None:
    """Writes the figures of all subjects. Raises the errors of writing a file."""
    data = {
        "format": FORMAT,
        "machine": circumstances(),
        "inputs": _digest(done.given.feed.values),
        "sizes": done.given.sizes,
        "subjects": [
            {
                "subject": track.ready.subject.label,
                "on": track.ready.subject.on,
                "file": "" if (file := track.ready.subject.file) is None else str(file.absolute()),
                "sha256": "" if file is None else sha256(file),
                "logs": [math.log(time) for time in track.lows],
            }
            for track in done.measured.tracks
        ],
    }
    with disk_problems(path, "the baseline could not be written"), replacing(path) as aside:
        aside.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def read(path: Path, command: str) -> Baseline:
    """Reads a file that `save` wrote. `command` is a command line that measures the models, for the fix of a problem.

    Raises:
        OnnxsmithError: `bench/baseline` if the file is missing, or was not written by `save`.
    """
    try:
        data = user_files.parse_json(user_files.read_utf8(path))
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}, but this version reads {FORMAT}")
        subjects = tuple(
            Saved(
                str(one["subject"]),
                str(one["on"]),
                str(one["file"]),
                str(one["sha256"]),
                tuple(map(_log, one["logs"])),
            )
            for one in data["subjects"]
        )
        facts_ = {str(key): str(value) for key, value in data["machine"].items()}
        return Baseline(str(path), facts_, str(data["inputs"]), subjects)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise problem(
            "bench/baseline",
            "the baseline cannot be read",
            where=str(path),
            why="there is no such file" if isinstance(error, FileNotFoundError) else f"{type(error).__name__}: {error}",
            fix=_fix(path, command),
        ) from error


def _log(value: Any) -> float:
    """Returns the logarithm of a time in seconds. Raises ValueError for what is none: JSON of Python has NaN."""
    if not isinstance(value, float | int) or isinstance(value, bool) or not abs(value) <= _LARGEST_LOG:
        raise ValueError(f"{value!r} is not the logarithm of a time")
    return float(value)


def _fix(path: Path, command: str) -> str:
    """Returns how to get a baseline. If the file exists but is no baseline, the advice does not overwrite the file,
    which may be something else."""
    wanted = path
    if path.exists() and not _is_ours(path):
        wanted = path.with_name("baseline.json")
        while wanted.exists():
            wanted = wanted.with_name(f"{wanted.stem}_new.json")
    then = f", and compare with --against {pasted(wanted)}" if wanted != path else ""
    return f"write one with this version: `{command} --save {pasted(wanted)}`{then}"


def _is_ours(path: Path) -> bool:
    try:
        return {"format", "machine", "subjects"} <= set(user_files.parse_json(user_files.read_utf8(path)))
    except (OSError, ValueError, TypeError):
        return False


def circumstances() -> dict[str, str]:
    """Returns the machine and the versions, on which a time depends in addition to the model."""
    return {**here(), **{name: version for name, version in versions().items() if name != "onnxsmith"}}


def here() -> dict[str, str]:
    """Returns the machine: its processor, the number of its cores, and its system."""
    own = machine.HERE
    return {"processor": own.processor(), "cores": str(own.cores()), "system": platform.platform()}


def moved(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Returns the facts that differ, in words."""
    return [
        f"{name} was {before.get(name) or 'none'}, and now is {now.get(name) or 'none'}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]


def against(
    baseline: Baseline, done: Bench, request: Request, *, allow: float, any_machine: bool
) -> tuple[Regressions, Ended]:
    """Compares every subject with the saved subject on the same runtime. If there are several, it is compared with the
    saved subject of the same name. A subject is slower if its whole interval lies above 1 + `allow`."""
    now = circumstances()
    differing = {
        name: (baseline.machine.get(name, "none"), now.get(name, "none"))
        for name in sorted(baseline.machine.keys() | now.keys())
        if baseline.machine.get(name) != now.get(name)
    }
    same_inputs = baseline.inputs == _digest(done.given.feed.values)
    rows, problems = [], []
    for track in done.measured.tracks:
        saved = _partner(track, baseline.subjects)
        if saved is None:
            problems.append(_no_partner(track, baseline))
            continue
        rows.append(_row(track, saved, done.floor, allow))
        if rows[-1].slower:
            problems.append(_slower(rows[-1], baseline, saved, track, request, allow))
    part = Regressions(baseline.path, tuple(rows), differing, same_inputs, allow, any_machine)
    if (differing and not any_machine) or not same_inputs:
        why = [f"{name} was {old}, and now is {new}" for name, (old, new) in differing.items()]
        why += [] if same_inputs else ["the inputs differ from the inputs of the baseline"]
        return part, (Verdict.CANNOT_TELL, (_elsewhere(baseline, done, request, why),))
    if any(row.slower for row in rows):
        return part, (Verdict.DIFFERENT, tuple(problems))
    undecided = any(row.ratio is None for row in rows) or len(rows) < len(done.measured.tracks)
    return part, (Verdict.CANNOT_TELL if undecided else Verdict.DONE, tuple(problems))


def _partner(track: Track, saved: Sequence[Saved]) -> Saved | None:
    fitting = [one for one in saved if one.on == track.ready.subject.on]
    named = [one for one in fitting if one.subject == track.ready.subject.label]
    return named[0] if named else fitting[0] if len(fitting) == 1 else None


def _row(track: Track, saved: Saved, floor: float, allow: float) -> Regression:
    logs = [math.log(time) for time in track.lows]
    enough = min(len(logs), len(saved.logs)) >= LEAST_ROUNDS
    found = between(logs, saved.logs, floor=floor) if enough else None
    return Regression(
        subject=track.ready.subject.label,
        before=math.exp(statistics.median(saved.logs)) if saved.logs else None,
        now=math.exp(statistics.median(logs)),
        ratio=found.ratio if found else None,
        low=found.low if found else None,
        high=found.high if found else None,
        slower=found is not None and found.low > 1 + allow,
        perhaps=found is not None and found.low <= 1 + allow < found.high,
        beyond=found is not None and found.ratio > 1 + allow,
    )


def _slower(row: Regression, baseline: Baseline, saved: Saved, track: Track, request: Request, allow: float) -> Problem:
    old, new = saved.file, track.ready.subject.file
    if new is not None and old and Path(old).is_file() and str(new.absolute()) != old:
        both = request.command(f"{old}@{saved.on}", f"{new}@{saved.on}")
        fix = f"to be sure, measure the old and the new model side by side: `{both}`"
    elif new is not None and saved.on.startswith("onnxruntime"):
        fix = f"`{request.command(f'{new}@{saved.on}')} --profile` shows which operators take the time"
    else:
        fix = f"measure again, and compare the versions in the report: `{request.command(track.ready.subject.target)}`"
    return Problem(
        "bench/slower",
        f"{row.subject} is slower than the baseline by more than {allow:.0%}",
        where=baseline.path,
        why=f"ratio {row.ratio:.3g}, interval {row.low:.3g} to {row.high:.3g}",
        fix=fix,
    )


def _elsewhere(baseline: Baseline, done: Bench, request: Request, why: Sequence[str]) -> Problem:
    news = [str(file) for track in done.measured.tracks if (file := track.ready.subject.file) is not None]
    olds = [one.file for one in baseline.subjects if one.file and Path(one.file).is_file()]
    return Problem(
        "bench/other-machine",
        "the baseline was measured under other conditions, so the times cannot be compared",
        where=baseline.path,
        why="; ".join(why),
        fix=f"measure the old and the new model in one run: `{request.command(olds[0], news[0])}`"
        if olds and news and str(Path(news[0]).absolute()) != olds[0]
        else "measure the old model on this machine and save the result (--save); or compare anyway: --any-machine",
    )


def _no_partner(track: Track, baseline: Baseline) -> Problem:
    others = dict.fromkeys(one.on for one in baseline.subjects if one.on != track.ready.subject.on)
    same = f"measure on the runtimes of the baseline: {' '.join(f'--subject {pasted(one)}' for one in others)}"
    return Problem(
        "bench/no-partner",
        f"the baseline does not have exactly one subject on {track.ready.subject.on}",
        where=f"{baseline.path}: {', '.join(one.subject for one in baseline.subjects)}",
        fix=f"{same if others else 'measure one model with each --subject'}; or save a new baseline with --save",
    )


def _digest(values: Mapping[str, Any]) -> str:
    """Returns a digest of names, dtypes, shapes and values."""
    whole = hashlib.sha256()
    for name in sorted(values):
        _add(whole, name, values[name])
    return whole.hexdigest()


def _add(whole: Any, name: str, value: Any) -> None:
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _add(whole, f"{name}[{index}]", item)
        return
    array = np.asarray(value)
    whole.update(f"{name} {array.dtype} {array.shape}".encode())
    whole.update(repr(array.tolist()).encode() if array.dtype.kind in "OUS" else np.ascontiguousarray(array).tobytes())
