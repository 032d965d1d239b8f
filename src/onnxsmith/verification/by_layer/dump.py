"""`dump`: writes the values of a model's tensors on one input to a file, with statistics."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith._version import __version__
from onnxsmith.base import name_patterns
from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.layers import ValueRow, Values
from onnxsmith.base.report.parts.written_files import Timing, written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.graph.files.digest import sha256
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.reading.statistics import statistics as statistics_of
from onnxsmith.graph.structure.dim_ranges import Size, Sizes
from onnxsmith.graph.structure.signature import Port, Signature, signature
from onnxsmith.graph.structure.tensor_paths import Place, find, unknown
from onnxsmith.graph.surgery.exposing import Exposing
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes._dtypes import name_of
from onnxsmith.runtimes.base import Value
from onnxsmith.verification import runtime_choice
from onnxsmith.verification.by_layer import value_bundle
from onnxsmith.verification.by_layer.intermediates import BUDGET, Intermediates
from onnxsmith.verification.by_layer.value_bundle import About, Role, Writer
from onnxsmith.verification.input_search import Plan
from onnxsmith.verification.inputs import user_inputs
from onnxsmith.verification.inputs.size_limits import refuse_unknown
from onnxsmith.verification.metrics.base import is_numeric, widen
from onnxsmith.verification.run import instead, planned, said_of
from onnxsmith.verification.value_comparison import is_float

_BINS = 16
"""Counts the bins of a histogram. A choice: the bins fit into one line of a report."""
_PACKAGES = ("onnx", "onnxruntime", "openvino", "tract", "iree-base-compiler", "numpy")
"""Names the packages whose versions a bundle records, because they affect the values."""


@identifies("source")
def dump(
    source: Source,
    output: str | Path | None = None,
    *,
    tensors: Sequence[str] = (),
    inputs: Mapping[str, Any] | Sequence[str] = (),
    runtime: str | None = None,
    sizes: Sizes | None = None,
    seed: int = 0,
    statistics: bool = True,
    budget: int = BUDGET,
) -> Result:
    """Runs a model, writes the values of its tensors to a file (`verification/by_layer/value_bundle.py`), and returns
    statistics.

    `tensors` are names and patterns (`*attention*`). Without `tensors`, all computed tensors are included. Inputs and
    outputs are always included. Missing inputs are generated from `seed`, with symbolic dimensions at `sizes` or at 1.
    `budget` is the largest number of bytes of values held at once. A path may end in `@runtime`.

    Raises:
        OnnxsmithError: `model/unknown-tensor` for a name or pattern that matches nothing; `bundle/suffix` and `save/…`
            for the file; the errors of `run`.
    """
    target = None if output is None else Path(output)
    if target is not None:
        value_bundle.check_target(target)
    source, runtime = runtime_choice.named(source, runtime)
    with Clock() as clock:
        with stage("load"):
            model = load(source)
            refuse_loss([target], [source, model, inputs])
            interface = signature(model)
            values = dict(inputs) if isinstance(inputs, Mapping) else user_inputs.values(inputs, interface)
            plan = _plan(model, interface, values, user_inputs.sizes(sizes), seed)
            feeds = (
                values if plan is None else {**plan.generator.feed(dict(plan.start or {}), seed=seed).values, **values}
            )
        on_disk = Path(source) if isinstance(source, str | Path) and Path(source).suffix == ".onnx" else None
        label = str(source) if isinstance(source, str | Path) else "the given model"

        job = _Job(model, on_disk, label, interface, tensors, target, budget, seed, statistics or target is None)

        def on(name: str) -> tuple[Intermediates, tuple[ValueRow, ...], tuple[str, ...]]:
            try:
                return *job.run(name, feeds), ()
            except OnnxsmithError as error:
                # Only a generated input may be replaced by another one.
                if error.problem.id != "runtime/failed" or plan is None or values:
                    raise
                with runtimes.get(name).prepare(on_disk or model, runtimes.patient()) as session:
                    found = instead(session, plan)
                if found is None:
                    raise
                return *job.run(name, found.feed.values), (said_of(found),)

        with stage("run"):
            (run, rows, notes), choice = runtime_choice.judged(runtime, [on_disk or model], on)
    report = _report(label, choice.runtime, run, rows, target, clock)
    clauses = (choice.clause,) if choice.clause else ()
    return Result(replace(report, notes=(*report.notes, *notes, *clauses)), path=target)


@dataclass(frozen=True)
class _Job:
    """Holds the tensors of one model to dump, and the file. `run` can be repeated on another runtime or input."""

    model: ir.Model
    file: Path | None
    label: str
    interface: Signature
    tensors: Sequence[str]
    target: Path | None
    budget: int
    seed: int
    counted: bool

    def run(self, runtime: str, feeds: Mapping[str, Any]) -> tuple[Intermediates, tuple[ValueRow, ...]]:
        """Runs the model on one input and writes its values."""
        exposing = Exposing(self.model)
        names = _chosen(list(exposing.places.values()), self.tensors, self.interface)
        options = runtimes.patient()
        run = Intermediates(
            self.file or self.model, runtimes.get(runtime), options, names, feeds, self.budget, exposing
        )
        with Writer(self.target) if self.target is not None else contextlib.nullcontext() as writer:
            rows = tuple(_rows(run, self.interface, writer, self.counted))
            if writer is not None:
                about = _about(self.label, self.file, runtime, run.provider, self.seed)
                ports = (self.interface.inputs, self.interface.outputs)
                writer.finish(about, *(_names(group, rows) for group in ports))
        return run, rows


def _report(
    label: str, runtime: str, run: Intermediates, rows: tuple[ValueRow, ...], target: Path | None, clock: Clock
) -> Report:
    part = Values(
        model=label,
        runtime=runtime,
        provider=run.provider,
        runs=run.runs,
        rows=rows,
        refused=dict(run.refused),
        moved={output: found.reason for output, found in run.moved.items()},
    )
    parts = (part, *([written([target])] if target is not None else []), Timing(clock.passed()))
    notes = tuple([run.trouble] if run.trouble else [])
    notes += tuple(f"{one} is larger than the memory budget, but was kept in memory" for one in run.alone)
    return Report("dump", Verdict.DONE, parts, notes=notes)


def _plan(
    model: ir.Model, interface: Signature, values: Mapping[str, Any], sizes: Mapping[str, Size], seed: int
) -> Plan | None:
    """Returns the plan for inputs without a value; None if all inputs have a value."""
    if all(port.name in values for port in interface.required()):
        return None
    refuse_unknown(sizes, interface)
    return planned(model, interface, {**_sizes(interface, values), **sizes}, seed)


def _sizes(interface: Signature, values: Mapping[str, Any]) -> dict[str, int]:
    """Returns sizes of symbolic dimensions in the given inputs, so that generated inputs fit them."""
    return {
        dim: size
        for port in interface.inputs
        if isinstance(array := values.get(port.name), np.ndarray)
        for dim, size in zip(port.shape or (), array.shape, strict=False)
        if isinstance(dim, str)
    }


def _chosen(known: Collection[Place], asked: Sequence[str], interface: Signature) -> list[str]:
    """Returns full names of the tensors to dump: the inputs, the requested tensors, the outputs."""
    ports = [port.name for port in interface.inputs], [port.name for port in interface.outputs]
    middle = [place for text in asked for place in _matching(known, text)]
    if not asked:
        middle = [place for place in known if place.kind == "node"]
    ends = [[place.name for place in find(known, names)] for names in ports]
    return list(dict.fromkeys([*ends[0], *(place.name for place in middle), *ends[1]]))


def _matching(known: Collection[Place], text: str) -> list[Place]:
    """Returns the tensors with this name. If there are none, returns the tensors that match the text as a pattern."""
    exact = [place for place in known if text in (place.name, place.value.name)]
    found = exact or [place for place in known if name_patterns.fits(place.name, text)]
    if not found:
        raise unknown(text, known)
    return found


def _rows(run: Intermediates, interface: Signature, writer: Writer | None, counted: bool) -> Iterator[ValueRow]:
    ports: dict[str, tuple[Role, ...]] = {port.name: ("input",) for port in interface.inputs}
    for port in interface.outputs:
        ports[port.name] = (*ports.get(port.name, ()), "output")
    for name, value in run:
        outlet = run.outlets[name]
        roles = () if outlet.path else ports.get(name, ())
        if writer is not None:
            writer.add(name, value, outlet.path)
        yield _row(name, value, roles, outlet.path, outlet.operator, outlet.dtype, counted)


def _names(ports: Sequence[Port], rows: Sequence[ValueRow]) -> list[str]:
    """Returns the names of ports that have a value, each once."""
    there = {row.name for row in rows}
    return [name for name in dict.fromkeys(port.name for port in ports) if name in there]


def _row(
    name: str,
    value: Value,
    roles: tuple[Role, ...],
    path: tuple[str, ...],
    operator: str,
    dtype: str,
    counted: bool,
) -> ValueRow:
    listed = isinstance(value, list)
    arrays = value if isinstance(value, list) else [] if value is None else [value]
    kind = "list" if listed else "absent" if value is None else "tensor"
    found = [np.asarray(array) for array in arrays]
    if found:
        dtype = "string" if found[0].dtype.kind in "OUS" else name_of(found[0].dtype)
    row = ValueRow(name, roles, path, operator, dtype, kind, tuple(array.shape for array in found))
    if not counted or not found or not is_numeric(found[0]):
        return row
    flat = found[0].reshape(-1) if len(found) == 1 else np.concatenate([array.reshape(-1) for array in found])
    seen = statistics_of(ir.Tensor(flat))
    return ValueRow(**{**vars(row), "statistics": seen, "histogram": _histogram(flat)})


def _histogram(flat: Any) -> tuple[int, ...]:
    """Counts the finite elements in equal bins from the smallest to the largest element. Complex elements count by
    magnitude."""
    wide = np.abs(flat).astype(np.float64) if flat.dtype.kind == "c" else widen(flat)
    if is_float(flat):
        wide = wide[np.isfinite(wide)]
    if not wide.size:
        return ()
    scale = max(1.0, float(np.max(np.abs(wide))))  # the range of two large floats of opposite sign may overflow
    low, high = float(wide.min()) / scale, float(wide.max()) / scale
    if not high - low > 0 or high - low < 1e-300:
        return (int(wide.size),)
    counts, _ = np.histogram(wide / scale, bins=_BINS, range=(low, high))
    return tuple(int(count) for count in counts)


def _about(label: str, path: Path | None, runtime: str, provider: str, seed: int) -> About:
    digest = sha256(path) if path is not None else ""
    versions = {"onnxsmith": __version__}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return About(label, digest, runtime, provider, seed, versions)
