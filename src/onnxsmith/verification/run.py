"""`run`: runs a model once, on given or generated inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base import devices
from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.verification import OutputArray, Outputs
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.words import pasted
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.shapes.dims import symbols
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.dim_ranges import Size, Sizes
from onnxsmith.graph.structure.signature import Port, Signature, signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Session, Value
from onnxsmith.runtimes.base import Outputs as Outputs_
from onnxsmith.verification import runtime_choice
from onnxsmith.verification.input_search import Plan, Run, Search, Tries
from onnxsmith.verification.inputs import user_inputs
from onnxsmith.verification.inputs.generate import Generator
from onnxsmith.verification.inputs.input_files import WRITTEN_IMAGES, write_image, write_npz
from onnxsmith.verification.inputs.size_limits import refuse_unknown
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.value_comparison import is_float


@identifies("source")
def run(
    source: Source,
    inputs: Mapping[str, Any] | Sequence[str] = (),
    *,
    runtime: str | None = None,
    provider: str = "cpu",
    output: str | Path | None = None,
    random: bool = False,
    sizes: Sizes | None = None,
    seed: int = 0,
) -> Result:
    """Runs a model once. `Result.outputs` are the arrays by name.

    `inputs` are arrays by name, or texts as on the command line (`x=photo.png`, `inputs.npz`). With `random`, missing
    inputs are generated, with symbolic dimensions at `sizes` or at 1. If the user named no runtime and the usual
    runtime lacks a capability, another runtime runs the model, and a note says so. `output` is an `.npz` file for all
    outputs, or an image file for the first output. If the provider cannot run, this is an error; no other provider is
    used.

    Raises:
        OnnxsmithError: `run/…` when the inputs do not fit, `runtime/…` when the runtime fails, `output/…` when the
            outputs cannot be written as asked.
    """
    source, runtime = runtime_choice.named(source, runtime)
    if output is not None:
        _check_output(Path(output))
    with Clock() as clock:
        with stage("load"):
            model = load(source)
            refuse_loss([output], [source, model, inputs])
            interface = signature(model)
            values = dict(inputs) if isinstance(inputs, Mapping) else user_inputs.values(inputs, interface)
            plan = planned(model, interface, _asked(sizes, interface), seed) if random else None
            given_too = bool(values)
            if plan is not None:
                values = {**plan.generator.feed(dict(plan.start or {}), seed=seed).values, **values}
        prepared = Path(source) if isinstance(source, str | Path) and Path(source).suffix == ".onnx" else model
        model_name = str(source) if isinstance(source, str | Path) else "the given model"

        def on(name: str) -> tuple[Outputs, Outputs_, tuple[str, ...]]:
            with stage("prepare"):
                session = runtimes.get(name).prepare(prepared, runtimes.patient(Options(provider=provider)))
            with session:
                with stage("run"):
                    if plan is not None and not given_too:
                        fed, outputs, notes = accepted(session, plan, values)
                    else:
                        fed, outputs, notes = values, session.run(values), ()
                written = _write(outputs, Path(output)) if output is not None else {}
                return summary(model_name, name, session, fed, outputs, written), outputs, notes

        named = runtime or (None if provider == "cpu" else runtimes.default())
        try:
            (part, outputs, notes), choice = runtime_choice.judged(named, [prepared], on)
        except OnnxsmithError as error:
            if error.problem.id != "run/missing-input":
                raise
            fix = _how_to_give([port for port in interface.required() if port.name not in values])
            raise OnnxsmithError(replace(error.problem, fix=fix)) from error
    notes += (choice.clause,) if choice.clause else ()
    report = Report("run", Verdict.DONE, (part, Timing(clock.passed())), notes=notes)
    return Result(report, outputs=outputs)


def _asked(sizes: Sizes | None, interface: Signature) -> dict[str, Size]:
    refuse_unknown(sizes, interface)
    return user_inputs.sizes(sizes)


def _how_to_give(missing: list[Port]) -> str:
    """Returns the fix for inputs without values: what to type for each."""
    texts = []
    for port in missing:
        shape = (
            None if port.shape is None else ",".join(str(dim) if isinstance(dim, int) else "1" for dim in port.shape)
        )
        texts.append(f"--input {pasted(f'{port.name}={port.dtype}[{shape}]')}")
    files = " ".join(f"--input {pasted(port.name)}=FILE.npy" for port in missing)
    fix = "add --random for generated values, in Python random=True"
    if all(port.kind == "tensor" and port.shape is not None for port in missing):
        fix += f"; or choose the sizes of generated values: {' '.join(texts)}"
    return f"{fix}; or give your own files, written with numpy.save: {files}"


def planned(model: ir.Model, interface: Signature, sizes: Mapping[str, Size], seed: int) -> Plan:
    """Returns a plan for generated inputs whose symbolic dimensions are at `sizes`, or at 1, or at the least size that
    their ranges and relations allow."""
    return least(Generator.for_model(inferred(model)[0]).under(interface), sizes, seed)


def least(generator: Generator, sizes: Mapping[str, Size], seed: int) -> Plan:
    """Returns a plan as `planned` does, for inputs of a generator."""
    plan = Plan(generator, known=sizes, seed=seed)
    ones = {**dict.fromkeys(symbols(generator.signature), 1), **plan.known}
    return replace(plan, start=plan.limits.fitted(ones) or ones)


def accepted(session: Session, plan: Plan, values: dict[str, Any]) -> tuple[dict[str, Any], Outputs_, tuple[str, ...]]:
    """Returns the outputs on the given values. If the model refuses these values, returns another generated input and
    its outputs, with a note."""
    try:
        return values, session.run(values), ()
    except OnnxsmithError as error:
        if error.problem.id != "runtime/failed":
            raise
        found = instead(session, plan)
        if found is None:
            raise
        return found.feed.values, found.outputs, (said_of(found),)


def instead(session: Session, plan: Plan) -> Run | None:
    """Returns a generated input that the model accepts, after it refused the first input; None if there is none."""
    return Search(Tries(session, plan)).base()


def said_of(found: Run) -> str:
    """Writes the note that another input was used."""
    return f"the model refused the first generated input, but accepted this one: {found.feed.label}"


def summary(
    model: str,
    runtime: str,
    session: Session,
    values: Mapping[str, Any],
    outputs: Mapping[str, Value],
    written: Mapping[str, str] | None = None,
) -> Outputs:
    """Summarises the outputs of a session for some inputs; `written` says to which file an output went."""
    written = written or {}
    return Outputs(
        model=model,
        runtime=runtime,
        provider=session.provider,
        inputs={key: typed(value) for key, value in values.items()},
        outputs=tuple(_summary(key, value, written.get(key, "")) for key, value in outputs.items()),
        nodes=_nodes(session),
    )


def _nodes(session: Session) -> dict[str, int]:
    return dict(getattr(session, "nodes_by_provider", {}))


def _check_output(path: Path) -> None:
    """Raises the errors of the output file that are known before the model runs."""
    devices.refuse(path)
    refuse_missing(path.absolute().parent)
    if path.suffix.lower() not in (".npz", *WRITTEN_IMAGES):
        raise problem(
            "output/unknown-kind",
            f"outputs cannot be written as {path.suffix or 'a file without an extension'!r}",
            where=str(path),
            fix=f"write -o {pasted(path.with_suffix('.npz'))} for all outputs, or for an image one of "
            f"{', '.join(sorted(WRITTEN_IMAGES))}",
        )


def _write(outputs: Mapping[str, Value], path: Path) -> dict[str, str]:
    if path.suffix.lower() in WRITTEN_IMAGES:
        first = next(iter(outputs))
        write_image(np.asarray(outputs[first]), path)
        return {first: str(path)}
    write_npz(path, outputs)
    return dict.fromkeys(outputs, str(path))


def typed(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    return f"a sequence of {len(value)}" if isinstance(value, list) else type(value).__name__


def _summary(name: str, value: Value, written: str) -> OutputArray:
    if not isinstance(value, np.ndarray):
        return OutputArray(name, typed(value), (), written=written)
    shape = tuple(int(size) for size in value.shape)
    if value.dtype.kind in "OUS" or value.size == 0:
        return OutputArray(name, "string" if value.dtype.kind in "OUS" else value.dtype.name, shape, written=written)
    wide = widen(value)
    finite = wide[np.isfinite(wide)] if is_float(value) else wide
    if finite.size == 0:
        return OutputArray(name, value.dtype.name, shape, nonfinite=int(wide.size), written=written)
    return OutputArray(
        name,
        value.dtype.name,
        shape,
        float(finite.min()),
        float(finite.mean()),
        float(finite.max()),
        int(wide.size - finite.size),
        written,
    )
