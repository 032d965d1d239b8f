"""Defines `edit`, which changes a model step by step, verifies it, and writes it. After a failure the file stays as it
was.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import onnx_ir as ir

from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Report, Table
from onnxsmith.base.report.card import Card, to_html
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.base.report.parts.written_files import Timing, Written
from onnxsmith.base.report.parts.written_files import written as files_written
from onnxsmith.base.result import Result
from onnxsmith.base.rooms import own_name
from onnxsmith.base.settings import Save, Verify, verifying
from onnxsmith.base.words import first_few, pasted, several
from onnxsmith.editor import edit_verification, patch
from onnxsmith.editor.edit_verification import Start, Verified, verified
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.graph_cleanup import no_longer_read, read_names, remove, tidy
from onnxsmith.editor.handles import NodeHandle, TensorHandle
from onnxsmith.editor.node_selectors import is_match
from onnxsmith.editor.patch import Arrays, loaded, together
from onnxsmith.editor.size_conflicts import corrected
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph import model_identity
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.files.noted import noting
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.files.save import as_read, left_behind, staged
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.structure import captures, carried_fields, dim_ranges, versions, walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery.opset_conversion import with_rewritten
from onnxsmith.runtimes._lenient import checked, is_off
from onnxsmith.verification import free_values
from onnxsmith.verification.inputs import user_inputs as given
from onnxsmith.verification.inputs.user_inputs import Inputs
from onnxsmith.verification.intermediate_declarations import correct_intermediates
from onnxsmith.verification.output_declarations import settled
from onnxsmith.verification.verification_verdict import problems, verdict


class Edit:
    """Edits a model. Use the class as a context manager; see `edit`.

    The members for reading are `inputs`, `outputs`, `node(…)`, `nodes(…)`, `tensor(…)`, `between(…)`, and `model`,
    which is the `ir.Model` itself. For changes, each step that `onnxsmith edit` lists is a method:
    `m.rename(tensor="a", to="b")`. Selectors are names, names with `*`, tables such as `{"op": "Relu", "module":
    "layer1.*"}`, or the handles that the reading methods return.
    """

    def __init__(
        self,
        source: Source,
        output: str | Path | None,
        *,
        inputs: Inputs = (),
        verify: Verify | bool = True,
        save: Save = Save(),
        write_patch: str | Path | None = None,
        keep_unused: bool = False,
        command: str = "edit",
    ) -> None:
        self._file = Path(source) if isinstance(source, str | Path) else None
        self._where = str(source) if self._file is not None else "the given model"
        self._output = output if output is not None else self._file
        self._settings, self._save, self._patch = verifying(verify), save, write_patch
        self._keep_unused = keep_unused
        self._clock, self._command = Clock(), command
        self._identity = model_identity.read([source])
        with self._clock, stage("load"), no_collection():
            read = load(source)
            refuse_loss([self._output, write_patch], [source], in_place=self._file)
            original = self._file if self._file is not None and self._file.suffix == ".onnx" else read
            with walk.flat(read):
                self._doubts = checked(read, where=self._where, file=self._file)
                self._external = as_read(read, save.external_data)
                self._given = given.inputs(inputs, signature(read))
                self._start = Start.of(original, read, self._settings)
            self._check: Callable[..., tuple[Problem, ...]] = partial(checked) if is_off(self._doubts) else check
            self._wrong_inside = ""
            self._work = Work(cloned(read) if original is read else read)
            self._read_before = read_names(self._work.model)
            self._constants = frozenset(name for graph in walk.graphs(self._work.model) for name in graph.initializers)
        self._steps: list[tuple[str, str]] = []
        self._tables: list[dict[str, Any]] = []
        self._arrays = Arrays(Path(write_patch).stem if write_patch is not None else "")
        self._applied: list[Step] = []
        self.result: Result | None = None
        """Holds the report and the model, after the block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None:
            self.finish()
            assert self.result is not None
            if not self.result.ok:
                raise OnnxsmithError(self.result.report.problems[-1])

    @property
    def model(self) -> ir.Model:
        """Returns the model as it is now. A change made directly on the model, not by a step, must keep every number:
        the model's outputs are compared."""
        return self._work.model

    @property
    def _shaped(self) -> Work:
        """Returns the state with inferred types and shapes."""
        self._work.infer()
        return self._work

    @property
    def inputs(self) -> tuple[TensorHandle, ...]:
        """Returns the graph inputs."""
        return tuple(TensorHandle(value) for value in self.model.graph.inputs)

    @property
    def outputs(self) -> tuple[TensorHandle, ...]:
        """Returns the graph outputs."""
        return tuple(TensorHandle(value) for value in self.model.graph.outputs)

    def node(self, selector: Any) -> NodeHandle:
        """Returns the one node that a selector means.

        Raises:
            OnnxsmithError: `edit/no-match`, `edit/many-matches`.
        """
        return NodeHandle(self._shaped.find.node(selector))

    def nodes(self, name: Any = None, **conditions: Any) -> list[NodeHandle]:
        """Returns the nodes that meet all conditions, or all nodes without conditions: `m.nodes(op="Conv",
        module="layer1.*")`."""
        table = {**({"name": name} if name is not None else {}), **conditions}
        return [NodeHandle(node) for node in walk.all_nodes(self._shaped.model) if is_match(node, table)]

    def tensor(self, selector: Any) -> TensorHandle:
        """Returns the one tensor that a selector means.

        Raises:
            OnnxsmithError: `edit/no-match`, `edit/many-matches`.
        """
        return TensorHandle(self._shaped.find.tensor(selector))

    def between(self, start: Any, end: Any) -> list[NodeHandle]:
        """Returns the nodes on a path from one tensor to another, in graph order."""
        first, last = self._shaped.find.tensor(start), self._work.find.tensor(end)
        graph = last.graph or self.model.graph
        after, before = {first}, {last}
        nodes = list(graph)
        for node in nodes:
            if any(value in after for value in captures.reads(node)):
                after.update(node.outputs)
        for node in reversed(nodes):
            if any(value in before for value in node.outputs):
                before.update(value for value in captures.reads(node) if value is not first)
        return [
            NodeHandle(node)
            for node in nodes
            if any(v in before for v in node.outputs) and any(v in after for v in node.outputs)
        ]

    def apply(self, steps: str | Path | Iterable[Step]) -> None:
        """Applies steps, or the steps of a patch file."""
        name = str(steps) if isinstance(steps, str | Path) else ""
        for step in patch.read(steps) if isinstance(steps, str | Path) else steps:
            self._do(step, name)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_") or name not in patch.kinds():
            raise AttributeError(f"{type(self).__name__!r} has no step or attribute {name!r}")

        def step(*given: Any, **fields: Any) -> None:
            read = {key: loaded(value) for key, value in fields.items()}
            where = f"step {len(self._steps) + 1}"
            self._do(patch.make(name, tuple(map(loaded, given)), read, where))

        step.__name__, step.__doc__ = name, patch.kinds()[name].__doc__
        return step

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *patch.kinds()})

    def _do(self, step: Step, file: str = "") -> None:
        name = own_name(type(step), Step)
        self._work.step = f"step {len(self._steps) + 1} ({name})"
        if self._patch is not None:
            self._tables.append(patch.table(name, step, self._arrays))
        try:
            with self._clock, stage("edit"):
                done = step.apply(self._work)
        except OnnxsmithError as error:
            place = f"{file}, {self._work.step}" if file else self._work.step
            found = error.problem
            where = f"{place}: {found.where}" if found.where else place
            # The cause, not the error: a traceback would show the problem twice.
            raise OnnxsmithError(
                dataclasses.replace(
                    found,
                    where=where,
                    fix=self._with_file(in_words_of_steps(found)),
                    tried=tuple(map(self._with_file, found.tried)),
                )
            ) from error.__cause__
        self._steps.append((name.replace("_", "-"), done))
        self._applied.append(step)

    def _with_file(self, fix: str) -> str:
        """Returns the fix with the model's file in its commands; a step does not know the file."""
        return fix if self._file is None else fix.replace(" MODEL", f" {pasted(self._file)}")

    def finish(self) -> None:
        """Checks, verifies and writes the model; `result` then has the report. Leaving the block calls this method."""
        if not self._steps:
            raise problem("edit/nothing", "the edit has no steps", where=self._where, fix=self._first_step())
        with self._written_patch() as place:
            with self._clock, no_collection():
                self._work.notes += self._unused()
                gone = tidy(self._work.model, keep=self._keep_unused)
                gone = [name for name in gone if name in self._constants]  # a step may have made others
                told = f"removed {several(len(gone), 'constant')} that nothing reads: {first_few(gone, 3)}"
                self._work.notes += [told] if gone else []
                new = {old: name for name, old in self._work.outputs.items() if old}
                free_values.record(self._work.model, free_values.of_model(self._work.model).renamed(new))
                if self._settings is not None:
                    dim_ranges.keep(self._work.model, given.sizes(self._settings.sizes))
                versions.drop_unused_imports(self._work.model)
                if self._work.finish() or self._doubts:
                    self._wrong_inside = correct_intermediates(self._work.model)
                with noting() as notes, walk.flat(self._work.model):
                    notes.left_out.update(dict.fromkeys(carried_fields.left_out(self._work.model)))
                    found, files = self._delivered(self._work.model)
            report = self._report(found, files)
            path = Path(next(iter(files.files))) if files.files else None
            good = report.verdict.exit_code == 0
            report = model_identity.identified(report, self._identity, notes, made=good)
            self.result = Result(report, self._work.model if good or path else None, path)
            if good:
                place()

    def _first_step(self) -> str:
        """Returns the advice to do something in the edit, with a step as an example."""
        names = [value.name or "" for value in self._work.model.graph.inputs]
        example = f', such as m.rename("{names[0]}", "image")' if names else ""
        return f"add a step{example}; `onnxsmith edit` lists the steps"

    def _unused(self) -> list[str]:
        """Removes the nodes that the steps left without a reader, or keeps them; returns a note that names them."""
        unused = no_longer_read(self._work.model, self._read_before, self._work.original)
        if not unused:
            return []
        count = several(len(unused), "node")
        labels = first_few([f"{walk.op_name(node)} {walk.node_label(node)}" for node in unused], 3)
        if self._keep_unused:
            return [f"no node reads the results of {count} any more: {labels}"]
        remove(unused)
        return [f"removed {count} whose results no node reads any more: {labels}"]

    def _written_patch(self) -> AbstractContextManager[Callable[[], None]]:
        """Writes the patch file to a temporary place. Calling the context's value moves the file into place."""
        if self._patch is None:
            return nullcontext(lambda: None)
        files = self._arrays.files
        if files:
            self._work.notes.append(f"the patch file needs {', '.join(files)} in the same folder")
        return together(Path(self._patch), patch.text(self._tables), files)

    def _report(self, found: Verified, files: Written) -> Report:
        part, asked = found.part, self._settings is not None and found.compared
        extra = [f"changed on purpose: {', '.join(found.changed)}"] if found.changed else []
        extra += [self._wrong_inside] if self._wrong_inside else []
        said = found.said(asked=self._settings is not None)
        return Report(
            command=self._command,
            verdict=verdict(part, asked=asked),
            headline="; ".join([f"{self._where}: {several(len(self._steps), 'edit')}, {said}", *extra]),
            parts=(
                Edits(tuple(self._steps), found.changed, found.new, tuple(self._work.notes)),
                part,
                files,
                Timing(dict(self._clock.seconds)),
            ),
            problems=(
                *self._doubts,
                *edit_verification.name_doubts(self._work.model, str(self._output or self._where)),
                *(
                    with_rewritten(meant(one, self._applied), self._work.rewritten)
                    for one in problems(part, asked=asked)
                ),
            ),
        )

    def _delivered(self, model: ir.Model) -> tuple[Verified, Written]:
        def compared(target: Path | ir.Model) -> Verified:
            return verified(self._work, self._start, target, self._settings, self._given)

        if self._output is None:
            self._check(model, where="the edited model")
            found = compared(model)
            return dataclasses.replace(found, part=settled(found.part, model)), Written({}, "no output was requested")
        with staged(self._output) as target:
            with stage("save"):
                target.write(model, external_data=self._external)
                self._refuse_invalid(model, target.path)
            found = compared(target.path)
            unsure = bool(found.part.unsure) and self._save.write_unsure
            if self._settings is not None and found.compared and not found.part.equal and not unsure:
                hint = (
                    "; to write the model anyway, add --write-unsure (in Python, Save(write_unsure=True))"
                    if found.part.unsure
                    else ""
                )
                return found, Written(
                    {}, f"for some outputs that should stay the same, the verification did not show that they do{hint}"
                )
            found = dataclasses.replace(found, part=settled(found.part, model))
            with stage("save"):
                if found.part.misdeclared:
                    target.write(model, external_data=self._external)
                    self._refuse_invalid(model, target.path)
                left = left_behind(target.target)
                self._work.notes += [f"{file.name} is no longer used by {target.target.name}" for file in left]
                return found, files_written(target.commit())

    def _refuse_invalid(self, model: ir.Model, file: Path) -> None:
        """Raises if the edited model is invalid, or has a shape conflict that the original lacks."""
        try:
            doubts = self._check(model, where="the edited model", file=file)
        except OnnxsmithError as error:
            fix = corrected(
                model, "correct the step that made the node or tensor named in the reason; nothing was written"
            )
            raise OnnxsmithError(dataclasses.replace(error.problem, fix=fix)) from error
        known = {doubt.id for doubt in self._doubts}
        new = [doubt for doubt in doubts if doubt.id not in known]
        if new:
            raise OnnxsmithError(dataclasses.replace(new[0], fix=corrected(model, _CONFLICT)))

    def __repr__(self) -> str:
        return f"<edit of {self._where}: {several(walk.count_nodes(self.model), 'node')}>"

    def _repr_html_(self) -> str:
        """Returns a table of the nodes for a notebook."""
        rows = tuple(
            (walk.node_label(node), walk.op_name(node), *(", ".join(map(str, ends)) for ends in _ends(node)))
            for node in walk.nodes(self.model.graph)
        )
        nodes = Table(("node", "operator", "reads", "gives"), rows)
        return to_html(Card(f"edit of {self._where}", several(len(rows), "node"), parts=(("Nodes", (nodes,)),)))


