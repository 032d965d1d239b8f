"""`simplify`: fewer nodes, the same numbers, checked before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.clock import Clock, stage
from onnxsmith.comparison.sessions import verify_models
from onnxsmith.comparison.verdict import ending, problems, verdict
from onnxsmith.feeds import given
from onnxsmith.feeds.given import Inputs
from onnxsmith.model.files.check import check
from onnxsmith.model.files.load import Source, load
from onnxsmith.model.files.outputs import refuse_loss
from onnxsmith.model.files.save import staged
from onnxsmith.model.graph import carried, walk
from onnxsmith.model.graph.signature import signature
from onnxsmith.model.surgery import opset as opsets
from onnxsmith.problem import OnnxsmithError
from onnxsmith.report.base import Part, Report
from onnxsmith.report.parts.operator_changes import operator_changes
from onnxsmith.report.parts.rewrites import Rewrites
from onnxsmith.report.parts.simplification import Simplification
from onnxsmith.report.parts.timing import Timing
from onnxsmith.report.parts.verification import Verification, nothing_verified
from onnxsmith.report.parts.written import Written
from onnxsmith.report.parts.written import written as files_written
from onnxsmith.result import Result
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes._lenient import checked, is_off
from onnxsmith.settings import Save, Verify, verifying
from onnxsmith.simplifier import blame
from onnxsmith.simplifier import why as questions
from onnxsmith.simplifier.rounds import simplified
from onnxsmith.words import several

_MAX_GROWTH = 0.01
"""Share by which a file may grow unasked: names of new values, not constants."""
_NAMES = ("the original", "the simplified model")


def simplify(
    source: Source,
    output: str | Path | None = None,
    *,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    exactness: str | None = None,
    opset: int | None = None,
    target: str | None = None,
    inline_functions: bool = False,
    max_growth: float = 0.0,
    inputs: Inputs = (),
    explain: bool = False,
    diff: bool = False,
    why: Iterable[str] = (),
    verify: Verify | bool = True,
    save: Save = Save(),
) -> Result:
    """Simplifies a model and checks it against the original on generated inputs.

    `source` is a path, a `ModelProto` or an `ir.Model`, none of which is changed. With `output` the result is written
    if it agrees; `save` says how.

    `only` and `skip` take rule ids. `exactness` is how far a rewrite may move a number: `bitwise`, `value` or
    `reassociates`, which is the default, except for what a quantiser reads. `opset` brings the model to that opset
    first, so that newer operators may be used; `target` brings it to the newest opset of a runtime. `max_growth` is the
    share by which folded constants may make the file larger.

    `verify` says how the result is compared with the original; with False the report says that nothing was verified.
    `inputs` are compared as well: arrays by name, texts as the command line takes them, or an iterable of arrays by
    name. Where the check cannot tell whether the two are equal, bit-exact rewrites are tried alone. When the result
    differs, the first rewrite after which it does is found, switched off and named in the report, until the rest
    agrees.

    `explain` lists every rewrite, `diff` the operators that went and came. `why` takes questions `RULE@NODE`: why did
    this rule not fire there?

    Raises:
        OnnxsmithError: `model/…` for a model that cannot be read or is invalid, `simplify/unknown-rule`,
            `simplify/unknown-exactness`, `simplify/unknown-node`, `export/opset`, `verify/…` and `runtime/…` when the
            check could not be made, `save/…` when the result could not be written.
    """
    where = str(source) if isinstance(source, str | Path) else "the given model"
    settings = verifying(verify)
    with Clock() as clock:
        with stage("load"):
            model = load(source)
            file = Path(source) if isinstance(source, str | Path) else None
            runtime = settings.runtime if settings is not None else None
            doubts = checked(model, where=where, file=file, runtime=runtime)
            held = partial(checked, runtime=runtime) if is_off(doubts) else check
            lost = carried.left_out(model)
            feeds = given.inputs(inputs, signature(model))
            refuse_loss([output], [source, model], in_place=file)
        start = _raised(model, target) if target is not None and opset is None else opsets.convert(model, opset)
        versions = opsets.of(model), opsets.of(start)
        original = Path(source) if isinstance(source, str | Path) and Path(source).suffix == ".onnx" else model
        before = dict(walk.histogram(model)) if diff else {}
        again = original if start is model else start
        run = partial(
            _Start(again, start if again is original and isinstance(original, Path) else None),
            only=tuple(only),
            skip=tuple(skip),
            exactness=exactness,
            inline_functions=inline_functions,
            max_growth=max_growth,
        )

        def verified(candidate: Path | ir.Model) -> Verification:
            if settings is None:
                return nothing_verified(*_NAMES, "--no-verify was given")
            return verify_models(original, candidate, settings, given=feeds, names=_NAMES)

        most = _nbytes(original, model) * (1 + max(max_growth, _MAX_GROWTH)) if isinstance(original, Path) else None
        delivery = _Delivery(output, save, verified, settings is not None, most, held)
        found = _delivered(delivery, run)
    part, verification, written = found.part, found.verification, found.written
    if versions[0] != versions[1]:
        part = replace(part, notes=(f"brought from opset {versions[0]} to {versions[1]}", *part.notes))
    agrees = verification.equal or settings is None or (save.write_unsure and bool(verification.unsure))
    extra: list[Part] = []
    if explain:
        extra.append(Rewrites(part.fired, part.refused))
    if diff:
        extra.append(operator_changes(before, dict(walk.histogram(found.model)), part.fired))
    extra += [questions.why(question, load(original), found.model, part) for question in why]
    change = f"{several(part.nodes_before, 'node')} → {part.nodes_after:,}"
    report = Report(
        command="simplify",
        verdict=verdict(verification, asked=settings is not None),
        headline=f"{where}: {change}, {ending(verification)}{_without(lost)}",
        parts=(part, *extra, verification, written, Timing(dict(clock.seconds))),
        problems=(*doubts, *problems(verification, asked=settings is not None)),
    )
    path = Path(next(iter(written.files))) if written.files else None
    return Result(report, found.model if agrees else None, path)


def _without(lost: tuple[str, ...]) -> str:
    """What the file had and the result has not, for the headline."""
    return f"; left out: {', '.join(lost)}" if lost else ""


class _Start:
    """Where a simplification begins, each time anew. The model that a file was loaded into is changed in place the
    first time, and read again should it be wanted again; a caller's own is copied."""

    def __init__(self, source: Path | ir.Model, loaded: ir.Model | None) -> None:
        self._source = source
        self._loaded = loaded

    def __call__(self, **options: Any) -> tuple[ir.Model, Simplification]:
        model, self._loaded = self._loaded, None
        if model is None:
            model = load(self._source)
        return simplified(model, in_place=isinstance(self._source, Path), **options)


