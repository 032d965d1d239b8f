"""`simplify`: makes a model with fewer nodes and the same results, and verifies it before it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.report.parts.verification import Verification, nothing_verified
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.result import Result
from onnxsmith.base.settings import Save, Verify, verifying
from onnxsmith.base.words import several
from onnxsmith.graph.files.load import Source, load, load_sorting
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.files.save import as_read
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.structure import dim_ranges, walk
from onnxsmith.graph.structure.dim_ranges import Sizes
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery import opset_conversion as opsets
from onnxsmith.optimizer import contrib_domain, growth, kernels, newer_opset
from onnxsmith.optimizer.delivery import Delivery, delivered
from onnxsmith.optimizer.open_sizes import Frozen
from onnxsmith.optimizer.signature_changes import Interface, defaults
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.optimizer.target_form import ForTarget, Simplify
from onnxsmith.runtimes._lenient import checked, is_off
from onnxsmith.verification.verification_verdict import ending, problems, verdict

if TYPE_CHECKING:  # modules that only a verification needs are imported with it
    from onnxsmith.verification.inputs.generate import Feed
    from onnxsmith.verification.inputs.user_inputs import Inputs

_NAMES = ("the original", "the simplified model")


@identifies("source")
def simplify(
    source: Source,
    output: str | Path | None = None,
    *,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    exactness: str | None = None,
    opset: int | str | None = None,
    target: str | None = None,
    contrib: bool = False,
    inline_functions: bool = False,
    fix_defaults: bool = False,
    set_dim: Iterable[str] = (),
    keep_open: Iterable[str] = (),
    keep_output: Iterable[str] = (),
    drop_output: Iterable[str] = (),
    max_growth: float | None = None,
    inputs: Inputs = (),
    explain: bool = False,
    diff: bool = False,
    why: Iterable[str] = (),
    verify: Verify | bool = True,
    save: Save = Save(),
) -> Result:
    """Simplifies a model and checks it against the original on generated inputs.

    `source` is a path, a `ModelProto` or an `ir.Model`; it is not changed. With `output` the result is written if it
    agrees with the original; `save` says how.

    `only` and `skip` take rule ids, or patterns such as `fuse/*`. `exactness` limits how far a rewrite may change a
    number: `bitwise`, `value` or `reassociates` (the default, except before quantisers). `opset` first converts the
    model to that opset, so that rules may use newer operators. `target` is the name of a target of `check`, or
    `profile:FILE.toml`: the model is converted to the newest opset and IR version that the target reads, and rules that
    make operators which it refuses, or for which it has no kernel, are left out. `contrib` lets the target onnxruntime
    have its own operators (domain com.microsoft) where they stand for several nodes; no other runtime reads such a
    file. `max_growth` is the share by which folded constants may enlarge the file; None allows 1% or 1 MiB, whichever
    is more, and at most three times the size.

    Five settings change what the model takes and gives; the result is then compared with the original changed alike.
    `fix_defaults` makes constants of initializers that are graph inputs too, as files of old exporters have them.
    `set_dim` gives symbolic dimensions a size for good: `batch=1`, or `x:0=1` for the first axis of the input x.
    `keep_output` takes the names or patterns of the outputs that stay, `drop_output` of those that go. `keep_open`
    declares axes of fixed size as open, so that no size which the graph computes from them becomes a constant:
    `x:0=batch`, or `batch` for the first axis of each input.

    `verify` says how the result is compared with the original; with False the report says that nothing was verified.
    `inputs` are compared, too: arrays by name, texts as on the command line, or an iterable of arrays by name. If the
    check cannot tell whether the two are equal, only bit-exact rewrites are tried. If the result differs, the first
    rewrite after which it differs is found, switched off and named in the report, until the rest agrees.

    `explain` lists every rewrite by a rule, `diff` the removed and added operators. `why` takes questions `RULE@NODE`:
    why did this rule not fire at this node?

    Raises:
        OnnxsmithError: `model/…` for a model that cannot be read or is invalid, `simplify/unknown-rule`,
            `simplify/unknown-exactness`, `simplify/unknown-node`, `simplify/contrib`, `simplify/max-growth`,
            `simplify/no-such-port`, `simplify/all-outputs`, `model/closed-axis` for an axis that the graph fixes,
            `export/opset`, `verify/…` and `runtime/…` when the check could not be made, `save/…` when the result could
            not be written.
    """
    where = str(source) if isinstance(source, str | Path) else "the given model"
    settings = verifying(verify)
    growth.checked(max_growth)
    contrib_domain.checked(target, contrib)
    with Clock() as clock:
        read = _read(source, output, where, inputs, settings)
        most = _most_bytes(read, max_growth)
        narrow = Interface(fix_defaults, tuple(set_dim), tuple(keep_output), tuple(drop_output), tuple(keep_open))
        read, narrowed = read.narrowed(narrow) if narrow else (read, ())
        if settings is not None and settings.free:
            from onnxsmith.verification import free_values

            free_values.read(settings.free, [value.name or "" for value in read.model.graph.outputs])
        if settings is not None and settings.sizes:
            read = read.meant_for(settings.sizes)
        frozen = Frozen(read.model)
        wanted = ForTarget.named(target) if target is not None else ForTarget("")
        before = dict(walk.histogram(read.model)) if diff else {}
        options = {
            "only": tuple(only),
            "skip": tuple(skip),
            "exactness": exactness,
            "inline_functions": inline_functions,
            "contrib": contrib,
            "max_growth": max_growth,
            "kernels": kernels.of_check(settings) if target is None else None,
        }
        run, conversion, rewritten = _started(read, newer_opset.asked(opset), wanted, options)
        if target is not None:
            run = wanted.fitting(run, tuple(skip))

        def verified(candidate: Path | ir.Model) -> Verification:
            if settings is None:
                return nothing_verified(*_NAMES, "--no-verify was given")
            from onnxsmith.verification.sessions import verify_models

            return verify_models(read.original, candidate, settings, given=read.feeds, names=_NAMES)

        save = replace(save, external_data=as_read(read.model, save.external_data))
        try:
            found = delivered(Delivery(output, save, verified, settings is not None, most, read.check), run)
        except OnnxsmithError as error:
            if settings is None or not error.problem.id.startswith("runtime/"):
                raise
            raise error.at("", "write the file without a check: --no-verify; in Python verify=False") from error
    part, verification = found.part, found.verification
    more = newer_opset.note(part, opsets.of(found.model)) if target is None else ()
    part = replace(part, notes=(*narrowed, *conversion, *frozen.notes(found.model), *part.notes, *more))
    extra: list[Part] = []
    if explain:
        from onnxsmith.base.report.parts.edits import Rewrites

        extra.append(Rewrites(tuple(one for one in part.fired if one.is_rewrite), part.refused))
    if diff:
        from onnxsmith.base.report.parts.model_changes import operator_changes

        extra.append(operator_changes(before, dict(walk.histogram(found.model)), part.fired))
    if why:
        from onnxsmith.optimizer import rule_explanation as questions

        extra += [questions.why(question, load(read.original), found.model, part) for question in why]
    change = f"{several(part.nodes_before, 'node')} → {part.nodes_after:,}"
    report = Report(
        command="simplify",
        verdict=verdict(verification, asked=settings is not None),
        headline=f"{where}: {change}, {ending(verification)}{read.sorted}"
        f"{_question(found.model)}{contrib_domain.told(found.model, part)}",
        parts=(part, *extra, verification, found.written, Timing(clock.passed())),
        problems=(
            *read.doubts,
            *(opsets.with_rewritten(one, rewritten) for one in problems(verification, asked=settings is not None)),
        ),
    )
    agrees = verification.equal or settings is None or (save.write_unsure and bool(verification.unsure))
    path = Path(next(iter(found.written.files))) if found.written.files else None
    return Result(report, found.model if agrees else None, path)


@dataclass(frozen=True)
class _Read:
    """The given model, and the facts that the check needs. `original` is the ONNX file, or the model without a file."""

    model: ir.Model
    original: Path | ir.Model
    doubts: tuple[Problem, ...]
    check: Callable[..., object]
    """Checks a model against the specification, as strictly as the original passes it."""
    feeds: tuple[Feed, ...]
    sorted: str = ""
    """The headline's note if the nodes had to be sorted."""

    def meant_for(self, sizes: Sizes | Sequence[str]) -> _Read:
        """Returns a copy whose metadata has the ranges of sizes.

        Raises:
            OnnxsmithError: `input/unknown-dim`, and the errors of reading the sizes.
        """
        from onnxsmith.verification.inputs.size_limits import refuse_unknown

        refuse_unknown(sizes, signature(self.model))
        made = cloned(self.model)
        dim_ranges.keep(made, dim_ranges.read(sizes))
        return replace(self, model=made)

    def narrowed(self, interface: Interface) -> tuple[_Read, tuple[str, ...]]:
        """Returns a copy with the narrower interface, also of the original, and notes on the changes."""
        made, notes = interface.narrowed(self.model)
        return replace(self, model=made, original=made), notes


