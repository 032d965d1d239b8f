"""Measures a finished file: its score with and without optimisations, its size, its time, and its score on other
runtimes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base import folders
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.parts.measurements import Ratio
from onnxsmith.base.words import change, of_one, told_apart
from onnxsmith.deployment.benching import two_files
from onnxsmith.graph.files.save import data_files, save_for_now
from onnxsmith.precision.damage import relative_error
from onnxsmith.precision.method_trial import Tried
from onnxsmith.precision.quantisation_request import Given
from onnxsmith.precision.scoring import Scored
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Runtime

_ALSO = ("openvino",)
"""Other runtimes on which the file is scored, if they are installed."""
_APART = 0.05
"""The relative root-mean-square error of an output above which the report mentions the output. A choice."""
_WORDS = 200
"""The most characters of a refusal that are shown. A choice."""
_CHECK = re.compile(r"Check '.*?' failed at [\w/.]+:\d+:\s*")
"""The source location that OpenVINO puts before its message."""
_LEVELS = ("all", "disable")
_INSTEAD = ("openvino", "reference")
"""Runtimes on which a file is scored if onnxruntime lacks kernels for it, such as those of bfloat16 on a CPU."""


@dataclass(frozen=True)
class Final:
    """A file and its measurements. `plain` is the score without optimisations. `ratio` is the file's time divided by
    that of the given model, None if it was not measured; `times` has the ratio in words. `also` are the scores on other
    runtimes."""

    model: ir.Model
    name: str
    scored: Scored
    plain: Scored
    is_within: bool
    score: str
    bound: float
    nbytes: int
    nbytes_before: int
    ratio: float | None
    is_slower: bool
    times: str
    also: Mapping[str, str]
    elsewhere: Mapping[str, bool]
    """Whether the score on each other runtime is within the budget."""
    refusals: Mapping[str, str]
    """The messages of other runtimes that refuse the file."""

    @property
    def merit(self) -> float:
        """Returns the product of size and time, each relative to the given model. Smaller is better."""
        return self.nbytes / max(1, self.nbytes_before) * (self.ratio if self.ratio is not None else 1.0)

    def said(self, before: float) -> str:
        """Summarises score, size and time in one line."""
        size = self.nbytes / max(1, self.nbytes_before)
        return f"{self.score} {change(before, self.scored.value, 4)}, {of_one(size)} of the size, {self.times}"

    def problems(self, *, allow_slower: bool, target: str | None = None) -> Iterator[Problem]:
        """Yields the reasons for which the file is not written."""
        if target is not None and target in self.refusals:
            yield Problem(
                "quantize/target-refuses",
                f"{target} does not accept the {self.name} file",
                where=f"--target {target}",
                why=self.refusals[target],
                fix="leave --target out, for a runtime that accepts the file; or try another --to; or, if the "
                "message names a layer, keep that layer in float32: `echo LAYER > wide.txt`, then add --keep "
                "wide.txt, with the layer's name in place of LAYER",
            )
        elif target is not None and self.elsewhere.get(target) is False:
            yield Problem(
                "quantize/target-differs",
                f"the {self.name} file is out of budget on {target}",
                where=f"score {self.also[f'on {target}']}; the budget allows {self.bound:.6g} at worst",
                why=f"{target} computes other outputs than onnxruntime; on onnxruntime the score is "
                f"{self.scored.value:.6g}",
                fix="try another --to; or leave --target out, and compare the written file, OUT, on both: "
                f"`onnxsmith compare OUT@onnxruntime OUT@{target} --per-layer`",
            )
        if not self.is_within:
            every, none, bound = told_apart(self.scored.value, self.plain.value, self.bound)
            yield Problem(
                "quantize/levels-differ",
                f"the {self.name} file is out of budget at one of onnxruntime's optimisation levels",
                where=f"score with all optimisations: {every}; without optimisations: {none}; the budget allows "
                f"{bound} at worst",
                fix="give a wider --budget, or another --to",
            )
        if self.nbytes >= self.nbytes_before:
            yield Problem(
                "quantize/larger",
                f"the {self.name} file would not be smaller",
                where=f"{self.nbytes:,} bytes of {self.nbytes_before:,}",
                fix="keep the given model: it has few weights that could shrink"
                + ("" if self.name in ("float16", "bfloat16") else "; or --to float16, which adds no scales"),
            )
        if self.is_slower and not allow_slower:
            yield Problem(
                "quantize/slower",
                f"the {self.name} file is slower than the given model on this machine",
                where=f"{self.times}; {self.nbytes:,} bytes instead of {self.nbytes_before:,}",
                fix="add --allow-slower if only the size matters, or try another --to",
            )


def final(
    tried: Tried,
    loaded: ir.Model,
    given: Given,
    before: Scored,
    runtime: Runtime,
    *,
    nbytes: int | None = None,
    target: str | None = None,
    measure_time: bool = True,
) -> Final:
    """Writes the model to a temporary file and measures that file. `nbytes` is the size of the given file, if the model
    came from a file."""
    assert tried.model is not None
    with folders.temporary() as folder:
        path, old = folder / "new.onnx", folder / "old.onnx"
        save_for_now(tried.model, path)
        save_for_now(loaded, old)
        scores, said = scores_of(path, given, runtime)
        better = given.scoring.score.better
        within = [
            given.budget.allows(before.value, one.value, better) and one.broken <= before.broken for one in scores
        ]
        ratio, where = time_ratio(old, path, given, target) if measure_time else (None, "")
        also, elsewhere, refusals = _also(path, old, given, before)
        return Final(
            model=tried.model,
            name=tried.name,
            scored=scores[0],
            plain=scores[1],
            is_within=all(within),
            score=given.scoring.score.title,
            bound=given.budget.bound(before.value, better),
            nbytes=_file_bytes(path),
            nbytes_before=_file_bytes(old) if nbytes is None else nbytes,
            ratio=None if ratio is None else ratio.ratio,
            is_slower=ratio is not None and ratio.ranked and (ratio.ratio or 0.0) > 1,
            times=times_said(ratio, where),
            also=said | _of_outputs(scores[0]) | _unread(old, path, given, runtime) | also | _not_asked(target),
            elsewhere=elsewhere,
            refusals=refusals | ({"onnxruntime": said["on onnxruntime"].removeprefix("refused: ")} if said else {}),
        )


def scores_of(path: Path, given: Given, runtime: Runtime) -> tuple[list[Scored], dict[str, str]]:
    """Scores the file with all optimisations and with none. Also returns remarks for the report, by subject. If
    onnxruntime lacks kernels for the file, scores it once on another runtime."""
    try:
        found = []
        for level in _LEVELS:
            with runtime.prepare(path, Options(optimization=level)) as session:
                found.append(given.scoring.of(session))
        return found, {}
    except OnnxsmithError as error:
        lacking = error
    if lacking.problem.id != "runtime/no-kernel":
        raise lacking
    for name in _INSTEAD:
        try:
            with runtimes.get(name).prepare(path) as session:
                one = given.scoring.of(session)
        except OnnxsmithError:
            continue
        return [one, one], {"on onnxruntime": f"refused: {lacking.problem.what}", "measured on": name}
    raise lacking


def _unread(old: Path, new: Path, given: Given, runtime: Runtime) -> dict[str, str]:
    """Describes the outputs that the score does not read (all but the first) and that differ much on the first
    sample."""
    sample = next(iter(given.scoring.samples), None)
    if sample is None or given.scoring.decode is not None or not given.scoring.score.reads_first:
        return {}
    found = {}
    with runtime.prepare(old) as one:
        names = [port.name for port in one.signature.outputs][1:]
        before = one.run(dict(sample.feeds)) if names else {}
    if not names:
        return {}
    try:
        with runtime.prepare(new) as other:
            after = other.run(dict(sample.feeds))
    except OnnxsmithError:  # the runtime has no kernels for the file, and the score is from another runtime
        return {}
    for name in names:
        value = before[name]
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            apart = relative_error(value, after[name])
            if not apart <= _APART:
                found[f"output {name} (the score does not read it)"] = (
                    f"the root mean square of the differences is {apart:.2g} of the output's root mean square"
                )
    return found


def _of_outputs(scored: Scored) -> dict[str, str]:
    """Describes the score of each output, if there are several."""
    if len(scored.by_output) < 2:
        return {}
    return {f"output {name}": f"{value:.6g}" for name, value in scored.by_output.items()}


def _file_bytes(path: Path) -> int:
    """Returns the bytes of a model's file and its external data."""
    return sum(file.stat().st_size for file in (path, *data_files(path)))


