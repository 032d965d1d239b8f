"""Makes the report of a check: a row for each model, problems, the verdict, and the headline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxsmith.base.clock import Clock
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.baselines import (
    BETTER,
    CHANGED,
    UNKNOWN,
    WORSE,
    BaselineChange,
    BaselineModel,
    Baselines,
)
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import first_few, pasted, several
from onnxsmith.gate.baselines.baseline_file import Baseline
from onnxsmith.gate.baselines.change import ORDER, Change
from onnxsmith.gate.baselines.entry import Entry
from onnxsmith.gate.baselines.settings import Settings

if TYPE_CHECKING:
    from onnxsmith.gate.baselines.holding import Held

_SHOWN = 3
"""Limits the models that a headline names, and the changes in a problem. A choice."""


@dataclass(frozen=True)
class Found:
    """What was found about one model: how it is `held` to its entry, that it is `gone`, the `error` that stopped it, or
    nothing if the baseline has no entry for its `file`."""

    name: str
    entry: Entry | None
    held: Held | None = None
    gone: bool = False
    error: Problem | None = None
    file: Path | None = None

    @property
    def changes(self) -> tuple[Change, ...]:
        """Returns the changes, the worst first."""
        if self.gone:
            return (Change("missing", WORSE, "the file of the model does not exist any more"),)
        if self.entry is None:
            return (Change("new", UNKNOWN, "the baseline has no entry for this model"),)
        return self.held.changes if self.held is not None else ()

    @property
    def result(self) -> str:
        """Returns the result in a word or two."""
        if self.error is not None:
            return "failed"
        if self.gone or self.entry is None:
            return self.changes[0].kind
        found = {one.result for one in self.changes}
        return next((one for one in (WORSE, UNKNOWN, CHANGED, BETTER) if one in found), "as recorded")


def row(name: str, result: str, entry: Entry) -> BaselineModel:
    """Returns the row of a model as it is recorded."""
    return BaselineModel(
        model=name,
        result=result,
        inputs=len(entry.cases),
        nodes=entry.node_count,
        bytes=entry.size,
        time=entry.times.median if entry.times is not None else None,
        targets={target: one.stage for target, one in entry.targets.items()} or None,
    )


def report(baseline: Baseline, found: Sequence[Found], settings: Settings, clock: Clock) -> Report:
    """Makes the report."""
    changes = tuple(
        BaselineChange(one.name, change.kind, change.result, change.what) for one in found for change in one.changes
    )
    results = {one.result for one in found}
    verdict = Verdict.DONE
    if "failed" in results:
        verdict = Verdict.FAILED
    elif results & {WORSE, "missing"}:
        verdict = Verdict.DIFFERENT
    elif results & {UNKNOWN, "new"}:
        verdict = Verdict.CANNOT_TELL
    ordered = sorted(found, key=_importance)
    return Report(
        "baseline",
        verdict,
        (Baselines(str(baseline.path), tuple(map(_row, found)), changes), Timing(clock.passed())),
        tuple(problem for one in ordered for problem in _problems(baseline, one, settings)),
        notes=tuple(_notes(found, settings)),
        headline=_headline(baseline, ordered),
    )


def _importance(one: Found) -> tuple[int, int]:
    if one.error is not None:
        return (0, 0)
    results = ("missing", WORSE, UNKNOWN, "new")
    kind = ORDER.index(one.changes[0].kind) if one.changes else len(ORDER)
    return (1 + results.index(one.result) if one.result in results else 9, kind)


def _row(one: Found) -> BaselineModel:
    if one.held is None or one.entry is None:
        return BaselineModel(one.name, one.result)
    stages = {name: target.stage for name, target in (one.held.targets or {}).items()}
    inputs = len(one.entry.cases)
    return BaselineModel(one.name, one.result, inputs, one.held.nodes, one.held.bytes, one.held.time, stages or None)


def _notes(found: Sequence[Found], settings: Settings) -> Iterator[str]:
    if not settings.times and any(one.entry is not None and one.entry.times is not None for one in found):
        yield "times and memory were not measured, because of --no-time"
    moved = dict.fromkeys(text for one in found if one.held is not None for text in one.held.moved)
    if moved:
        yield f"changes since the recording: {'; '.join(moved)}"


def _problems(baseline: Baseline, one: Found, settings: Settings) -> Iterator[Problem]:
    if one.error is not None:
        yield one.error
        return
    if one.gone:
        yield Problem(
            "gate/model-missing",
            f"the file of the model {one.name} is missing",
            where=str(baseline.path),
            why="the baseline has an entry for this model, but the file does not exist",
            fix=f"bring the file back; or `{baseline.command('drop', baseline.file_of(one.name))} "
            '--reason "why it is gone"`',
        )
        return
    if one.entry is None:
        yield Problem(
            "gate/model-new",
            f"the baseline has no model {one.name}",
            where=str(baseline.path),
            why="nothing was recorded for this model, so the check would not notice a worse result",
            fix=f"record it: `{baseline.command('record', one.file or one.name)}"
            f"{settings.time_option(timed=any(other.times for other in baseline.entries.values()))}`",
        )
        return
    file = baseline.file_of(one.name)
    untimed = settings.time_option(timed=one.entry.times is not None)
    accept = f'`{baseline.command("accept", file)} --reason "why it changed"{untimed}`'
    worse = [change for change in one.changes if change.result == WORSE]
    if worse:
        helps = {kind: _help(kind, one.entry, baseline, file) for kind in _worse_kinds(one)}
        listed = [f"{kind}: {text}" for kind, text in helps.items()] if len(helps) > 1 else list(helps.values())
        yield Problem(
            "gate/worse",
            f"{one.name} is worse than its baseline: {', '.join(helps)}",
            where=str(baseline.path),
            why="; ".join(f"{change.kind}: {change.what}" for change in worse[:_SHOWN]),
            fix=f"{'; '.join(listed)}; if the change is meant, {accept}",
        )
    unknown = [change for change in one.changes if change.result == UNKNOWN]
    if unknown:
        moved = bool(one.held is not None and one.held.moved)
        yield _not_compared(baseline, one.name, unknown, accept, untimed, moved=moved)


def _not_compared(
    baseline: Baseline, name: str, unknown: Sequence[Change], accept: str, untimed: str, *, moved: bool
) -> Problem:
    """Returns the problem of what could not be compared. `moved` says that versions or the machine are others."""
    kinds = {change.kind for change in unknown}
    file = pasted(baseline.file_of(name))
    again = f"onnxsmith baseline record {file} --input inputs.npz -o other.json{untimed}"
    if "slower" in kinds and moved:
        fix = (
            f"leave the times out: --no-time; or record the times again, {accept}; or keep one baseline for each "
            "machine"
        )
    elif "slower" in kinds:
        fix = "measure for longer: --seconds 10; or leave the times out: --no-time"
    elif kinds & {"weights", "graph"}:
        fix = f"record inputs whose results depend on the change: `{again}`; if the change is meant, {accept}"
    else:
        fix = "install the target on this machine, or record the model again on this machine"
    return Problem(
        "gate/not-compared",
        f"some recorded results of {name} could not be compared",
        where=str(baseline.path),
        why="; ".join(change.what for change in unknown[:_SHOWN]),
        fix=fix,
    )


_FIXES = {
    "interface": "restore the recorded names, order and shapes of the inputs and outputs",
    "weights": "look for the first layer that differs from the recorded file: `{recorded} && onnxsmith compare "
    "recorded.onnx {file} --per-layer`",
    "graph": "list all changes since the recorded file: `{recorded} && onnxsmith diff recorded.onnx {file}`",
    "runtime": "compare with ONNX's reference runtime: `onnxsmith compare {file}@reference {file} --per-layer`",
    "machine": "compare with ONNX's reference runtime: `onnxsmith compare {file}@reference {file} --per-layer`",
    "unsteady": (
        "look for nodes that draw random numbers, or that depend on the order of threads: `onnxsmith inspect {file}`"
    ),
    "target": "see which nodes the target refuses: `onnxsmith check {file}`",
    "slower": "see which nodes take the time: `onnxsmith bench {file} --profile`",
    "memory": "see which nodes take the memory: `onnxsmith inspect {file} --costs`",
    "size": "see which weights take the bytes: `onnxsmith inspect {file} --weights`",
    "nodes": "remove nodes that are not needed: `onnxsmith simplify {file} -o simplified.onnx`",
}
"""Maps the cause of a change to what helps to find or undo it."""


_WITHOUT_OPTIMISATION = (
    "compare with the same runtime without its optimisations: "
    "`onnxsmith compare {file}@{runtime}:disable {file} --per-layer`"
)
"""Helps with a model whose operators the runtime of ONNX does not know."""


def _help(kind: str, entry: Entry, baseline: Baseline, file: Path) -> str:
    """Returns what helps to find or undo a change of a cause."""
    text = _FIXES[kind]
    if kind in ("runtime", "machine") and any("::" in op for op in entry.nodes):
        text = _WITHOUT_OPTIMISATION
    recorded = _recorded(baseline, baseline.name_of(file))
    return text.format(file=pasted(file), recorded=recorded, runtime=entry.runtime)


def _recorded(baseline: Baseline, name: str) -> str:
    """Returns the command line that writes a model as it was when its baseline was last committed. The last commit of
    all may have the changed model already."""
    folder = baseline.path.parent
    git = "git" if folder == Path() else f"git -C {pasted(folder)}"
    commit = f'"$({git} log -1 --format=%h -- {pasted(baseline.path.name)})"'
    return f"{git} show {commit}:{pasted(f'./{name}')} > recorded.onnx"


def _worse_kinds(one: Found) -> list[str]:
    return list(dict.fromkeys(change.kind for change in one.changes if change.result == WORSE))


def _headline(baseline: Baseline, ordered: Sequence[Found]) -> str:
    failed = [one.name for one in ordered if one.error is not None]
    said = [f"FAILED: {first_few(failed, _SHOWN)}"] if failed else []
    bad = [one for one in ordered if one.result in (WORSE, "missing")]
    if bad:
        texts = [f"{one.name}: {', '.join(_worse_kinds(one))}" for one in bad]
        more = f"; and {several(len(texts) - 1, 'more model')}" if len(texts) > 1 else ""
        said.append(f"{len(bad)} of {several(len(ordered), 'model')} WORSE than {baseline.path}: {texts[0]}{more}")
    unsure = [one.name for one in ordered if one.result in (UNKNOWN, "new")]
    if unsure:
        why = next(one.changes[0].what for one in ordered if one.name == unsure[0])
        said.append(f"CANNOT TELL about {first_few(unsure, _SHOWN)}: {why}")
    if not said:
        said.append(f"{several(len(ordered), 'model')} not worse than {baseline.path}")
    changed = [one.name for one in ordered if one.result in (CHANGED, BETTER)]
    return "; ".join([*said, *([f"changed, not worse: {first_few(changed, _SHOWN)}"] if changed else [])])
