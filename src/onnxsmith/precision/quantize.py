"""`quantize`: makes the smallest, fastest model that still does what the user measures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith import rooms
from onnxsmith.clock import Clock, stage
from onnxsmith.model.files.load import Source, load
from onnxsmith.model.files.outputs import refuse_loss
from onnxsmith.model.files.save import Stage, staged
from onnxsmith.model.graph import walk
from onnxsmith.precision.arithmetic import Arithmetic
from onnxsmith.precision.final import Final, final
from onnxsmith.precision.forms.base import Form, form
from onnxsmith.precision.given import Given, Request, read, refuse_nan
from onnxsmith.precision.keep import matching
from onnxsmith.precision.methods.base import Method, Work
from onnxsmith.precision.preparing import Prepared, prepared, quantisers
from onnxsmith.precision.scoring import Budget, Scored
from onnxsmith.precision.slimming import slimmed
from onnxsmith.precision.trying import Tried, Trying
from onnxsmith.precision.units import labels
from onnxsmith.precision.weights import stored_bytes
from onnxsmith.precision.writing import checked as checked_path
from onnxsmith.precision.writing import write_keep
from onnxsmith.problem import OnnxsmithError, Problem, problem
from onnxsmith.report.base import Part, Report
from onnxsmith.report.parts.quantisation import Quantisation
from onnxsmith.report.parts.timing import Timing
from onnxsmith.report.parts.written import Written, written
from onnxsmith.report.verdict import Verdict
from onnxsmith.result import Result
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes._lenient import checked as checked_model
from onnxsmith.runtimes.base import Runtime

_OF_BUDGET = 0.1
"""The share of the budget that simplifying may use. A choice."""
_ROUNDING = 1e-4
"""The change of a score that rounding may cause. A choice: a single tie among ten thousand samples."""
AUTO = ("int8", "int8-dynamic", "int4", "float16")
"""The methods that `auto` tries."""


def quantize(
    source: Source,
    output: str | Path | None = None,
    *,
    to: str = "auto",
    data: Any = None,
    calibration: Any = None,
    metric: Any = None,
    decode: Any = None,
    preprocess: Any = None,
    budget: str | float = "1%",
    keep: Iterable[str] = (),
    keep_list: str | Path | None = None,
    target: str | None = None,
    samples: int | None = None,
    evaluations: int = 20,
    allow_slower: bool = False,
    measure_time: bool = True,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Result:
    """Makes a model smaller by a narrower precision, as far as a score on the user's data allows.

    `to` is the name of a method (`float16`, `bfloat16`, `int8`, `int8-dynamic`, `int4`), or `auto`: each of them is
    tried, and the one with the smallest product of size and time is taken. `data` is what the score is measured on: a
    folder of images, an `.npz`, a `.jsonl`, `file.py:function`, a function or an iterable of `(arrays by input name,
    label)`. `calibration` is other data of such a kind, for the ranges of activations; without it each fourth sample of
    `data` is used for that, and not for the test. `metric` is a name (`top1`, `cer`, `wer`, `psnr`, `cosine`,
    `perplexity`, `map50`), or a function of the predictions and the labels; `decode` makes a prediction of the outputs
    by name, `preprocess` makes arrays of an item of the data. Without `data` inputs are generated, and the report says
    that accuracy was not measured.

    `budget` is how much worse the score may become: `"0.5%"` of the score, or a number. Layers stay as they are until
    it is met; which these are is written to `keep_list`. Layers in `keep` (names, `*` for any characters) stay in any
    case. `target` is the runtime whose form of int8 or int4 is made. At most `evaluations` keep-lists are tried for
    each method, on at most `samples` samples. A file that is larger is refused, and one that is slower unless
    `allow_slower` is set; floats are narrow for accelerators, so that their time is not judged here. Without
    `measure_time` no time is measured.

    Nothing is written before the file was read again, and its score was measured with all optimisations of onnxruntime
    and with none.

    Raises:
        OnnxsmithError: `quantize/…`; `model/…`, `input/…`, `runtime/…` and `save/…` for problems of these.
    """
    methods = _methods(to)
    shape = form(target)
    where = str(source) if isinstance(source, str | Path) else "the given model"
    list_path = None if keep_list is None else checked_path(Path(keep_list))
    request = Request(
        data, calibration, metric, decode, preprocess, budget, samples, evaluations, seed, allow_slower, measure_time,
        dict(sizes or {}), target,
    )  # fmt: skip
    with Clock() as clock, ExitStack() as stack:
        with stage("load"):
            loaded = load(source)
            refuse_loss([output, list_path], [source, loaded])
            doubts = checked_model(loaded, where=where, file=Path(source) if isinstance(source, str | Path) else None)
            _refuse_quantised(loaded, where)
        one = _Quantising(loaded, request, shape, stack, tuple(keep))
        best = one.best(methods)
        shown, kept = one.written(best, output, list_path)
    return _report(where, best, one, (shown, Timing(dict(clock.seconds))), doubts, kept)


def _methods(to: str) -> dict[str, Method]:
    known = rooms.members("onnxsmith.precision.methods", Method)
    names = AUTO if to == "auto" else (to,)
    if not set(names) <= set(known):
        raise problem("quantize/unknown-method", f"no method is called {to!r}", fix=f"one of: {', '.join(known)}, auto")
    return {name: known[name] for name in names}


def _refuse_quantised(model: ir.Model, where: str) -> None:
    found = quantisers(model)
    if found:
        raise problem(
            "quantize/quantised",
            "the model is quantised already",
            where=where,
            why=", ".join(f"{count} {name}" for name, count in found.items()),
            fix="start from the float32 model",
        )


@dataclass(frozen=True)
class _Best:
    """The result of the method that is taken, or of the nearest one: `final` is None if there is no file."""

    tried: Tried
    final: Final | None
    refused: tuple[Problem, ...] = ()


class _Quantising:
    """One call of `quantize`."""

    def __init__(
        self,
        loaded: ir.Model,
        request: Request,
        shape: Form,
        stack: ExitStack,
        keep: tuple[str, ...],
    ) -> None:
        self.loaded, self.request, self._form = loaded, request, shape
        self._keep, self._stack = keep, stack
        self.runtime: Runtime = runtimes.get("onnxruntime")
        with stage("score"), self.runtime.prepare(loaded) as session:
            self.given: Given = read(loaded, request, session)
            self.before: Scored = self.given.scoring.first(session)
        refuse_nan(self.before.value, self.given.scoring.score, self.before.broken)
        self.notes: list[str] = []
        self._prepared: dict[int, Prepared] = {}

    def best(self, methods: Mapping[str, Method]) -> _Best:
        """The result of the best method: of those within budget the one with the smallest product of size and time."""
        good: list[_Best] = []
        bad: list[_Best] = []
        for name, method in methods.items():
            try:
                found = self._one(name, method)
            except OnnxsmithError as error:
                if len(methods) == 1:
                    raise
                self.notes.append(f"{name}: {error.problem.what}")
                continue
            (good if found.final is not None else bad).append(found)
        if good:
            best = min(good, key=lambda one: one.final.merit if one.final is not None else 0.0)
            others = [one for one in (*good, *bad) if one is not best]
            self.notes += [self._said(one) for one in others]
            return best
        if not bad:
            raise problem(
                "quantize/nothing", "no method changes this model", why="; ".join(self.notes)[:600], fix="none is known"
            )
        self.notes += [self._said(one) for one in bad[1:]]
        return bad[0]

    def _said(self, one: _Best) -> str:
        if one.final is None:
            return f"{one.tried.name}: {'; '.join(found.what for found in one.refused)}"
        return f"{one.tried.name}: {one.final.said(self.before.value)}"

    def _one(self, name: str, method: Method) -> _Best:
        ready = self._ready(method.oldest_opset(self._form))
        arithmetic = self._stack.enter_context(Arithmetic(ready.model))
        work = Work(ready, arithmetic, self._form, runtime=self.runtime, calibration=self.given.calibration)
        tried = Trying(
            name, method, work, self.given, self.runtime, self.before, self.request.evaluations, self._keep
        ).run()
        notes = [*ready.notes, *tried.notes]
        if self.request.target is not None and not method.has_forms:
            notes.append(
                f"--target makes no difference to {name}: `onnxsmith check` says whether the target takes the file"
            )
        tried = replace(tried, notes=tuple(notes))
        if tried.model is None:
            return _Best(tried, None, (self._not_met(tried),))
        with stage("check the file"):
            tried = replace(tried, notes=(*tried.notes, *slimmed(tried.model)))
            done = final(
                tried, self.loaded, self.given, self.before, self.runtime, measure_time=self.request.measure_time
            )
        refused = tuple(
            done.problems(allow_slower=self.request.allow_slower or not method.for_speed, target=self.request.target)
        )
        return _Best(tried, None if refused else done, refused)

    def _ready(self, opset: int) -> Prepared:
        """The prepared model: simplified, unless that uses a part of the budget, or merges nodes of the keep-list."""
        if opset not in self._prepared:
            with stage("prepare"):
                ready = prepared(self.loaded, opset=opset)
                why_not = self._why_not_simplified(ready.model)
                if why_not:
                    ready = prepared(self.loaded, opset=opset, simplified=False)
                    ready = replace(ready, notes=(*ready.notes, f"not simplified first: {why_not}"))
            self._prepared[opset] = ready
        return self._prepared[opset]

    def _why_not_simplified(self, model: ir.Model) -> str:
        """Why the simplified model is not taken: a keep-list that was made for the given model means its nodes."""
        names = [node.name or "" for node in walk.all_nodes(model)]
        lost = [one for one in self._keep if not matching(one, names)]
        if lost and all(matching(one, labels(self.loaded)) for one in lost):
            return f"{lost[0]}, which is on the keep-list, would be merged with other nodes"
        return "" if self._is_as_good(model) else "that changes the score"

    def _is_as_good(self, model: ir.Model) -> bool:
        with self.runtime.prepare(model) as session:
            scored = self.given.scoring.of(session)
        better = self.given.scoring.score.better
        part = replace(self.given.budget, amount=self.given.budget.amount * _OF_BUDGET)
        small = Budget(abs(self.before.value) * _ROUNDING, is_share=False)
        return any(one.allows(self.before.value, scored.value, better) for one in (part, small))

    def _not_met(self, tried: Tried) -> Problem:
        score = self.given.scoring.score
        known = [one for one in tried.curve if not math.isnan(one.score)]
        order = sorted(known, key=lambda one: one.score, reverse=score.better == "higher")
        nearest = f"; the nearest keeps {order[0].kept} layers, with {order[0].score:.6g}" if order else ""
        bound = self.given.budget.bound(self.before.value, score.better)
        return problem(
            "quantize/budget-not-met",
            f"no {tried.name} model meets the budget",
            where=f"{score.title} {self.before.value:.6g}, at worst {bound:.6g} is allowed",
            why=f"{tried.evaluations} keep-lists were evaluated{nearest}",
            fix="give a wider --budget, more --evaluations, or another --to",
        ).problem

    def part(self, best: _Best) -> Quantisation:
        """The report's part."""
        tried, done, score = best.tried, best.final, self.given.scoring.score
        labelled = self.given.scoring.has_labels
        return Quantisation(
            to=tried.name,
            method=f"{tried.method.title}{f' ({tried.scheme})' if tried.scheme else ''}",
            layers=tried.layers,
            score=score.title,
            better=score.better,
            before=self.before.value,
            after=None if done is None else done.scored.value,
            bound=self.given.budget.bound(self.before.value, score.better),
            budget=f"budget {self.given.budget}",
            samples=self.before.samples,
            calibrated=tried.calibrated,
            labelled=labelled,
            measured=self.given.is_accuracy,
            broken=0 if done is None else done.scored.broken,
            bytes_before=stored_bytes(self.loaded) if done is None else done.nbytes_before,
            bytes_after=None if done is None else done.nbytes,
            evaluations=tried.evaluations,
            curve=tried.curve,
            times_ratio=None if done is None else done.ratio,
            times="" if done is None else done.times,
            also={} if done is None else dict(done.also),
            notes=(*tried.notes, *self.notes),
        )

    def written(
        self, best: _Best, output: str | Path | None, keep_list: Path | None
    ) -> tuple[Written, ir.Model | None]:
        """Writes the model and the keep-list; nothing if there is no result."""
        if best.final is None:
            return Written({}, best.refused[0].what), None
        files: list[Path] = []
        model = best.final.model
        if output is not None:
            with stage("save"), staged(output) as place:
                files += self._place(place, model)
        if keep_list is not None:
            names = sorted(layer.name for layer in best.tried.layers if layer.kept)
            write_keep(keep_list, names, best.tried.name)
            files.append(keep_list)
        shown = written(files) if files else Written({}, "no output was asked for")
        return shown, model if output is None else load(output)  # the variant's own files go at the end

    def _place(self, place: Stage, model: ir.Model) -> list[Path]:
        place.write(model)
        checked_model(model, where="the quantised model", file=place.path)
        return place.commit()


def _report(
    where: str,
    best: _Best,
    one: _Quantising,
    rest: tuple[Part, ...],
    doubts: Iterable[Problem],
    model: ir.Model | None,
) -> Result:
    part = one.part(best)
    said = part.summary() if best.final is not None else f"nothing was made: {best.refused[0].what}"
    report = Report(
        "quantize",
        Verdict.DONE if best.final is not None else Verdict.FAILED,
        (part, *rest),
        problems=(*doubts, *best.refused),
        headline=f"{where}: {said}",
    )
    path = next((Path(name) for name in _names(rest) if name.endswith(".onnx")), None)
    return Result(report, model, path)


def _names(rest: Iterable[Part]) -> list[str]:
    return [name for part in rest if isinstance(part, Written) for name in part.files]