def _raised(model: ir.Model, target: str) -> ir.Model:
    """The model at the newest opset that the target runs and the converters reach; as it is where that is older."""
    now = opsets.of(model)
    for version in range(runtimes.get(target).newest_opset(), now, -1):
        try:
            return opsets.convert(model, version)
        except OnnxsmithError:
            continue
    return model


def _nbytes(file: Path, model: ir.Model) -> int:
    """Bytes of a model's file and of the weights that it keeps in others."""
    outside = (tensor.nbytes for tensor in walk.tensors(model) if isinstance(tensor, ir.ExternalTensor))
    return file.stat().st_size + sum(outside)


class _TooLargeError(Exception):
    """What was written takes more room than the original may grow to."""


@dataclass(frozen=True)
class _Delivery:
    """Verifies a model, and writes it if it agrees or nobody asked."""

    output: str | Path | None
    save: Save
    verified: Callable[[Path | ir.Model], Verification]
    asked: bool
    most: float | None
    check: Callable[..., object]
    """Holds a model to the specification, as far as the original keeps it."""

    def __call__(self, simple: ir.Model) -> tuple[Verification, Written]:
        if self.output is None:
            return self.verified(simple), Written({}, "no output was asked for")
        with staged(self.output) as target:
            with stage("save"):
                target.write(simple, external_data=self.save.external_data)
                if self.most is not None and target.nbytes() > self.most:
                    raise _TooLargeError
                self.check(simple, where="the simplified model", file=target.path)
            verification = self.verified(target.path)
            if self.asked and not verification.equal and not (verification.unsure and self.save.write_unsure):
                return verification, Written({}, _why_not(verification))
            with stage("save"):
                return verification, files_written(target.commit())


def _why_not(verification: Verification) -> str:
    if verification.unsure:
        return "the check cannot tell whether the simplified model is equal; --write-unsure writes it all the same"
    return "the simplified model differs from the original"


@dataclass(frozen=True)
class _Delivered:
    """A simplified model, what was done, how it was verified and where it is."""

    model: ir.Model
    part: Simplification
    verification: Verification
    written: Written


def _delivered(delivery: _Delivery, run: blame.Simplify) -> _Delivered:
    """Simplifies and delivers; when the file is too large, with less folded, then with nothing but tidying up."""
    notes: tuple[str, ...] = ()
    fallbacks: Iterator[dict[str, Any]] = iter(({"slack": 0}, {"limit": 0}))
    while True:
        with stage("simplify"):
            model, part = run()
        try:
            return _mended(delivery, run, model, replace(part, notes=(*part.notes, *notes)))
        except _TooLargeError:
            less = next(fallbacks, None)
            if less is None:
                delivery = replace(delivery, most=None)
                notes = ("the file is larger than before even with nothing folded",)
            else:
                run = partial(run, **less)
                notes = ("less was done than could be, so that the file does not grow",)


def _carefully(delivery: _Delivery, run: blame.Simplify) -> _Delivered | None:
    """With rewrites alone that move no bit, for a check that cannot tell rounding from a fault. None where it cannot
    tell then either."""
    with stage("simplify"):
        model, part = run(exactness="bitwise")
    found = _Delivered(model, replace(part, notes=(*part.notes, _CAREFULLY)), *delivery(model))
    return found if found.verification.equal else None


_CAREFULLY = "only rewrites that move no bit were used: with others the check could not tell rounding from a fault"


def _mended(delivery: _Delivery, run: blame.Simplify, model: ir.Model, part: Simplification) -> _Delivered:
    """Delivers the model; when it differs or does not run, one without the rewrites that did it."""
    trouble: OnnxsmithError | None = None
    try:
        found = _Delivered(model, part, *delivery(model))
        if found.verification.equal or not delivery.asked:
            return found
        if found.verification.unsure:
            return found if delivery.save.write_unsure else _carefully(delivery, run) or found
    except OnnxsmithError as error:
        if not delivery.asked or not error.problem.id.startswith(("model/", "runtime/", "verify/")):
            raise
        trouble = error
    with stage("blame"):
        mended = blame.without_culprits(run, delivery.verified, delivery.check)
    if mended is not None:
        part = replace(mended.part, notes=part.notes)
        return _Delivered(mended.model, part, *delivery(mended.model))
    if trouble is not None:
        raise trouble
    return found