def _ends(node: ir.Node) -> tuple[Iterable[object], Iterable[object]]:
    handle = NodeHandle(node)
    return handle.inputs, handle.outputs


_CONFLICT = (
    "correct the step that changed an operand of this node, because the new shape or type does not fit: connect an "
    "operand that fits with the step wire, or insert a node that converts the operand, or leave out the step; "
    "nothing was written"
)


def edit(
    source: Source,
    output: str | Path | None = None,
    *,
    inputs: Inputs = (),
    verify: Verify | bool = True,
    save: Save = Save(),
    record: str | Path | None = None,
    keep_unused: bool = False,
    write_patch: str | Path | None = None,
) -> Edit:
    """Edits a model, all or nothing.

    `with onnxsmith.edit("m.onnx") as m:` gives the model. Leaving the block checks the model, compares it with the
    original except for values that a step changes on purpose, and writes it to `output`, by default over the source.
    After an exception in the block, or a difference, the file stays as it was. `m.result` has the report. A source that
    is no file is not changed: `m.result.model` is the edited model. `write_patch` names a patch file for the steps,
    which can be applied again; `record` is the old name of this parameter, and deprecated. Nodes whose results nothing
    reads after the steps are removed; `keep_unused` keeps them.

    Raises:
        OnnxsmithError: `model/…` for a source that cannot be read; in the block `edit/…`; at its end `model/invalid`,
            `model/shape-conflict`, `edit/does-not-run`, `edit/original-does-not-run`, `verify/different`,
            `verify/cannot-tell`, `save/…`.
    """
    if record is not None:
        warnings.warn("edit(record=…) is now edit(write_patch=…)", DeprecationWarning, stacklevel=2)
    return Edit(
        source,
        output,
        inputs=inputs,
        verify=verify,
        save=save,
        write_patch=write_patch if write_patch is not None else record,
        keep_unused=keep_unused,
    )


