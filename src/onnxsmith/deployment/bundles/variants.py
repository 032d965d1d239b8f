"""Reads the variants of a model package, and compares each with the given model.

A variant is a file for one execution provider. onnxruntime chooses the variant by the provider, so all variants need
the same inputs and outputs, and have to give the same results.
"""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.folders import OwnPath
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.verification import REFUSES, OutputCheck, Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import first_few, pasted, rounded_up, several
from onnxsmith.comparison.outputs.compare import compare
from onnxsmith.deployment.bundles import golden_files, model_copy
from onnxsmith.deployment.bundles.content import Content, Variant
from onnxsmith.deployment.bundles.forms.base import Form
from onnxsmith.deployment.bundles.golden import recorded
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Signature, signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.targets.profiles import profile_reader
from onnxsmith.targets.profiles.condition_result import Outlook
from onnxsmith.targets.profiles.node_acceptance import foresee
from onnxsmith.verification.inputs.generate import Feed

PROVIDERS = {
    "cpu": ("CPUExecutionProvider", ""),
    "cuda": ("CUDAExecutionProvider", ""),
    "tensorrt": ("TensorrtExecutionProvider", "tensorrt-10"),
    "tensorrt-rtx": ("NvTensorRTRTXExecutionProvider", "tensorrt-rtx"),
    "webgpu": ("WebGpuExecutionProvider", "webgpu"),
    "openvino": ("OpenVINOExecutionProvider", "openvino"),
    "qnn": ("QNNExecutionProvider", "qnn"),
    "coreml": ("CoreMLExecutionProvider", "coreml-mlprogram"),
    "directml": ("DmlExecutionProvider", ""),
    "migraphx": ("MIGraphXExecutionProvider", ""),
}
"""Maps short names of execution providers to their names in onnxruntime (GetAllExecutionProviderNames), and to the
table of `check` that lists their operators; "" if there is no table. The CPU has none here, because it is run."""
_SHORT = {long: short for short, (long, _) in PROVIDERS.items()}
OWN = "model"
"""Is the folder of the given model in every bundle."""
FILE = "model.onnx"
_AGREE = "all variants have to compute the same, because onnxruntime chooses one by the execution provider"


@dataclass(frozen=True)
class How:
    """Holds how variants are compared: the runtime, the seed, and the tolerance that the user asked for."""

    runtime: str | None
    seed: int
    tolerance: float | None


def read(
    given: Mapping[str, str | Path] | tuple[str, ...], source: Source, content: Content, form: Form
) -> tuple[Variant, ...]:
    """Returns the variants of the package, those of the given model first. Files that are not the given model are
    loaded, and their interfaces compared with the model's.

    Raises:
        OnnxsmithError: `bundle/variant` for a wrong option; `bundle/other-model` for another interface; `model/…` for a
            file that cannot be read.
    """
    if not form.takes_variants:
        if given:
            raise _wrong(
                f"the form {form.id()} has no variants",
                why="only a model package holds several files, one for each execution provider",
                fix="--for onnxruntime-package, or leave out --variant",
            )
        return ()
    named = list(given.items()) if isinstance(given, Mapping) else [_parsed(text) for text in given]
    pairs = [(_SHORT.get(provider, provider), Path(file)) for provider, file in named]
    owns = [isinstance(source, str | Path) and _is_same(file, Path(source)) for _, file in pairs]
    if not any(owns):
        pairs.insert(0, ("cpu", Path(source if isinstance(source, str | Path) else content.file)))
        owns.insert(0, True)
    _refuse_names([provider for provider, _ in pairs], pairs, content)
    found: list[Variant] = []
    for (name, file), own in sorted(zip(pairs, owns, strict=True), key=lambda one: not one[1]):
        same = next((one for one in found if one.file is not None and _is_same(one.file, file)), None)
        folder = OWN if own else same.folder if same is not None else name
        if not own and same is None:
            _refuse_interface(file, content)
        found.append(Variant(name, PROVIDERS[name][0], None if own else file, folder))
    return tuple(found)