_SORTED = "; the nodes were not in an order in which they can run, so they were sorted"


def _read(source: Source, output: str | Path | None, where: str, inputs: Inputs, settings: Verify | None) -> _Read:
    with stage("load"):
        model, was_sorted = load_sorting(source)
        own = Path(source) if isinstance(source, str | Path) else None
        file = None if was_sorted else own  # the file itself stays as it is
        runtime = settings.runtime if settings is not None else None
        doubts = checked(model, where=where, file=file, runtime=runtime)
        held = partial(checked, runtime=runtime) if is_off(doubts) else check
        refuse_loss([output], [source, model], in_place=own)
        original = file if file is not None and file.suffix == ".onnx" else model
        feeds = _feeds(inputs, model)
        return _Read(model, original, doubts, held, feeds, _SORTED if was_sorted else "")


def _feeds(inputs: Inputs, model: ir.Model) -> tuple[Feed, ...]:
    if isinstance(inputs, tuple) and not inputs:
        return ()
    from onnxsmith.verification.inputs import user_inputs

    return user_inputs.inputs(inputs, signature(model))


def _started(
    read: _Read, opset: int | str | None, wanted: ForTarget, options: dict[str, Any]
) -> tuple[Simplify, tuple[str, ...], list[str]]:
    """Returns the simplification that starts from the model at its opset: the requested opset, the target's, or with
    `auto` the opset at which most rules fire. Also returns notes on the conversion, and the nodes that changed with
    the opset. They are made now, because a model from a file is changed in place later."""
    if isinstance(opset, int):
        start = opsets.convert(read.model, opset, asked_by="--opset {opset}")
    else:
        start = wanted.at_opset(read.model)
    conversion, rewritten = _conversion_note(read.model, start), opsets.rewritten(read.model, start)
    run: Simplify = partial(_Start.of(read, start), **options)
    if opset != newer_opset.AUTO or wanted.name:  # the target's newest opset is the best already
        return run, conversion, rewritten
    before, original = opsets.of(read.model), load(read.original)
    newer, refusals = newer_opset.better(original, run()[1])
    notes = (*_converted(before, opsets.of(newer)), *refusals)
    return partial(_Start(newer, None), **options), notes, opsets.rewritten(original, newer)


