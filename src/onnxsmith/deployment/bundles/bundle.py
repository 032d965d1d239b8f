"""Runs the command `bundle`: writes a model as a folder that runs without torch, verified in the program that will load
it.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith._version import __version__
from onnxsmith.base import folders, user_files
from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.target_checks import Bundle, BundleCheck, checks_said
from onnxsmith.base.report.parts.written_files import Timing, Written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.words import first_few, pasted, rounded_up
from onnxsmith.deployment.bundles import golden_files, interface, licence, model_copy
from onnxsmith.deployment.bundles import variants as package_variants
from onnxsmith.deployment.bundles.content import Content
from onnxsmith.deployment.bundles.dimension_ranges import ranges
from onnxsmith.deployment.bundles.forms.base import Form, form_of
from onnxsmith.deployment.bundles.golden import Golden
from onnxsmith.deployment.bundles.golden import recorded as recorded_data
from onnxsmith.deployment.bundles.identifiers import file_name, plain
from onnxsmith.deployment.bundles.processing_parameters import parameters
from onnxsmith.deployment.bundles.tasks.base import task as task_of
from onnxsmith.graph.files.closed_axes import problem_of as closed_axes_problem
from onnxsmith.graph.files.digest import sha256
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.files.save import disk_problems
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.verification import closed_axes
from onnxsmith.verification.inputs import user_inputs as given
from onnxsmith.verification.inputs.user_inputs import Inputs
from onnxsmith.verification.intermediate_declarations import wrong_intermediates
from onnxsmith.verification.output_declarations import Declarations

INDEX = "bundle.json"
_INSIDE = {"onnxruntime": "include and lib", "node_modules": "onnxruntime-web or @huggingface/transformers"}
"""Says what the folder of a client holds."""
_SHOWN = 5
"""Limits the renamed inputs and outputs that the report names."""


@identifies("source", "variants")
def bundle(
    source: Source,
    folder: str | Path,
    *,
    form: str,
    task: str = "tensors",
    processing: Mapping[str, Any] | None = None,
    settings: str | Path | None = None,
    licence: str | Path | None = None,
    name: str | None = None,
    inputs: Inputs = (),
    dim_ranges: Mapping[str, tuple[int, int, int]] | tuple[str, ...] = (),
    runtime: str | None = None,
    seed: int = 0,
    tolerance: float | None = None,
    clients: Mapping[str, str | Path] | None = None,
    variants: Mapping[str, str | Path] | tuple[str, ...] = (),
    force: bool = False,
) -> Result:
    """Writes a folder from which a program runs the model without torch: the model, code, golden data, documents.

    `form` names the program: `python`, `web`, `triton`, `tensorrt`, `cpp`, `transformers-js`, `genai`,
    `onnxruntime-package`. `task` chooses the pre- and post-processing that is written as code, with the parameters in
    `processing` and in the TOML file `settings`. `dim_ranges` declares (least, usual, largest) size of symbolic
    dimensions, as tuples or as texts `batch=1:4:16`. Golden data is made from `inputs`, and from generated inputs: at
    the declared sizes, and at two sizes of symbolic dimensions without a range. `tolerance` is the allowed difference
    of float outputs, relative to the largest magnitude of the output. `tolerance` replaces the difference that rounding
    explains. `clients` are folders of programs that are not found automatically: `{"onnxruntime": …, "node_modules":
    …}`. `variants` are the files of a model package by execution provider, `{"cuda": "fp16.onnx"}`, or texts
    `fp16.onnx@cuda`. Each file is compared with the model. If `variants` does not name the file of the model, the model
    is the variant for `cpu`.

    The folder is first written beside its target. If the program is on this machine, it replays the golden data in this
    folder. If nothing differs, the folder is moved into place. The report says for each part whether it ran;
    `Result.path` is the folder.

    Raises:
        OnnxsmithError: `bundle/…` if the form or task does not fit the model, or the program is here but cannot run the
            bundle; `model/…` for a source that cannot be read; `runtime/…` if the model does not run here.
    """
    chosen, target = form_of(form), Path(folder)
    check_target(target)
    refuse_taken(target, INDEX, force=force)
    with Clock() as clock, disk_problems(target), folders.beside(target) as beside:
        with stage("load"):
            model = load(source)
            refuse_loss([target], [source, model, settings, licence])
            check(model, where=str(source) if isinstance(source, str | Path) else "the given model")
            content = _described(source, model, chosen, target, task, name)
            content = replace(content, parameters=parameters(processing or {}, settings))
            content = replace(content, ranges=ranges(dim_ranges, content.symbols, content.signature, content.file))
            content = replace(content, clients=_folders(clients or {}))
            content = replace(content, variants=package_variants.read(variants, source, content, chosen))
            refuse_loss([target], [one.file for one in content.variants])
            chosen.refuse(content)
            task_of(task).refuse_unused(content)
            task_of(task).refuse(content)
        place = folders.OwnPath(beside / target.name)
        place.mkdir()
        with stage("copy"):
            content = _with_model(source, model, content, place)
            content = _with_licence(model, content, licence, place)
        with stage("open axes"):
            found = closed_axes.closed(model, {}, seed)
            stuck = tuple(closed_axes_problem(one, content.file) for one in found)
        with stage("golden data"):
            recorded, content = _with_golden(model, content, inputs, runtime, seed, tolerance, place)
        with stage("variants"):
            how = package_variants.How(runtime, seed, tolerance)
            content = package_variants.compared(source, content, how, place)
        with stage("write"):
            chosen.write(content, place)
            _write_index(content, chosen, (), place)  # before the replay, which also checks the digests
        with stage("replay"):
            checks = tuple(_with_tolerance(one, content) for one in chosen.replay(content, place.absolute()))
        different = [one for one in checks if one.state == "different"]
        done = Written({}, "the golden data differs in the client")
        if not different:
            _write_index(content, chosen, checks, place)
            folders.move(place, target, beside)
            done = Written(_sizes(target))
    return Result(_report(source, model, content, chosen, recorded, checks, licence, done, stuck, clock), None,
                  target if done.files else None)  # fmt: skip


def _described(source: Source, model: ir.Model, form: Form, target: Path, task: str, name: str | None) -> Content:
    """Describes the model before anything is written."""
    task_of(task)
    own = Path(source).stem if isinstance(source, str | Path) else model.graph.name or "model"
    file = pasted(source) if isinstance(source, str | Path) else "MODEL"
    called = file_name(name or own)
    if name is not None and called != name:
        raise problem(
            "bundle/name",
            f"{name!r} cannot be the name of a bundle",
            why="the name is also used for a folder, a package and a model in a server, which allow only letters, "
            "digits, _, - and .",
            fix=f"--name {called}",
        )
    described = signature(model)
    # The code has one field for a name, and an output that is listed again has the same values.
    described = replace(described, outputs=tuple({port.name: port for port in described.outputs}.values()))
    if not described.outputs:
        raise problem(
            "bundle/no-outputs",
            "the model has no outputs",
            where=own,
            why="without outputs, there are no results to record or to compare",
            fix=f"make a tensor an output: `onnxsmith expose {file} {_last_tensor(model)} -o with_output.onnx`",
        )
    return Content(
        name=plain(called),
        called=called,
        title=own,
        file=file,
        signature=described,
        model_file=form.model_file(called),
        data_files=(),
        model_bytes=0,
        opset=int(model.graph.opset_imports.get("", 0)),
        ranges={},
        task=task,
        parameters=parameters({}),
        licence="",
        made_with="",
        last_operators=_last_operators(model),
    )


def _folders(given: Mapping[str, str | Path]) -> dict[str, Path]:
    """Returns the folders of clients that the user named, as absolute paths.

    Raises:
        OnnxsmithError: `bundle/no-client` if there is no such folder.
    """
    found = {key: Path(path).absolute() for key, path in given.items()}
    for key, path in found.items():
        if not path.is_dir():
            option = "--onnxruntime-root" if key == "onnxruntime" else f"--{key.replace('_', '-')}"
            raise problem(
                "bundle/no-client",
                f"the folder of {option} does not exist" if not path.exists() else f"{option} is no folder",
                where=str(path),
                why="without the files in this folder, the bundle would not be tried in the client",
                fix=f"give the folder with {_INSIDE[key]}: {option} FOLDER; or leave {option} out",
            )
    return found


def _with_tolerance(check: BundleCheck, content: Content) -> BundleCheck:
    """Returns the check with the largest allowed difference, if it compared numbers with a tolerance."""
    return check if check.largest is None else replace(check, tolerance=max(content.allowed.values(), default=None))


def _last_tensor(model: ir.Model) -> str:
    """Returns the last tensor that a node of the graph gives, as text for a command."""
    names = [value.name for node in model.graph for value in node.outputs if value.name]
    return pasted(names[-1]) if names else "TENSOR"


def _last_operators(model: ir.Model) -> dict[str, str]:
    producers = {value.name or "": value.producer() for value in model.graph.outputs}
    return {name: node.op_type for name, node in producers.items() if node is not None and not node.domain}


def _with_model(source: Source, model: ir.Model, content: Content, place: OwnPath) -> Content:
    target = folders.OwnPath(place / content.model_file)
    data = model_copy.copy_model(source, model, target)
    total = target.stat().st_size + sum((target.parent / file).stat().st_size for file in data)
    return replace(content, data_files=data, model_bytes=total)


def _with_licence(model: ir.Model, content: Content, file: str | Path | None, place: OwnPath) -> Content:
    text = licence.given(file)
    if text is not None:
        (place / "LICENSE").write_bytes(text)
    (place / "NOTICE").write_bytes(licence.notice(model, text).encode())
    return replace(content, licence="none" if text is None else "given")


def _with_golden(
    model: ir.Model,
    content: Content,
    inputs: Inputs,
    runtime: str | None,
    seed: int,
    tolerance: float | None,
    place: OwnPath,
) -> tuple[Golden, Content]:
    """Makes the golden data by running the copied file, so that the recorded outputs belong to the delivered file."""
    name, file = runtime or runtimes.default(), place / content.model_file
    feeds = given.inputs(inputs, content.signature)
    recorded = recorded_data(
        model, file, content.signature, feeds, content.ranges, runtime=name, seed=seed, tolerance=tolerance
    )
    _refuse_declared(recorded, content)
    inside = wrong_intermediates(model)
    recorded = replace(recorded, notes=(*recorded.notes, inside)) if inside else recorded
    content = replace(content, cases=recorded.cases, made_with=f"onnxsmith {__version__} on {name}")
    golden_files.write(content.cases, content.signature, place)
    described = json.dumps(interface.schema(content), indent=1) + "\n"
    (place / "interface.json").write_bytes(described.encode())
    return recorded, content


def _refuse_declared(recorded: Golden, content: Content) -> None:
    """Raises if an output has another shape or dtype than the file declares: the generated code and interface.json
    repeat the declaration.

    Raises:
        OnnxsmithError: `bundle/declared`.
    """
    found = Declarations(content.signature)
    for case in recorded.cases:
        found.add(case.inputs, case.outputs)
    for one in found.wrong():
        _, shape = one.examples[0]
        raise problem(
            "bundle/declared",
            f"the output {one.name!r} is declared as {one.declared}, but the model computes {one.dtype}{list(shape)}",
            where=content.title,
            why="programs that load the bundle would expect another tensor than the model computes",
            fix=f"bundle a corrected file: `onnxsmith simplify {content.file} -o corrected.onnx` writes the "
            "declarations that the runs show",
        )


def _allowing(check: BundleCheck) -> str:
    """Returns the option that allows the measured difference, rounded up; empty if none was measured."""
    if check.largest is None or not 0 < check.largest < 1:
        return ""
    return (
        f"if a difference of this size is acceptable: --tolerance {rounded_up(check.largest)}; if not, find the cause: "
    )


def _write_index(content: Content, form: Form, checks: tuple[BundleCheck, ...], place: OwnPath) -> None:
    """Writes bundle.json: a description of the folder, the checks that ran, and the digest of each file. The file has
    no time and no path of this machine, so the same model gives the same bytes."""
    names = sorted(file.relative_to(place).as_posix() for file in place.rglob("*") if file.is_file())
    names = [name for name in names if name != INDEX]
    index = {
        "format": 1,
        "made_with": content.made_with,
        "form": form.id(),
        "task": content.task,
        "name": content.called,
        "model": content.model_file,
        "checks": [{"part": one.name, "result": one.state, "detail": one.detail} for one in checks],
        "files": {name: sha256(place / name) for name in names},
    }
    (place / INDEX).write_bytes((json.dumps(index, indent=1) + "\n").encode())


def _sizes(target: Path) -> dict[str, int]:
    files = sorted(file for file in target.rglob("*") if file.is_file())
    return {str(file): file.stat().st_size for file in files}


def _renamed(content: Content) -> list[str]:
    """Returns the inputs and outputs whose names differ from the names in the model."""
    said = [] if content.called == content.title else [f"the bundle of {content.title!r} is called {content.called!r}"]
    other = [port for port in (*content.inputs, *content.outputs) if port.identifier != port.name]
    pairs = first_few([f"{port.name!r} is {port.identifier}" for port in other], _SHOWN)
    return [*said, f"in generated code, {pairs}"] if pairs else said


def _report(
    source: Source,
    model: ir.Model,
    content: Content,
    form: Form,
    recorded: Golden,
    checks: tuple[BundleCheck, ...],
    file: str | Path | None,
    done: Written,
    stuck: tuple[Problem, ...],
    clock: Clock,
) -> Report:
    shown = str(source) if isinstance(source, str | Path) else "the given model"
    right = licence.clause(model, file)
    different = [one for one in checks if one.state == "different"]
    notes = (
        *recorded.notes,
        *form.notes(content),
        *_renamed(content),
    )
    part = Bundle(
        model=shown,
        form=f"{form.id()}, for {form.client}",
        task=content.task,
        golden=tuple(case.label for case in content.cases),
        checks=checks,
        licence=right,
        notes=notes,
    )
    gaps = (
        checks_said(checks)
        + [f"variant {one.name}: NOT SURE: {one.unsure}" for one in content.variants if one.unsure]
        + list(recorded.notes)
        + [one.what for one in stuck]
        + ([] if file is not None else ["no licence given"])
    )
    return Report(
        command="bundle",
        verdict=Verdict.DIFFERENT if different else Verdict.DONE,
        headline=f"{shown} → {form.id()} bundle: {'; '.join(gaps)}" + ("; NOTHING WRITTEN" if different else ""),
        parts=(part, done, Timing(clock.passed())),
        problems=(
            *stuck,
            *(
                Problem(
                    "bundle/different",
                    f"the client {one.name} computes other results than the model on this machine",
                    where=one.detail,
                    why="the client computes differently from onnxruntime on this machine, or reads the data "
                    "differently",
                    fix=_allowing(one) + "`onnxsmith explain bundle/different` lists the usual causes",
                )
                for one in different
            ),
        ),
    )


def check_target(target: Path) -> None:
    """Raises if the folder cannot be made at `target`.

    Raises:
        OnnxsmithError: `save/no-folder`, `bundle/folder`.
    """
    parent = target.absolute().parent
    if not target.name:
        raise problem(
            "bundle/folder", "the output path does not name a new folder", where=str(target), fix=f"-o {_free(target)}"
        )
    refuse_missing(parent)


def _free(target: Path) -> str:
    """Returns a path beside the target at which nothing exists, as text for a command."""
    name = target.name or "bundle"
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return pasted(next(path for one in names if not os.path.lexists(path := target.parent / one)))


def refuse_taken(target: Path, index: str, *, force: bool) -> None:
    """Raises if a new bundle would overwrite anything but an older bundle. An older bundle is replaced if its files are
    unchanged, or with `force`.

    Raises:
        OnnxsmithError: `bundle/folder`, `bundle/changed`.
    """
    if target.is_symlink() or target.is_file():
        raise problem(
            "bundle/folder",
            "the output path is a link or a file, not a folder",
            where=str(target),
            why="a bundle needs its own folder",
            fix=f"give the path of a new folder: -o {_free(target)}",
        )
    if not target.is_dir() or not any(target.iterdir()):
        return
    listed = _listed(target / index)
    if listed is None:
        raise problem(
            "bundle/folder",
            "the folder is not empty, but it is not a bundle",
            where=str(target),
            why=f"the folder has no {index}, so onnxsmith did not write its files and does not remove them, not "
            "even with --force",
            fix=f"give the path of a new folder: -o {_free(target)}",
        )
    here = {file.relative_to(target).as_posix() for file in target.rglob("*") if not file.is_dir()}
    here = {name for name in here if "__pycache__/" not in f"/{name}"}
    changed = {name for name, digest in listed.items() if name in here and sha256(target / name) != digest}
    touched = sorted((here - set(listed) - {index}) | changed)
    if touched and not force:
        raise problem(
            "bundle/changed",
            f"files in the existing bundle were added or changed after it was written: {', '.join(touched[:5])}",
            where=str(target),
            why="they would be lost",
            fix=f"give another folder: -o {_free(target)}; or replace the whole folder: --force",
        )


def _listed(index: Path) -> dict[str, str] | None:
    """Returns the digests in an index by the file's path in the bundle; None if the file is not the index of a
    bundle."""
    try:
        held = user_files.parse_json(user_files.read_utf8(index))
        files = held["files"]
        return dict(files) if held["format"] == 1 and "form" in held else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