def edited(source: Source, output: str | Path | None, steps: Callable[[Edit], None], **settings: Any) -> Result:
    """Edits a model with the function `steps`, and returns the result even if the edited model differs."""
    work = Edit(source, output, **settings)
    steps(work)
    work.finish()
    assert work.result is not None
    return work.result


def in_words_of_steps(found: Problem) -> str:
    """Returns the fix of a problem. For a new operator the fix names `build`'s methods, which an edit does not have."""
    if "g." not in found.fix or not found.id.startswith("build/"):
        return found.fix
    if found.id == "build/constant":
        return "give a value of that dtype, for example an array"
    if found.id == "build/shape":
        return "give operands whose shapes fit"
    return (
        'give tensors of one dtype; to convert a tensor, insert a Cast: do = "insert", op = "Cast", attributes = { '
        'to = "float32" }'
    )


def meant(found: Problem, steps: Iterable[Step]) -> Problem:
    """Returns the problem. If an output differs, its fix tells how a step declares that it changes numbers."""
    if found.id != "verify/different":
        return found
    fixes = []
    if any(getattr(step, "changes", None) is False for step in steps):
        fixes.append(
            "declare that the replacement changes results: `--changes`, in a patch `changes = true`, in Python "
            "`changes=True`"
        )
    if any(getattr(step, "same", None) is True for step in steps):
        fixes.append("leave out `same` in a step that is meant to change results")
    if not fixes:
        return found
    return dataclasses.replace(found, fix="correct the step, or " + ", or ".join(fixes))