def _conversion_note(model: ir.Model, start: ir.Model) -> tuple[str, ...]:
    return _converted(opsets.of(model), opsets.of(start))


def _converted(before: int, after: int) -> tuple[str, ...]:
    return (f"converted from opset {before} to {after}",) if before != after else ()


def _most_bytes(read: _Read, max_growth: float | None) -> float | None:
    """Returns the largest size of the new file in bytes; None if the original is not a file."""
    if not isinstance(read.original, Path):
        return None
    return growth.largest(_nbytes(read.original, read.model), max_growth)


def _question(made: ir.Model) -> str:
    """Asks in the headline whether defaults of inputs may become constants: rules and folding leave defaults alone."""
    count = len(defaults(made))
    said = f"; {several(count, 'initializer')} can be replaced by a caller, so no rule uses their values"
    return f"{said}: --fix-defaults makes them constants" if count else ""


class _Start:
    """Starts each simplification from the original model. Changes a model from a file in place the first time, and
    loads it again for later simplifications. Copies a caller's own model."""

    def __init__(self, source: Path | ir.Model, loaded: ir.Model | None) -> None:
        self._source = source
        self._loaded = loaded

    @classmethod
    def of(cls, read: _Read, start: ir.Model) -> _Start:
        """Starts from `start`: the loaded model, perhaps converted to another opset."""
        source = read.original if start is read.model else start
        return cls(source, start if source is read.original and isinstance(source, Path) else None)

    def __call__(self, **options: Any) -> tuple[ir.Model, Simplification]:
        model, self._loaded = self._loaded, None
        if model is None:
            model = load(self._source)
        return simplified(model, in_place=isinstance(self._source, Path), **options)


def _nbytes(file: Path, model: ir.Model) -> int:
    """Returns the bytes of a model's file and of its external data."""
    outside = (tensor.nbytes for tensor in walk.tensors(model) if isinstance(tensor, ir.ExternalTensor))
    return file.stat().st_size + sum(outside)