def _parsed(text: str) -> tuple[str, str | Path]:
    file, mark, provider = text.rpartition("@")
    if not file or not provider:
        file, provider = (file, provider) if mark else (text, "")
        example = f"{file or 'fp16.onnx'}@{provider or 'cuda'}"
        raise _wrong(
            f"--variant {pasted(text)} does not name both a file and its execution provider",
            why=f"onnxruntime chooses a variant by its provider: {', '.join(PROVIDERS)}",
            fix=f"write the file, @, and the provider: --variant {pasted(example)}",
        )
    return provider, file


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _refuse_names(names: list[str], pairs: list[tuple[str, Path]], content: Content) -> None:
    """Raises for a provider that is unknown or named twice."""
    for name in names:
        if name not in PROVIDERS:
            near = near_names(name.lower().removesuffix("executionprovider"), PROVIDERS, 1, cutoff=0.5)
            file = next(str(file) for provider, file in pairs if provider == name)
            meant = near[0] if near else "cuda"
            raise _wrong(
                f"there is no execution provider {name!r}",
                why=f"variants can be for: {', '.join(PROVIDERS)}",
                fix=f"--variant {pasted(f'{file}@{meant}')}",
            )
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is None:
        return
    files = [str(file) for provider, file in pairs if provider == twice]
    free = next(name for name in PROVIDERS if name not in names)
    own = twice == "cpu" and pasted(files[0]) == content.file
    raise _wrong(
        f"two variants are for {twice}: {' and '.join(map(repr, files))}",
        why="onnxruntime chooses a variant by its provider, and would never choose one of the two"
        + ("; the given model is the variant for cpu if no option names it" if own else ""),
        fix=f"name another provider: --variant {pasted(f'{files[0]}@{free}')}",
    )


def _wrong(what: str, *, why: str, fix: str) -> OnnxsmithError:
    return problem("bundle/variant", what, where="--variant", why=why, fix=fix)


def _refuse_interface(file: Path, content: Content) -> None:
    """Raises if the inputs or outputs of a variant are not those of the given model: names, order, kinds, dtypes, and
    fixed sizes of inputs.

    Raises:
        OnnxsmithError: `bundle/other-model`.
    """
    found = signature(load(file))
    why = "a program gives every variant the same inputs and reads the same outputs, whichever onnxruntime chose"
    for what in ("inputs", "outputs"):
        ours, theirs = _ports(content.signature, what), _ports(found, what)
        if ours == theirs:
            continue
        pairs = itertools.zip_longest(ours, theirs, fillvalue="none")
        mine, other = next((mine, other) for mine, other in pairs if mine != other)
        raise problem(
            "bundle/other-model",
            f"the {what} of {str(file)!r} are not those of the model: {other}, not {mine}",
            where=str(file),
            why=why,
            fix=f"`onnxsmith inspect {pasted(file)}` shows the inputs and outputs; `onnxsmith rename` and "
            "`onnxsmith edit` change names and dtypes",
        )
    fixed = _fixed(content.signature, found)
    if fixed:
        dims = " ".join(pasted(f"{name}={size}") for name, size in fixed.items())
        raise problem(
            "bundle/other-model",
            f"{str(file)!r} fixes sizes that the model leaves open: {dims}",
            where=str(file),
            why=why,
            fix="fix the sizes of the given model, too, and bundle the new file: `onnxsmith set-dim "
            f"{content.file} {dims} -o fixed_model.onnx`; or make the variant again, with open sizes",
        )


def _fixed(mine: Signature, theirs: Signature) -> dict[str, int]:
    """Returns the open sizes of inputs that another model of this interface fixes, by their names for `set-dim`."""
    return {
        f"{a.name}:{axis}" if ours == f"{a.name}.{axis}" else ours: other
        for a, b in zip(mine.inputs, theirs.inputs, strict=True)
        for axis, (ours, other) in enumerate(zip(a.shape or (), b.shape or (), strict=False))
        if isinstance(ours, str) and isinstance(other, int)
    }


def _ports(interface: Signature, what: str) -> list[str]:
    ports = interface.inputs if what == "inputs" else interface.outputs
    return [f"{port.name!r} ({port.dtype}{'' if port.kind == 'tensor' else f', {port.kind}'})" for port in ports]


