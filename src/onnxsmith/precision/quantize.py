"""`quantize`: makes the smallest and fastest model whose score on the user's data is within a budget."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.parts.written_files import Timing, Written, written
from onnxsmith.base.result import Result
from onnxsmith.base.settings import Verify
from onnxsmith.base.spelling import in_python
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.files.save import Stage, staged
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.structure import dim_ranges, provenance, walk
from onnxsmith.graph.structure.dim_ranges import Sizes
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery import opset_conversion as opsets
from onnxsmith.precision import declared_ranges, quantisation_report, score_power
from onnxsmith.precision.data.base import in_order
from onnxsmith.precision.declared_ranges import Ranges
from onnxsmith.precision.final import final, refusal, runtime_of
from onnxsmith.precision.forms.base import Form, form
from onnxsmith.precision.keep_list import ALONE, AS_GIVEN, EIGHT, MODEL, SIMPLIFIED, bare, matching, named, wishes
from onnxsmith.precision.keep_list_output import checked as checked_path
from onnxsmith.precision.keep_list_output import file_bytes, with_keep
from onnxsmith.precision.method_trial import Tried, Trying, no_method
from onnxsmith.precision.methods.base import ASKED, Method, Work
from onnxsmith.precision.methods.floats import _NarrowFloat
from onnxsmith.precision.model_preparation import Prepared, narrow_again, prepared
from onnxsmith.precision.narrowable_nodes import labels
from onnxsmith.precision.quantisation_process import Arithmetic
from onnxsmith.precision.quantisation_report import Outcome
from onnxsmith.precision.quantisation_request import Given, Request, read, refuse_random, refuse_worthless
from onnxsmith.precision.scoring import Budget, Scored
from onnxsmith.precision.unfit_models import refuse_quantised, refuse_unfit
from onnxsmith.precision.variant_evaluation import WORDS, Evaluations
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes._lenient import checked as checked_model
from onnxsmith.runtimes.base import Options, Runtime
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.observed_outputs import declared_as_run
from onnxsmith.verification.value_comparison import near

_OF_BUDGET = 0.1
"""The share of the budget that simplifying the model may use up. A choice."""
_ROUNDING = 1e-4
"""The change of a score that rounding may cause. A choice: a single tie among ten thousand samples."""
_FEW, _SAME = 16, 1e-4
"""Samples on which the simplified model is compared, and the difference, relative to an output's largest magnitude, up
to which its score is not measured. A choice: the score of the finished file is."""
_SMALLER = 0.95
"""The share of the size up to which a narrow float may be slower here, because it is meant for accelerators. A choice:
beyond it the file has no gain that was measured."""
_CRASHES = ("runtime/died", "runtime/failed", "runtime/timeout")
"""Problems of a file that the runtime takes while it searches, without all optimisations, and not at the end."""
AUTO = ("int8", "int8-nncf", "int8-dynamic", "int4", "int4-nncf", "float16")
"""The methods that `auto` tries."""


@in_python
@identifies("source")
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
    keep: str | Iterable[str] = (),
    keep_list: str | Path | None = None,
    target: str | None = None,
    samples: int | None = None,
    evaluations: int = 20,
    allow_slower: bool = False,
    write_unsure: bool = False,
    measure_time: bool = True,
    sizes: Sizes | None = None,
    ranges: Ranges | Iterable[str] = (),
    seed: int = 0,
) -> Result:
    """Makes a model smaller by a narrower precision, within a budget for its score on the user's data.

    `to` is a method (`float16`, `bfloat16`, `float8`, `int8`, `int8-nncf`, `int8-dynamic`, `int4`, `int4-nncf`) or
    `auto`. `auto` tries all but bfloat16 and float8, and takes the result with the smallest product of size and time.
    The methods of NNCF need the extra `nncf`. The score is measured on `data`: a folder of images, an `.npz`, a
    `.jsonl`, `file.py:function`, a function or an iterable of `(arrays by input name, label)`. `calibration` is
    separate data, of the same kinds, for the ranges of activations. Without it each fourth sample of `data` is used for
    the ranges and not for the score. `metric` is a name (`top1`, `cer`, `wer`, `psnr`, `cosine`, `perplexity`,
    `map50`), or a function of the predictions
    and the labels. `decode` turns the outputs by name into a prediction, `preprocess` turns an item of the data into
    arrays. Without `data` inputs are generated, and the report says that accuracy was not measured.

    `budget` is how much worse the score may become: `"0.5%"` of the score, or a number. As many layers stay as they are
    as the budget needs; their names are written to `keep_list`. Layers in `keep` (names, `*` for any characters) always
    stay; with `weights-alone: ` before the name only their weights become narrow (int8). `target` is the runtime whose
    form of int8 or int4 is made. At most `evaluations` keep-lists are tried for each method, on at most `samples`
    samples. A score that known damage does not move by more than the budget is refused, unless `write_unsure` is set.
    `ranges` are the least and the greatest value of integer inputs, `{"input_ids": (0, 50000)}` or texts
    `input_ids=0..50000`: nodes that hold the numbers made of them may become float16 or bfloat16 without data. With
    data, nodes that do not hold them stay in float32.
    A result that is larger than the given file is refused. So is a slower result, unless `allow_slower` is
    set; the time of narrow floats is not judged, because they are meant for accelerators. Without `measure_time` no
    time is measured.

    Before anything is written, the finished file is read again and scored with all optimisations of onnxruntime and
    with none.

    Raises:
        OnnxsmithError: `quantize/…`; `model/…`, `input/…`, `runtime/…` and `save/…` for problems with these.
    """
    methods = _methods(to)
    _refuse_ranges(ranges, methods)
    shape = form(target)
    unused = _unused(methods, shape, target)
    where = str(source) if isinstance(source, str | Path) else "the given model"
    if output is not None:
        checked_path(Path(output), streams=False)
    list_path = None if keep_list is None else checked_path(Path(keep_list))
    request = Request(
        data, calibration, metric, decode, preprocess, budget, samples, evaluations, seed, allow_slower, write_unsure,
        measure_time,
        dim_ranges.read(sizes), target,
    )  # fmt: skip
    with Clock() as clock, ExitStack() as stack:
        with stage("load"):
            loaded = load(source)
            refuse_loss([output, list_path], [source, loaded])
            if output is not None:
                with staged(output):  # an output that cannot be written is refused before the search
                    pass
            doubts = checked_model(loaded, where=where, file=Path(source) if isinstance(source, str | Path) else None)
            held = refuse_quantised(loaded, where)
            refuse_unfit(loaded, methods)
            request = replace(request, ranges=declared_ranges.read(ranges, loaded))
        one = _Quantising(loaded, request, shape, stack, _patterns(keep), _given_bytes(source, loaded))
        one.notes += held
        one.notes += [f"{name}: not tried: {found.what}" for name, found in unused.items()]
        best = one.declared(one.best({name: method for name, method in methods.items() if name not in unused}))
        shown, kept = one.written(best, output, list_path)
    part = quantisation_report.part(best, one.given, one.before, one.nbytes, tuple(one.notes))
    rest = (shown, Timing(clock.passed()))
    return quantisation_report.report(where, best, part, rest, doubts, kept, unsure=one.unsure)


def _methods(to: str) -> dict[str, Method]:
    known = rooms.members("onnxsmith.precision.methods", Method)
    names = AUTO if to == "auto" else (to,)
    if not set(names) <= set(known):
        raise problem("quantize/unknown-method", f"no method is called {to!r}", fix=f"one of: {', '.join(known)}, auto")
    return {name: known[name] for name in names}


def _refuse_ranges(ranges: Ranges | Iterable[str], methods: Mapping[str, Method]) -> None:
    """Raises if ranges of inputs were declared, and no method bounds whole numbers."""
    if ranges and not any(method.bounds_integers for method in methods.values()):
        raise problem(
            "quantize/range",
            f"--range has no effect on {', '.join(methods)}",
            where="--range",
            why="only float16 and bfloat16 bound the whole numbers that a node computes with",
            fix="leave --range out; or give --to float16",
        )


def _patterns(keep: Iterable[str]) -> tuple[str, ...]:
    """Returns the entries of a keep-list; a single text is one entry."""
    return (keep,) if isinstance(keep, str) else tuple(keep)


def _given_bytes(source: Source, model: ir.Model) -> int | None:
    """Returns the bytes of the given file; None for a model in memory."""
    return file_bytes(Path(source), model) if isinstance(source, str | Path) else None


def _unused(methods: Mapping[str, Method], shape: Form, target: str | None) -> dict[str, Problem]:
    """Returns the methods that cannot be used here, each with its problem. Raises the problem if only one method was
    asked for."""
    found = {name: method.refusal(shape, target) for name, method in methods.items()}
    unused = {name: refusal for name, refusal in found.items() if refusal is not None}
    if len(methods) == 1 and unused:
        raise OnnxsmithError(next(iter(unused.values())))
    return unused


def _entries(best: Outcome) -> list[str]:
    """Returns the keep-list from which the same file can be made again."""
    layers = best.tried.layers
    return [
        *best.tried.settings,
        *sorted(layer.name for layer in layers if layer.kept),
        *sorted(f"{ALONE}{layer.name}" for layer in layers if layer.weights),
        *sorted(f"{EIGHT}{layer.name}" for layer in layers if layer.eight),
    ]


class _Quantising:
    """Holds the state of one call of `quantize`."""

    def __init__(
        self,
        loaded: ir.Model,
        request: Request,
        shape: Form,
        stack: ExitStack,
        keep: tuple[str, ...],
        nbytes: int | None,
    ) -> None:
        self.loaded, self.request, self._form = loaded, request, shape
        self._keep, self._wishes, self._stack, self.nbytes = named(keep), wishes(keep), stack, nbytes
        self.runtime: Runtime = runtimes.get("onnxruntime")
        with stage("score"), self.runtime.prepare(loaded) as session:
            self.given: Given = read(loaded, request, session)
            refuse_random(loaded, self.given.scoring, session)
            self.before: Scored = self.given.scoring.first(session)
        refuse_worthless(self.before, self.given.scoring.score, is_real=self.given.is_real)
        power = score_power.measured(loaded, self.given, self.before, self.runtime, is_accepted=request.write_unsure)
        self.unsure = power.unsure
        self.notes: list[str] = [*self.given.notes, *power.notes]
        self._prepared: dict[int, Prepared] = {}

    def best(self, methods: Mapping[str, Method]) -> Outcome:
        """Returns the best result: among those within budget, the one with the smallest product of size and time. If
        none is within budget, returns the result of the first method that ran."""
        good: list[Outcome] = []
        bad: list[Outcome] = []
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
            self.notes += [quantisation_report.said(one, self.before.value) for one in others]
            return best
        if not bad:
            raise no_method(self.loaded, self.notes)
        self.notes += [quantisation_report.said(one, self.before.value) for one in bad[1:]]
        return bad[0]

    def _one(self, name: str, method: Method) -> Outcome:
        opset = method.oldest_opset(self._form)
        ready = self._ready(opset)
        plain = None if not ready.is_simplified or self._wishes.model else lambda: unmerged(self.loaded, opset, name)
        return smallest(method, lambda form: self._tried(name, method, form), ready, plain)

    def _tried(self, name: str, method: Method, ready: Prepared) -> Outcome:
        """Returns the result of one method for one form of the model."""
        arithmetic = self._stack.enter_context(Arithmetic(ready.model, method.engine))
        work = Work(ready, arithmetic, self._form, runtime=self.runtime, calibration=self.given.calibration)
        work.declared = self.request.ranges
        seen = Evaluations(method, work, self.given, self.runtime, self.before, self.request.evaluations)
        trying = Trying(name, method, work, self.given, seen, self._wishes)
        found = self._finished(trying.run(), ready)
        if [one.id for one in found.refused] == ["quantize/target-refuses"]:
            found = self._without_refused(trying, found, ready)
        found = self._met_elsewhere(trying, found, ready)
        if [one.id for one in found.refused] == ["quantize/slower"] and not work.is_asked:
            other = trying.without_activations("narrow activations make the file slower here")
            if other is not None and other.model is not None:
                slower = f"narrow activations make the file slower here: {found.refused[0].where}"
                return self._finished(replace(other, notes=(*other.notes, slower)), ready)
        return found

    def _without_refused(self, trying: Trying, found: Outcome, ready: Prepared) -> Outcome:
        """Searches again with the layers in float32 because of which the target refuses the file. Returns `found` if
        there are no such layers, or if the target refuses the given model as well."""
        target = self.request.target or runtimes.default()
        feeds = next((dict(one.feeds) for one in self.given.scoring.samples), {})
        why = found.refused[0].why
        if refusal(target, self.loaded, feeds):
            return found
        other = trying.without_refused(lambda model: not refusal(target, model, feeds), f"{target}: {why}"[:WORDS])
        return found if other is None or other.model is None else self._finished(other, ready)

    def _met_elsewhere(self, trying: Trying, found: Outcome, ready: Prepared) -> Outcome:
        """Searches again if the result is out of budget without optimisations or on the target. Returns `found` if no
        result meets the budget there too."""
        ways = {
            "quantize/levels-differ": (self.runtime, Options(optimization="disable")),
            "quantize/target-differs": (None, Options(exact=False)),
        }
        while (which := next((one.id for one in found.refused if one.id in ways), None)) is not None:
            runtime, options = ways.pop(which)
            target = (self.request.target or "").partition("@")[0]
            other = trying.again(runtime or runtimes.get(target), options)
            if other.model is None:
                return found
            found = self._finished(other, ready)
        return found

    def _finished(self, tried: Tried, ready: Prepared) -> Outcome:
        """Measures the file of a tried model, and accepts or refuses it."""
        name, method = tried.name, tried.method
        notes = [*ready.notes, *tried.notes]
        if self.request.target is not None and not method.has_forms:
            notes.append(
                f"{name} writes the same file for every target; `onnxsmith check` shows whether the target accepts "
                "the file"
            )
        notes += self._raised(tried)
        form = f"{MODEL}{SIMPLIFIED if ready.is_simplified else AS_GIVEN}"
        tried = replace(tried, notes=tuple(notes), settings=(*tried.settings, form))
        if tried.model is None:
            return Outcome(
                tried, None, (quantisation_report.not_met(tried, self.given, self.before, self.request.evaluations),)
            )
        with stage("check the file"):
            told = slimmed(tried.model, self.loaded)
            tried = replace(tried, notes=(*tried.notes, *told))
            try:
                done = final(
                    tried, self.loaded, self.given, self.before, self.runtime, nbytes=self.nbytes,
                    target=self.request.target, measure_time=self.request.measure_time,
                )  # fmt: skip
            except OnnxsmithError as error:
                if error.problem.id not in _CRASHES:
                    raise
                return Outcome(tried, None, (self._crashes(tried, error.problem),))
        target = self.request.target
        is_for_others = not method.for_speed and done.nbytes <= _SMALLER * done.nbytes_before
        is_for_others |= target is not None and not runtime_of(target)  # the time of another runtime says nothing
        refused = tuple(done.problems(allow_slower=self.request.allow_slower or is_for_others, target=target))
        return Outcome(tried, None if refused else done, refused, done)

    def _crashes(self, tried: Tried, said: Problem) -> Problem:
        """Returns the problem of a file on which the runtime crashes, though it ran the variants of the search."""
        return Problem(
            "quantize/target-refuses",
            f"{self.runtime.title} crashes on the {tried.name} file",
            where=said.where,
            why=said.what,
            fix="try another --to; or keep the layers that cause the crash in float32: `echo LAYER > wide.txt`, "
            "then add --keep wide.txt, with a layer's name in place of LAYER",
        )

    def declared(self, best: Outcome) -> Outcome:
        """Corrects what the result declares and the runs of the given model contradict. The given model is run, because
        some runtimes lack kernels for narrow dtypes."""
        if best.final is None:
            return best
        interface = signature(self.loaded)
        first = [dict(one.feeds) for one in itertools.islice(self.given.scoring.samples, 1)]
        feeds = [Feed("the first sample", of_feed(interface, one), one) for one in first]
        settings = Verify(sizes=dim_ranges.written(self.request.sizes), seed=self.request.seed)
        clauses = declared_as_run(best.final.model, settings, feeds, like=self.loaded)
        return replace(best, tried=replace(best.tried, declared=clauses))

    def _raised(self, tried: Tried) -> list[str]:
        """Returns a note if the file has a newer opset than the given model."""
        before = opsets.of(self.loaded)
        after = opsets.of(tried.model) if tried.model is not None else before
        why = tried.method.opset_why(self._form)
        return [f"model converted from opset {before} to {after}, because {why}"] if after > before else []

    def _ready(self, opset: int) -> Prepared:
        """Returns the prepared model. It is simplified, unless that uses up too much of the budget or merges nodes of
        the keep-list."""
        if opset not in self._prepared:
            with stage("prepare"):
                is_simplified = self._wishes.model != AS_GIVEN
                ready = prepared(self.loaded, opset=opset, simplified=is_simplified)
                why_not = self._why_not_simplified(ready.model) if is_simplified else "the keep-list says so"
                if why_not and is_simplified:
                    ready = prepared(self.loaded, opset=opset, simplified=False)
                if why_not:
                    ready = replace(ready, notes=(*ready.notes, f"not simplified first: {why_not}"))
            self._prepared[opset] = ready
        return self._prepared[opset]

    def _why_not_simplified(self, model: ir.Model) -> str:
        """Says why the simplified model is not used, "" if it is. A keep-list made for the given model may name nodes
        that simplifying merges."""
        names = [node.name or "" for node in walk.all_nodes(model)]
        lost = [one for one in map(bare, self._keep) if not matching(one, names)]
        if lost and all(matching(one, labels(self.loaded)) for one in lost):
            return f"{lost[0]} is on the keep-list, but would be merged with other nodes"
        if self._wishes.model == SIMPLIFIED:
            return ""  # the list was made for the simplified model, so the budget does not matter
        return "" if self._is_as_good(model) else "that changes the score"

    def _is_as_good(self, model: ir.Model) -> bool:
        """Whether a model gives the same outputs on a few samples, or a score that is hardly worse."""
        with self.runtime.prepare(model) as session, self.runtime.prepare(self.loaded) as given:
            few = list(itertools.islice(self.given.scoring.limited(), _FEW))
            pairs = zip(in_order(few, session), in_order(few, given), strict=True)
            if all(near(one[name], theirs[name], _SAME) for (_, one), (_, theirs) in pairs for name in theirs):
                return True
            scored = self.given.scoring.of(session)
        better = self.given.scoring.score.better
        part = replace(self.given.budget, amount=self.given.budget.amount * _OF_BUDGET)
        small = Budget(abs(self.before.value) * _ROUNDING, is_share=False)
        return any(one.allows(self.before.value, scored.value, better) for one in (part, small))

    def written(
        self, best: Outcome, output: str | Path | None, keep_list: Path | None
    ) -> tuple[Written, ir.Model | None]:
        """Writes the model and the keep-list, or nothing if no file is within budget."""
        if best.final is None:
            return Written({}, best.refused[0].what), None
        files: list[Path] = []
        model = best.final.model
        with stage("save"), with_keep(keep_list, _entries(best), best.tried.name, layers=True) as lists:
            if output is not None:
                with staged(output) as place:
                    files += self._place(place, model)
        files += lists
        shown = written(files) if files else Written({}, "no output was asked for")
        return shown, model if output is None else load(output)  # the variant's temporary files are removed at the end

    def _place(self, place: Stage, model: ir.Model) -> list[Path]:
        place.write(model)
        checked_model(model, where="the quantised model", file=place.path)
        return place.commit()


_MOST = 0.5
"""The share of wide weights above which the unsimplified model is tried. A choice: below it the file becomes smaller by
at least a quarter."""


def unmerged(model: ir.Model, opset: int, name: str) -> Prepared:
    """Prepares the model for a method without simplifying it."""
    with stage("prepare"):
        plain = prepared(model, opset=opset, simplified=False)
    return replace(plain, notes=(*plain.notes, f"not simplified first: without this, the {name} file is smaller"))


def smallest(
    method: Method,
    tried: Callable[[Prepared], Outcome],
    ready: Prepared,
    plain: Callable[[], Prepared] | None,
) -> Outcome:
    """Returns the result for the prepared model. If most weights stay wide there, also tries the `plain` model, and
    returns its result if that is a smaller file within the budget.

    Raises:
        OnnxsmithError: as `tried` raises, if neither model has a result.
    """
    if plain is None or not isinstance(method, _NarrowFloat):
        return tried(ready)
    try:
        found = tried(ready)
    except OnnxsmithError as error:
        if error.problem.id != "quantize/nothing":
            raise
        other = _given_out(tried, plain)
        if other is None:
            raise
        return other
    if not _stays(found.tried):
        return found
    other = _given_out(tried, plain)
    return found if other is None or _nbytes(other) >= _nbytes(found) else other


def _given_out(tried: Callable[[Prepared], Outcome], plain: Callable[[], Prepared]) -> Outcome | None:
    """Returns the result for the unsimplified model, if it is a file within budget."""
    try:
        found = tried(plain())
    except OnnxsmithError:  # the error for the simplified model is reported instead
        return None
    return found if found.final is not None else None


def _nbytes(one: Outcome) -> float:
    return one.final.nbytes if one.final is not None else math.inf


def _stays(tried: Tried) -> bool:
    """Whether layers with most of the weights stay as they are, though the user did not ask for it."""
    whole = sum(layer.nbytes for layer in tried.layers)
    wide = sum(layer.nbytes for layer in tried.layers if layer.kept and layer.kept != ASKED)
    return wide > _MOST * whole


def slimmed(model: ir.Model, given: ir.Model) -> tuple[str, ...]:
    """Shortens the texts on the origins of nodes. Removes the opsets of domains without nodes, the declared types of
    initializers, whose tensors have types, and other types that the given model does not declare. Readers infer those,
    except for operators that onnx does not have. In a model of a few hundred kilobytes all this is a tenth of the
    quantised file. Weights that were stored in 16 bits, and stay, are so again. Returns notes for the report."""
    used = {node.domain for node in walk.all_nodes(model)}
    for domain in [one for one in model.opset_imports if one and one not in used and not model.functions]:
        del model.opset_imports[domain]
    gone = provenance.abridge(model)
    narrow_again(model, given)
    declared = {value.name for value in walk.values(given) if value.type is not None}
    for value in _silent(model):
        if value.is_initializer() or value.name not in declared:
            value.type, value.shape = None, None
    if not gone:
        return ()
    removed = f"{gone:,} characters of metadata on the origins of nodes were removed"
    return (
        f"{removed}, so the file shrank by more than the weights; the names of torch modules and source lines are kept",
    )


def _silent(model: ir.Model) -> Iterator[ir.Value]:
    """Yields the values whose types readers find without a declaration."""
    for value in walk.values(model):
        maker = value.producer()
        is_port = value.is_graph_input() or value.is_graph_output()
        if not is_port and (value.const_value is not None or (maker is not None and not maker.domain)):
            yield value