def time_ratio(old: Path, new: Path, given: Given, target: str | None = None) -> tuple[Ratio | None, str]:
    """Returns the time of the new file divided by that of the old file, on the first sample, and the runtime it was
    measured on. This is the target if it runs here, else onnxruntime. The ratio is None if it cannot be measured."""
    feeds = next((dict(one.feeds) for one in given.scoring.samples), None)
    default = runtimes.default()
    for name in dict.fromkeys((runtime_of(target) or default, default)):
        with contextlib.suppress(OnnxsmithError):
            if (found := two_files.time_ratio(old, new, name, feeds or {})) is not None:
                return found, name
    return None, ""


def runtime_of(target: str | None) -> str:
    """Returns the runtime of a target; "" if the file cannot be scored on it here."""
    name = (target or "").partition("@")[0]
    return name if name in (runtimes.default(), *_ALSO) else ""


def _not_asked(target: str | None) -> dict[str, str]:
    """Returns the report's remark on a target that does not run here."""
    if target is None or runtime_of(target):
        return {}
    return {
        f"on {target}": f"not tried: the file is for {target}, and `onnxsmith check` with --target {target} checks it"
    }


def times_said(ratio: Ratio | None, where: str = "") -> str:
    """Says the ratio in words, with the runtime `where` it was measured."""
    on = f" on {where}" if where else ""
    if ratio is None or ratio.ratio is None:
        return "the time was not measured" + ("" if ratio is None else " in enough rounds")
    if not ratio.ranked:
        return f"time not distinguishable{on} ({ratio.ratio:.2f})"
    return f"{of_one(ratio.ratio)} of the time{on}"


