"""`prune`: removes channels from a model, and proves that the result equals the model in which these channels are not
read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base import folders, rooms
from onnxsmith.base.clock import Clock, advance, stage
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.measurements import Ratio
from onnxsmith.base.report.parts.pruning import Pruning, SharePoint
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.parts.written_files import Timing, Written, written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.spelling import in_python
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.files.save import save_for_now, staged
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.structure import versions
from onnxsmith.graph.structure.dim_ranges import Sizes
from onnxsmith.graph.structure.signature import signature
from onnxsmith.precision import quantisation_request as requests
from onnxsmith.precision import score_power
from onnxsmith.precision.final import scores_of, time_ratio, times_said
from onnxsmith.precision.keep_list_output import checked as checked_path
from onnxsmith.precision.keep_list_output import with_text
from onnxsmith.precision.pruning import channel_removal, pruning_report
from onnxsmith.precision.pruning.channel_groups import Channels, channels
from onnxsmith.precision.pruning.channel_removal import Kept, kept_without, pruned
from onnxsmith.precision.pruning.channel_selection import BLOCK, Choice, Search, asked_layers, share_of
from onnxsmith.precision.pruning.measures.base import Measure, Subject
from onnxsmith.precision.pruning.proof import compared, proven
from onnxsmith.precision.pruning.pruning_preparation import Working, rejoined
from onnxsmith.precision.pruning.pruning_report import Counting
from onnxsmith.precision.pruning.torch_parameters import Saliency
from onnxsmith.precision.pruning.torch_parameters import read as read_saliency
from onnxsmith.precision.quantisation_request import Given, Request, refuse_worthless
from onnxsmith.precision.scoring import Scored
from onnxsmith.precision.weight_counts import own_weights, stored_bytes
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes._lenient import checked as checked_model
from onnxsmith.runtimes.base import Runtime
from onnxsmith.verification.intermediate_declarations import correct_intermediates
from onnxsmith.verification.metrics.base import Floats
from onnxsmith.verification.output_declarations import settled, with_clauses

_SHARE = 0.3
"""The default share if there is no budget. A choice."""
_MOST = 0.9
"""The largest share that is tried for a budget, if none is given. A choice."""
_HALVED = 4
"""How often a share that ruins the score is halved in search of one that does not. A choice."""


@in_python
@identifies("source")
def prune(
    source: Source,
    output: str | Path | None = None,
    *,
    share: str | float | None = None,
    by: str = "norm",
    saliency: str | Path | Mapping[str, Any] | None = None,
    all_together: bool = False,
    multiple: int | None = None,
    keep: Iterable[str] = (),
    data: Any = None,
    calibration: Any = None,
    metric: Any = None,
    decode: Any = None,
    preprocess: Any = None,
    budget: str | float | None = None,
    keep_list: str | Path | None = None,
    samples: int | None = None,
    evaluations: int = 12,
    write_unsure: bool = False,
    measure_time: bool = True,
    sizes: Sizes | None = None,
    seed: int = 0,
) -> Result:
    """Removes channels from a model, so that its tensors become smaller.

    A channel is removed with all that depends on it: the weights that compute and read it, normalisations, the other
    side of a residual, its part of a joined tensor. Removes `share` (`"30%"` or 0.3, the default) of the channels of
    each group, or of all groups together with `all_together`.

    The channels with the least measure `by` (`norm`, `activation`, `first-order`) are removed. `first-order` needs
    `saliency`: an `.npz` or a mapping with an array for each parameter of the torch module, the mean of the squares of
    weight times gradient. Each group keeps at least one channel, and a multiple of `multiple`. Without a multiple,
    layers with 32 channels or more keep a multiple of 8, the block size of onnxruntime's kernels. Layers in `keep`
    (names of nodes, `*` for any characters) keep all of their channels.

    `data`, `calibration`, `metric`, `decode`, `preprocess` and `samples` are as in `quantize`. With a `budget` (`"1%"`
    of the score, or a number), `prune` searches the largest share up to `share` (0.9 by default) that meets it, by
    halving, with at most `evaluations` evaluations. Without data inputs are generated, and the report says that
    accuracy was not measured. A score that known damage does not move by more than the budget is refused, and so is a
    model whose score on the data is nearer to that of other samples' outputs than to that of the given model, unless
    `write_unsure` is set.

    `keep_list` is a JSON file to write: for each weight that became smaller, the axes and the indices that stayed.

    Before anything is written, the result is compared with the given model in which the weights that read the removed
    channels are zero, on onnxruntime with all optimisations and with none.

    Raises:
        OnnxsmithError: `prune/…`; `quantize/…` for data, metric and budget; `model/…`, `runtime/…`, `save/…`.
    """
    where = str(source) if isinstance(source, str | Path) else "the given model"
    asked = None if share is None else share_of(share)
    measure = _measure(by)
    importance = read_saliency(saliency, by)
    if multiple is not None and multiple < 1:
        raise problem("prune/multiple", f"channels cannot be a multiple of {multiple}", fix="give --multiple 8")
    for path in (output, keep_list):
        if path is not None:
            checked_path(Path(path))
    list_path = None if keep_list is None else Path(keep_list)
    request = Request(
        data, calibration, metric, decode, preprocess, "1%" if budget is None else budget, samples, evaluations, seed,
        write_unsure=write_unsure, measure_time=measure_time,
    )  # fmt: skip
    requests.refuse_without_data(request)
    with Clock() as clock:
        with stage("load"):
            loaded = load(source)
            refuse_loss([output, list_path], [source, loaded])
            doubts = checked_model(loaded, where=where, file=Path(source) if isinstance(source, str | Path) else None)
        one = _Pruning(loaded, request, measure, Choice(multiple, all_together), tuple(keep), sizes, where,
                       importance)  # fmt: skip
        top = asked if asked is not None else _SHARE if budget is None else _MOST
        done = one.at(top) if budget is None else one.within_budget(top)
        shown, model = one.written(done, output, list_path)
    parts: tuple[Part, ...] = (one.part(done, budget), *([done.proof] if done.proof is not None else []), shown)
    return _report(where, done, (*parts, Timing(clock.passed())), doubts, model, one.unsure)


def _measure(name: str) -> Measure:
    known = rooms.members("onnxsmith.precision.pruning.measures", Measure)
    if name not in known:
        raise problem("prune/unknown-measure", f"no measure is called {name!r}", fix=f"one of: {', '.join(known)}")
    return known[name]


@dataclass(frozen=True)
class _Done:
    """The result of a share: the pruned model (None if none is to be written) and its measurements."""

    share: float
    model: ir.Model | None
    kept: Kept
    removed: int
    proof: Verification | None = None
    scored: Scored | None = None
    nbytes: int | None = None
    ratio: float | None = None
    times: str = ""
    notes: tuple[str, ...] = ()
    refused: tuple[Problem, ...] = ()
    verdict: Verdict = Verdict.DONE


class _Pruning:
    """Holds the state of one call of `prune`."""

    def __init__(
        self,
        loaded: ir.Model,
        request: Request,
        measure: Measure,
        choice: Choice,
        keep: Sequence[str],
        sizes: Sizes | None,
        where: str,
        saliency: Saliency,
    ) -> None:
        self.loaded, self._request, self._measure, self._choice = loaded, request, measure, choice
        self._sizes = sizes
        self.unsure = ""
        self._runtime: Runtime = runtimes.get("onnxruntime")
        with stage("channels"):
            self._work: Working = compared(loaded, sizes, request.seed)
            self._counting = Counting(self._work.model, sizes, where)
            self._found: Channels = channels(self._work.model, asked_layers(self._work.model, keep))
        if not self._found.free:
            raise pruning_report.nothing(self._work.model, self._found, where)
        pruning_report.refuse_not_finite(self._work.model, self._found, where)
        self._given, self.before = self._scored(loaded, request)
        refuse_worthless(self.before, self._given.scoring.score, is_real=self._given.is_real)
        with stage("measure"):
            subject = Subject(self._work.model, self._found, self._runtime, self._given.calibration, saliency,
                              self._work.moved)  # fmt: skip
            self._scores: Sequence[Floats] = measure.scores(subject)
        self._curve: list[SharePoint] = []

    def _scored(self, loaded: ir.Model, request: Request) -> tuple[Given, Scored]:
        """Reads the data, and scores the given model."""
        try:
            with stage("score"), self._runtime.prepare(loaded) as session:
                given = requests.read(loaded, request, session)
                requests.refuse_random(loaded, given.scoring, session)
                return given, given.scoring.first(session)
        except OnnxsmithError as error:
            raise pruning_report.of_dtype(error, loaded) from error

    def within_budget(self, top: float) -> _Done:
        """Returns the result of the largest share that meets the budget."""
        power = score_power.measured(
            self.loaded, self._given, self.before, self._runtime, is_accepted=self._request.write_unsure
        )
        self.unsure = power.unsure
        with stage("search"):
            found = Search(self._meets, self._request.evaluations, self._size).largest(top)
        if not self._curve:
            raise self._none_at(top)
        if found is None or not self._size(found):  # a small share may remove no channel at all
            refused = pruning_report.budget_not_met(
                self._curve, self._given, self.before, self._singly(top) if self._choice.multiple is None else 0
            )
            return _Done(top, None, {}, 0, refused=(refused,), verdict=Verdict.FAILED)
        return self.at(found)

    def _singly(self, top: float) -> int:
        """Counts the channels that go within the budget if layers need not keep a multiple; 0 if none do."""
        curve, choice = self._curve, self._choice
        self._curve, self._choice = [], replace(choice, multiple=1)
        found = Search(self._meets, self._request.evaluations, self._size).largest(top)
        count = 0 if found is None else self._size(found)
        self._curve, self._choice = curve, choice
        return count

    def _cut(self, share: float) -> tuple[ir.Model, Kept, int]:
        gone = self._choice.gone(self._found.free, self._scores, share)
        kept = kept_without(self._found, gone)
        model = pruned(self._work.model, kept)
        rejoined(model, self._work.copies)
        return model, kept, self._found.count(gone)

    def _size(self, share: float) -> int:
        """Counts the channels that a share removes. The count grows with the share, so that shares with equal counts
        are the same cut."""
        return self._found.count(self._choice.gone(self._found.free, self._scores, share))

    def _none_at(self, share: float) -> OnnxsmithError:
        least = next((one for one in range(math.floor(100 * share) + 1, 100) if self._size(one / 100)), None)
        return pruning_report.none_at(share, pruning_report.idle(self._found, self._choice), least)

    def _meets(self, share: float) -> bool:
        advance("search", len(self._curve) + 1, self._request.evaluations)
        model, _, removed = self._cut(share)
        with self._runtime.prepare(model) as session:
            scored = self._given.scoring.of(session)
        meets = self._allows(scored)
        self._curve.append(SharePoint(share, removed, scored.value, meets))
        return meets

    def _allows(self, scored: Scored) -> bool:
        better = self._given.scoring.score.better
        return scored.broken <= self.before.broken and self._given.budget.allows(
            self.before.value, scored.value, better
        )

    def at(self, share: float) -> _Done:
        """Returns the result of a share, proven and measured."""
        with stage("prune"):
            model, kept, removed = self._cut(share)
        if not removed:
            raise self._none_at(share)
        samples = self._given.scoring.samples if self._given.is_real else None
        proof = proven(self._work.model, model, kept, self._found, samples, sizes=self._sizes, seed=self._request.seed)
        versions.drop_unused_imports(model)
        proof = with_clauses(proof, correct_intermediates(model, like=self.loaded))
        if proof.equal:
            proof = settled(proof, model)
        done = _Done(share, model, kept, removed, proof)
        if not proof.equal:
            return replace(done, model=None, refused=self._unproven(proof), verdict=_verdict(proof))
        with stage("check the file"):
            return self._measured(done, model)

    def _unproven(self, proof: Verification) -> tuple[Problem, ...]:
        inputs = [port.name for port in signature(self.loaded).required()]
        return pruning_report.unproven(proof, inputs, is_real=self._given.is_real)

    def _measured(self, done: _Done, model: ir.Model) -> _Done:
        with folders.temporary() as folder:
            path, old = folder / "new.onnx", folder / "old.onnx"
            save_for_now(model, path)
            save_for_now(self.loaded, old)
            scores, _ = scores_of(path, self._given, self._runtime)
            ratio, on = time_ratio(old, path, self._given) if self._request.measure_time else (None, "")
            # Without a search there is no budget that a score could miss.
            if not self._curve:
                refused = self._ruined(scores[0], done.share)
            else:
                refused = () if all(map(self._allows, scores)) else (pruning_report.levels_differ(scores),)
            return replace(
                done,
                model=None if refused else model,
                scored=scores[0],
                nbytes=stored_bytes(load(path)),
                ratio=None if ratio is None else ratio.ratio,
                times=times_said(ratio, on) if self._request.measure_time else "",
                notes=self._slower(ratio),
                refused=refused,
                verdict=Verdict.FAILED if refused else Verdict.DONE,
            )

    def _ruined(self, after: Scored, share: float) -> tuple[Problem, ...]:
        """Refuses a model that has lost most of the score on the user's data, unless the user accepts that."""
        worst = score_power.worst(self.loaded, self._given, self._runtime) if self._given.is_real else None
        if worst is None or not worst.is_nearer(after.value):
            return ()
        if self._request.write_unsure:
            self.unsure = "the pruned model has lost most of the score"
            return ()
        smaller = None
        for less in (share / 2**power for power in range(1, _HALVED + 1)):
            if not self._size(less):
                break
            with self._runtime.prepare(self._cut(less)[0]) as session:
                value = self._given.scoring.of(session).value
            if not worst.is_nearer(value):
                smaller = (less, value)
                break
        return (pruning_report.ruined(self._given, self.before, after, worst.wrong, smaller),)

    def _slower(self, ratio: Ratio | None) -> tuple[str, ...]:
        slower = ratio is not None and ratio.ranked and (ratio.ratio or 0.0) > 1
        few = self._choice.multiple is not None and self._choice.multiple % BLOCK
        said = (
            "the pruned model is slower on this machine, because kernels for convolutions process channels in "
            f"blocks of {BLOCK}: try --multiple {BLOCK}"
        )
        return (said,) if slower and few else ()

    def part(self, done: _Done, budget: str | float | None) -> Pruning:
        """Makes the report's part."""
        score, found = self._given.scoring.score, self._found
        layers = pruning_report.layers(self._work.model, found, done.kept)
        before = self._counting.of(self._work.model)
        after = None if done.model is None else self._counting.of(done.model)
        fixed = pruning_report.fixed(self._work.model, found, done.kept, self._choice)
        free = sum(group.count for group in found.free)
        return Pruning(
            share=done.share,
            by=self._measure.title,
            is_global=self._choice.is_global,
            multiple=self._choice.multiple,
            channels=free + sum(one.count for one in fixed if not one.is_free),
            removed=done.removed,
            free=free,
            layers=layers,
            fixed=fixed,
            parameters_before=self._counting.of(own_weights(self.loaded)).parameters,
            parameters_after=None if after is None else after.parameters,
            macs_before=before.macs,
            macs_after=None if after is None else after.macs,
            uncounted=before.why or (f"without {before.without}" if before.without else ""),
            sizes=self._counting.sizes,
            bytes_before=stored_bytes(self.loaded),
            bytes_after=done.nbytes,
            score=score.title,
            better=score.better,
            before=self.before.value,
            after=None if done.scored is None else done.scored.value,
            bound=None if budget is None else self._given.budget.bound(self.before.value, score.better),
            budget="" if budget is None else f"budget {self._given.budget}",
            samples=self.before.samples,
            labelled=self._given.scoring.has_labels,
            measured=self._given.is_accuracy,
            times_ratio=done.ratio,
            times=done.times,
            curve=tuple(self._curve),
            notes=(
                *self._work.notes,
                *pruning_report.notes(self._work.model),
                *pruning_report.uneven(found, layers, self._choice),
                *done.notes,
            ),
        )

    def written(
        self, done: _Done, output: str | Path | None, keep_list: Path | None
    ) -> tuple[Written, ir.Model | None]:
        """Writes the model and the list, or nothing if there is no result."""
        if done.model is None:
            return Written({}, done.refused[0].what), None
        files: list[Path] = []
        text = channel_removal.kept_channels_text(channel_removal.kept_channels(self._work, self._found, done.kept))
        with stage("save"), with_text(keep_list, text) as lists:
            if output is not None:
                with staged(output) as place:
                    place.write(done.model)
                    checked_model(done.model, where="the pruned model", file=place.path)
                    files += place.commit()
        files += lists
        return (written(files) if files else Written({}, "no output was asked for")), done.model


def _verdict(proof: Verification) -> Verdict:
    return Verdict.DIFFERENT if proof.differs else Verdict.CANNOT_TELL


def _report(
    where: str,
    done: _Done,
    parts: tuple[Part, ...],
    doubts: Sequence[Problem],
    model: ir.Model | None,
    unsure: str,
) -> Result:
    part = next(one for one in parts if isinstance(one, Pruning))
    said = part.summary() if done.model is not None else f"nothing was made: {done.refused[0].what}"
    wrong = done.proof.declared if done.proof is not None and done.model is not None else ()
    headline = "; ".join((f"{where}: {said}", *wrong, *filter(None, [unsure])))
    report = Report("prune", done.verdict, parts, problems=(*doubts, *done.refused), headline=headline)
    files = [name for one in parts if isinstance(one, Written) for name in one.files]
    path = next((Path(name) for name in files if name.endswith(".onnx")), None)
    return Result(report, model, path)
