"""Defines `merge`, which joins two models, and verifies each of them inside the merged model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.base.report.parts.verification import Power, Verification, nothing_verified
from onnxsmith.base.report.parts.written_files import Timing, Written, written
from onnxsmith.base.result import Result
from onnxsmith.base.settings import Save, Verify, verifying
from onnxsmith.base.words import pasted, several
from onnxsmith.editor import joint_ports
from onnxsmith.editor.whole_runs import failing_sizes
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.files.save import staged
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.structure import versions
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.graph.surgery.graph_cuts import cut
from onnxsmith.graph.surgery.joining import equal_functions, joined
from onnxsmith.graph.surgery.names import fix_symbols, prefix_names, rename_ports, separate_outputs, take_over_sizes
from onnxsmith.verification import free_values
from onnxsmith.verification.inputs.size_limits import refuse_unknown
from onnxsmith.verification.intermediate_declarations import correct_intermediates
from onnxsmith.verification.observed_outputs import declared_as_run
from onnxsmith.verification.output_declarations import with_clauses
from onnxsmith.verification.sessions import verify_models
from onnxsmith.verification.verification_verdict import ending, problems, verdict


@identifies("first", "second")
def merge(
    first: Source,
    second: Source,
    output: str | Path | None = None,
    *,
    wires: Mapping[str, str] | None = None,
    keep: bool = False,
    prefixes: tuple[str, str] = ("", ""),
    verify: Verify | bool = True,
    save: Save = Save(),
) -> Result:
    """Joins two models. `wires` maps outputs of the first model to the inputs of the second that read them. Without
    `wires`, outputs and inputs of the same name are joined. If there are none, the only output of the first model is
    joined to the only input of the second. With an empty `wires` no tensors are joined: the models stand side by side.

    The merged model has the inputs of the first model, then the unjoined inputs of the second. Inputs of the same name
    become one input. The merged model's outputs are the outputs of the first model that nothing reads (all its outputs
    with `keep`), then the outputs of the second. Each model is compared with its part of the merged model. If the
    opsets differ, the higher one is used.

    `prefixes` go before the names of tensors, nodes, inputs and outputs: one prefix for the first model, one for the
    second. `wires` has the names without prefixes. Inputs whose names differ only by the prefix stay two inputs.

    Raises:
        OnnxsmithError: `model/…` for a source that cannot be read, `merge/…` if the two do not fit.
    """
    settings = verifying(verify)
    with Clock() as clock:
        a, b = load(first), load(second)
        refuse_loss([output], [first, second])
        notes: list[str] = []
        one, two = _at_one_opset(a, b, notes)
        _refuse_other_functions(one, two, _named(second, "second"))
        joints = joint_ports.joints(one, two, wires, notes)
        shared = joint_ports.shared_inputs(one, two, joints, prefixes)
        fixed = joint_ports.fix_dims(one, two, joints, shared, notes)
        joint_ports.join_dims(one, two, joints, shared, notes)
        for model, prefix in zip((one, two), prefixes, strict=True):
            prefix_names(model, prefix)
        joints = {prefixes[0] + source: prefixes[1] + port for source, port in joints.items()}
        own = [value.name or "" for value in two.graph.inputs if value.name not in joints.values()]
        own = [name for name in own if name not in {value.name for value in one.graph.inputs}]
        _make_room(one, own, notes)
        others: list[tuple[ir.Value, str]] = []
        whole = joined(one, two, {port: source for source, port in joints.items()}, others)
        renamed = _renamed_inputs(own, whole, notes)
        notes += [f"both models read the same input {prefixes[0]}{name}" for name in sorted(shared)]
        names = [value.name or "" for value in whole.graph.outputs]
        count = len(one.graph.outputs)
        if not keep:
            for value in list(whole.graph.outputs)[:count]:
                if value.name in joints:
                    whole.graph.outputs.remove(value)
        moved = _keep_names(whole, [value.name or "" for value in two.graph.outputs], notes)
        names = [moved.get(name, name) for name in names[:count]] + [value.name or "" for value in whole.graph.outputs][
            len(whole.graph.outputs) - len(two.graph.outputs) :
        ]
        notes += _other_names(others, two) + _lost_metadata(one, two)
        inner = {moved.get(source, source): port for source, port in joints.items()}
        take_over_sizes(whole, one, two)
        if settings is not None:
            sides = [signature(model) for model in (a, b, whole)]
            refuse_unknown(settings.sizes, *sides)
            free_values.read(settings.free, [port.name for side in sides for port in side.outputs])
        versions.drop_unused_imports(whole)
        inside = correct_intermediates(whole)
        with stage("check"):
            check(whole, where="the merged model")

        def verified(model: ir.Model) -> Verification:
            if settings is None:
                return nothing_verified(
                    "the models", "the same models inside the merged model", "--no-verify was given"
                )
            # The originals get the sizes that the merge fixed, so that they take the same inputs.
            sides = (cloned(a) if fixed[0] else a, cloned(b) if fixed[1] else b)
            for side, sizes in zip(sides, fixed, strict=True):
                fix_symbols(side, sizes)
            parts = _verified(sides, prefixes, model, inner, names, count, settings, renamed)
            part = _combined(*parts)
            return replace(part, untried=(*part.untried, *_sizes_that_fail(model, settings))) if part.equal else part

        if output is None:
            part, files = verified(whole), Written({}, "no output was requested")
            part = with_clauses(part, inside, *declared_as_run(whole, settings))
        else:
            with staged(output) as target:
                target.write(whole, external_data=save.external_data)
                check(whole, where="the merged model", file=target.path)
                part = verified(load(target.path))
                good = settings is None or part.equal or (bool(part.unsure) and save.write_unsure)
                wrong = declared_as_run(whole, settings) if good else ()
                if wrong:
                    target.write(whole, external_data=save.external_data)
                    check(whole, where="the merged model", file=target.path)
                part = with_clauses(part, inside, *wrong)
                files = (
                    written(target.commit())
                    if good
                    else Written({}, "the results of a model differ inside the merged model")
                )
    report = Report(
        command="merge",
        verdict=verdict(part, asked=settings is not None),
        headline=f"{_named(first, 'first')} + {_named(second, 'second')}: "
        f"{several(len(joints), 'joint') if joints else 'side by side'}, {ending(part)}",
        parts=(
            Edits(_steps(joints), notes=tuple(notes)),
            part,
            files,
            Timing(clock.passed()),
        ),
        problems=problems(part, asked=settings is not None),
    )
    path = Path(next(iter(files.files))) if files.files else None
    return Result(report, whole if report.verdict.exit_code == 0 else None, path)


def _steps(joints: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(("join", f"{name} → {port}") for name, port in joints.items()) or (("join", "nothing"),)


def _named(source: Source, which: str) -> str:
    return str(source) if isinstance(source, str | Path) else f"the {which} model"


def _at_one_opset(a: ir.Model, b: ir.Model, notes: list[str]) -> tuple[ir.Model, ir.Model]:
    """Returns both models at the higher of their opsets. A model that changes is a copy.

    Raises:
        OnnxsmithError: `merge/versions` if another domain has two versions, or the conversion fails.
    """
    for domain in {*a.opset_imports, *b.opset_imports} - {"", "ai.onnx"}:
        versions = sorted({model.opset_imports[domain] for model in (a, b) if domain in model.opset_imports})
        if len(versions) > 1:
            raise problem(
                "merge/versions",
                f"the models use two versions of the domain {domain}: {', '.join(map(str, versions))}",
                where=domain,
                why="one file has one version of each domain",
                fix="export both models with the same version",
            )
    newest = max(opset_conversion.of(a), opset_conversion.of(b))
    made = []
    for name, model in (("first", a), ("second", b)):
        try:
            made.append(cloned(opset_conversion.convert(model, newest)))
        except OnnxsmithError as error:
            raise problem(
                "merge/versions",
                f"the {name} model cannot be brought from opset {opset_conversion.of(model)} to {newest}",
                where=f"the {name} model",
                why=error.problem.why,
                fix="export both models at one opset",
            ) from error
        if opset_conversion.of(model) != newest:
            notes.append(f"the {name} model was converted from opset {opset_conversion.of(model)} to {newest}")
            notes += [f"{note} (in the {name} model)" for note in opset_conversion.inlined_functions(model, made[-1])]
    made[0].ir_version = max(a.ir_version, b.ir_version)
    return made[0], made[1]


def _refuse_other_functions(a: ir.Model, b: ir.Model, second: str) -> None:
    for identifier in [name for name in b.functions if name in a.functions]:
        one, two = a.functions.get(identifier), b.functions.get(identifier)
        if one is not None and two is not None and not equal_functions(one, two):
            name = f"{identifier[0]}::{identifier[1]}"
            file = pasted(second) if second != "the second model" else "SECOND"
            raise problem(
                "merge/functions",
                f"both models have a local function {name}, but the two functions differ",
                where=f"{name} of {second}",
                why="a file can have only one function of each name",
                fix=f"inline the function in one of the two files, and merge the result: `onnxsmith inline {file} "
                f"--function {pasted(name)} -o inlined.onnx`",
            )


def _keep_names(whole: ir.Model, wanted: list[str], notes: list[str]) -> dict[str, str]:
    """Gives the last outputs of the merged model their names in the second model. An intermediate tensor with such a
    name is renamed, and the renamed tensors are returned. Ports of the first model keep their names."""
    graph, names = whole.graph, Names(whole)
    holders = {value.name: value for node in graph for value in node.outputs}
    moved: dict[str, str] = {}
    for value, name in zip(list(graph.outputs)[len(graph.outputs) - len(wanted) :], wanted, strict=True):
        if value.name == name:
            continue
        holder = holders.get(name)
        if holder is None or holder.is_graph_output() or value.is_graph_input():
            notes.append(
                f"the output {name} of the second model is now called {value.name}, because the first model has an "
                f"input or output {name}"
            )
            continue
        holder.name = moved[name] = names.free(f"{name}_of_the_first")
        value.name = name
        notes.append(
            f"the tensor {name} of the first model is now called {holder.name}, because the second model has an "
            f"output {name}"
        )
    return moved


def _make_room(first: ir.Model, ports: list[str], notes: list[str]) -> None:
    """Renames intermediate tensors and weights of the first model that are called as an input of the second, which
    keeps its name in the merged model."""
    names, held = Names(first), {value.name: value for node in first.graph for value in node.outputs}
    held |= {value.name: value for value in first.graph.initializers.values()}
    for name in ports:
        value = held.get(name)
        if value is None or value.is_graph_output() or value.is_graph_input():
            continue
        free = names.free(f"{name}_of_the_first")
        if value.is_initializer():
            first.graph.initializers.pop(name)
            value.name = free
            first.graph.initializers[free] = value
        else:
            value.name = free
        notes.append(
            f"the tensor {name} of the first model is now called {free}, because the second model has an input {name}"
        )


def _other_names(renamed: Sequence[tuple[ir.Value, str]], second: ir.Model) -> list[str]:
    """Returns a note on the tensors of the second model that have another name in the merged model."""
    ports = {value.name for value in (*second.graph.inputs, *second.graph.outputs)}
    told = [f"{name} → {value.name}" for value, name in renamed if value.name != name and name not in ports]
    return (
        [f"renamed tensors of the second model, because the first model has the same names: {', '.join(told)}"]
        if told
        else []
    )


def _lost_metadata(first: ir.Model, second: ir.Model) -> list[str]:
    """Returns a note on metadata of the second model under a key of the first, which keeps its own."""
    mine, theirs = first.metadata_props, second.metadata_props
    lost = [f"{key} = {value!r}" for key, value in theirs.items() if key in mine and mine[key] != value]
    return (
        [
            (
                "metadata of the second model was left out where the first model has another value for the key: "
                f"{', '.join(lost)}"
            )
        ]
        if lost
        else []
    )


def _renamed_inputs(ports: list[str], whole: ir.Model, notes: list[str]) -> dict[str, str]:
    """Maps the inputs of the merged model to those of the second model with other names, which the first has taken.
    `ports` are the inputs of the second that are no inputs of the first."""
    new = [value.name or "" for value in whole.graph.inputs][len(whole.graph.inputs) - len(ports) :]
    found = {name: port for name, port in zip(new, ports, strict=True) if name != port}
    notes += [
        f"the input {port} of the second model is now called {name}, because the first model has a tensor {port}"
        for name, port in found.items()
    ]
    return found


def _sizes_that_fail(model: ir.Model, settings: Verify) -> tuple[str, ...]:
    """Returns a clause about the sizes at which the merged model fails. Its parts may run at sizes that do not fit
    together."""
    return tuple(
        f"the merged model fails at {name} = {', '.join(map(str, sizes))}"
        for name, sizes in failing_sizes(model, settings).items()
    )


def _verified(
    models: tuple[ir.Model, ir.Model],
    prefixes: tuple[str, str],
    whole: ir.Model,
    joints: Mapping[str, str],
    names: list[str],
    count: int,
    settings: Verify,
    renamed: Mapping[str, str],
) -> tuple[Verification, Verification]:
    """Compares each model with its part of the merged model. `renamed` maps inputs of the merged model to their names
    in the second."""
    first, second = map(cloned, models)
    part = "its part of the merged model"
    whole = cloned(whole)
    held = {value.name: value for node in whole.graph for value in node.outputs}
    held |= {value.name: value for value in (*whole.graph.initializers.values(), *whole.graph.inputs)}
    whole.graph.outputs.clear()
    whole.graph.outputs.extend(held[name] for name in names)
    names, *_ = map(separate_outputs, (whole, first, second))  # in a cut, a tensor is one output, and no input
    head = cut(whole, (), names[:count]).model
    ports = [(value.name or "").removeprefix(prefixes[0]) for value in head.graph.inputs]
    rename_ports(head, ports, [value.name or "" for value in first.graph.outputs])
    order = [value.name or "" for value in first.graph.inputs if value.name in ports]
    _sort_inputs(head, order)
    tail = cut(whole, list(joints), names[count:])
    old = {tail.inputs[source]: port for source, port in joints.items() if source in tail.inputs}
    names_in_whole = [value.name or "" for value in tail.model.graph.inputs]
    ports = [old.get(name, renamed.get(name, name)).removeprefix(prefixes[1]) for name in names_in_whole]
    rename_ports(tail.model, ports, [value.name or "" for value in second.graph.outputs])
    wanted = [value.name or "" for value in second.graph.inputs if value.name in ports]
    _sort_inputs(tail.model, wanted)
    return (
        verify_models(_used(first, order), head, settings, names=("the first model", part)),
        verify_models(_used(second, wanted), tail.model, settings, names=("the second model", part)),
    )


def _sort_inputs(model: ir.Model, names: list[str]) -> None:
    held = {value.name: value for value in model.graph.inputs}
    model.graph.inputs.clear()
    model.graph.inputs.extend(held[name] for name in dict.fromkeys((*names, *(name or "" for name in held))))


def _used(model: ir.Model, inputs: list[str]) -> ir.Model:
    """Removes the unread inputs, which the part of the model does not have, and returns the model."""
    for value in list(model.graph.inputs):
        if value.name not in inputs and not value.uses():
            model.graph.inputs.remove(value)
    return model


def _combined(one: Verification, two: Verification) -> Verification:
    """Returns the comparisons of both parts as one."""
    return replace(
        one,
        reference=f"{one.reference}; {two.reference}",
        candidate=f"{one.candidate}; {two.candidate}",
        equal=one.equal and two.equal,
        runs=(*one.runs, *two.runs),
        sizes={**(one.sizes or {}), **(two.sizes or {})},
        ranges={**one.ranges, **two.ranges},
        counts={**one.counts, **two.counts},
        refused=one.refused + two.refused,
        refused_sizes=(*one.refused_sizes, *two.refused_sizes),
        inside=one.inside + two.inside,
        power=_power(one.power, two.power),
        outputs=(*one.outputs, *two.outputs),
        notes=tuple(dict.fromkeys((*one.notes, *two.notes))),
        untried=tuple(dict.fromkeys((*one.untried, *two.untried))),
        unsure=() if one.differs or two.differs else (*one.unsure, *two.unsure),
    )


def _power(one: Power | None, two: Power | None) -> Power | None:
    """Adds up the planted faults of both parts. A part without weights has faults in its inputs."""
    if one is None or two is None:
        return one or two
    return Power(
        kind=one.kind if one.kind == two.kind else "weights and inputs",
        of=one.of + two.of,
        tried=one.tried + two.tried,
        seen=one.seen + two.seen,
        only_large=one.only_large + two.only_large,
        blind=one.blind + two.blind,
        inert=one.inert + two.inert,
        slight=one.slight + two.slight,
        idle=one.idle + two.idle,
        small=max(one.small, two.small),
        large=max(one.large, two.large),
    )