def compared(source: Source, content: Content, how: How, place: OwnPath) -> Content:
    """Copies the variants into the bundle, compares each file with the given model, and records its outputs for the
    golden inputs.

    Raises:
        OnnxsmithError: `bundle/other-model` if the results differ; the errors of `compare` and of the runtime.
    """
    done: dict[str, tuple[str, str]] = {}
    sizes = content.model_bytes
    found = []
    for variant in content.variants:
        model = load(variant.file or source)
        if variant.file is not None and variant.folder not in done:
            folder = OwnPath(place / variant.folder)
            sizes = max(sizes, _copied(variant.file, model, folder))
            with _naming(variant.file):
                done[variant.folder] = _result(source, variant.file, content, how)
                _record(model, folder, content, how)
        result, unsure = ("the given model", "") if variant.file is None else done[variant.folder]
        found.append(replace(variant, result=result, unsure=unsure, table=_table(variant.name, model)))
    return replace(content, variants=tuple(found), model_bytes=sizes)


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Makes the problems of other code name the variant, and not the given model."""
    try:
        yield
    except OnnxsmithError as error:
        found = error.problem
        if str(file) in found.where:
            raise
        where = f"{file}, {found.where}" if found.where else str(file)
        raise OnnxsmithError(replace(found, where=where, fix=found.fix.replace("MODEL", pasted(file)))) from error


def _copied(file: Path, model: ir.Model, folder: OwnPath) -> int:
    """Copies a model with its external data. Returns the bytes."""
    target = OwnPath(folder / FILE)
    data = model_copy.copy_model(file, model, target)
    return sum((folder / name).stat().st_size for name in (FILE, *data))


def _result(source: Source, file: Path, content: Content, how: How) -> tuple[str, str]:
    """Compares a file with the given model on the golden inputs, and on generated inputs. Returns the result as a
    clause; or "", and why the comparison proves too little."""
    report = compare(
        source,
        file,
        inputs=[Feed(case.label, dict(case.sizes), dict(case.inputs)) for case in content.cases],
        sizes={name: (held.least, held.most) for name, held in content.ranges.items()},
        runtime=how.runtime,
        seed=how.seed,
        tolerance=how.tolerance,
    ).report
    if report.verdict is Verdict.FAILED:
        raise OnnxsmithError(report.problems[0])
    part = report.part(Verification)
    if part.differs:
        raise _different(file, content, report)
    if report.verdict is not Verdict.DONE:
        return "", "; ".join(part.unsure)
    worst = max((one.worst_rel for one in part.outputs), default=0.0)
    said = f"equal to the given model {part.where_compared}, largest difference {worst:.2g} of an output's scale"
    return "; ".join([said, *part.untried]), ""


def _different(file: Path, content: Content, report: Report) -> OnnxsmithError:
    wrong = [one for one in report.part(Verification).outputs if not one.equal]
    layers = f"`onnxsmith compare {content.file} {pasted(file)} --per-layer` names the first node that adds an error"
    if not wrong:  # the interfaces differ in another way than `_refuse_interface` looks for
        return problem("bundle/other-model", report.problems[0].what, where=str(file), why=_AGREE, fix=layers)
    worst = max(wrong, key=lambda one: one.worst_rel if math.isfinite(one.worst_rel) else math.inf)
    refuses = worst.reason.startswith(REFUSES)
    return problem(
        "bundle/other-model",
        f"{str(file)!r} refuses an input that the model accepts"
        if refuses
        else f"{str(file)!r} computes other results than the model: output {worst.name!r}: {_apart(worst)}",
        where=f"{file}, on {worst.where}" if worst.where else str(file),
        why=worst.reason.removeprefix(REFUSES).lstrip(": ") if refuses else _AGREE,
        fix=(_allowing(wrong) + layers) if not refuses else "make this variant from the given model again",
    )


def _apart(output: OutputCheck) -> str:
    if 0 < output.worst_rel < math.inf:
        return f"the difference is {output.worst_rel:.2g} of its scale, and {output.tolerance:.2g} is allowed"
    return output.reason


def _allowing(wrong: list[OutputCheck]) -> str:
    """Returns the option that allows the measured differences; "" if they are as large as the outputs."""
    most = max(one.worst_rel for one in wrong)
    if not all(0 < one.worst_rel < 1 for one in wrong):
        return ""
    return f"--tolerance {rounded_up(most)}, if a difference of this size is acceptable; or "


def _record(model: ir.Model, folder: OwnPath, content: Content, how: How) -> None:
    """Records the outputs of a variant for the golden inputs: they are what onnxruntime has to compute from the
    package, with the tolerance of the variant's own dtypes."""
    feeds = [Feed(case.label, dict(case.sizes), dict(case.inputs)) for case in content.cases]
    made = recorded(
        model,
        Path(folder / FILE),
        content.signature,
        feeds,
        {},
        runtime=how.runtime or runtimes.default(),
        seed=how.seed,
        tolerance=how.tolerance,
    )
    golden_files.write(made.cases, content.signature, folder)


_SHOWN = 2
"""Limits the refused nodes that a sentence names. A choice."""


def _table(name: str, model: ir.Model) -> str:
    """Says what the provider's published table says about the nodes of the model, as `check` does; "" for the CPU,
    which is run."""
    table = PROVIDERS[name][1]
    if not table:
        return "" if name == "cpu" else "no table lists the operators of this provider"
    profile = profile_reader.named(table)
    entries = foresee(model, profile)
    refused = [one for one in entries if one.outlook is Outlook.REFUSED]
    unknown = [one for one in entries if one.outlook is Outlook.UNKNOWN]
    if not refused and not unknown:
        return f"the table {table} takes every node"
    said = [f"{'the model' if one.node is None else walk.node_label(one.node)}: {one.reason}" for one in refused]
    clauses = [f"refuses {several(len(refused), 'node')} ({first_few(said, _SHOWN)})"] if refused else []
    clauses += [f"leaves {several(len(unknown), 'node')} undecided"] if unknown else []
    return f"the table {table} {' and '.join(clauses)}"