def _also(
    path: Path, old: Path, given: Given, before: Scored
) -> tuple[dict[str, str], dict[str, bool], dict[str, str]]:
    """Scores the file on other runtimes. Returns, by runtime: the score in words, whether it is within the budget, and
    the message of a runtime that refuses the file."""
    found, within, refusals = {}, {}, {}
    for name in _ALSO:
        try:
            by_default = _score(path, given, name, exact=False)
            fits = given.budget.allows(before.value, by_default, given.scoring.score.better)
            exact = by_default if fits else _score(path, given, name, exact=True)  # float32 is no less exact
        except OnnxsmithError as error:
            if error.problem.id == "runtime/not-installed":
                found[f"on {name}"] = "not tried: {name} is not installed"
                continue
            if error.problem.id == "runtime/dtype-unsupported":  # it may run there, with fewer digits
                found[f"on {name}"] = f"not scored: {_said(error)}"
                continue
            within[name], refusals[name] = False, _said(error)
            feeds = next((dict(one.feeds) for one in given.scoring.samples), {})
            # A runtime that refuses the given model too says nothing against the new file.
            is_new = not refusal(name, old, feeds)
            found[f"on {name}"] = f"refused: {_said(error)}" if is_new else "refuses this file and the given model"
            continue
        within[name] = fits
        found[f"on {name}"] = f"{by_default:.6g}" if fits else f"{by_default:.6g}, out of budget"
        if not fits and given.budget.allows(before.value, exact, given.scoring.score.better):
            found[f"on {name} in float32"] = f"{exact:.6g}"
    return found, within, refusals


def _score(path: Path, given: Given, name: str, *, exact: bool) -> float:
    """Returns the score on another runtime: with its defaults, as users deploy the file, or, if `exact`, with at least
    float32 precision."""
    with runtimes.get(name).prepare(path, Options(exact=exact)) as session:
        return given.scoring.of(session).value


def refusal(name: str, model: Path | ir.Model, feeds: Mapping[str, Any]) -> str:
    """Returns the message with which a runtime refuses a model or its inputs `feeds`; "" if it accepts both."""
    try:
        with runtimes.get(name).prepare(model) as session:
            session.run(dict(feeds))
    except OnnxsmithError as error:
        return _said(error)
    return ""


def _said(error: OnnxsmithError) -> str:
    """Returns the runtime's own message, without the source location at its beginning."""
    found = error.problem
    text = _CHECK.sub("", found.why).strip() or found.what
    return text[:_WORDS]
