"""Applies fixes until the targets take a model, compares the result with the original, and writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Part
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.parts.written_files import Written, written
from onnxsmith.base.settings import Save, Verify
from onnxsmith.base.words import pasted
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.deployment.checking.fix_search import UNKNOWN, Fixed, Search, fixed, taken
from onnxsmith.deployment.checking.fixes.whole_model import BodyNames, NodeNames
from onnxsmith.deployment.checking.profile_prediction import TableJudge
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import as_read, staged
from onnxsmith.graph.shapes.dims import symbols
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes._lenient import checked
from onnxsmith.targets.judges.base import Judge, Target
from onnxsmith.targets.profiles.profile_format import Profile
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.intermediate_declarations import correct_intermediates
from onnxsmith.verification.output_declarations import settled, with_clauses
from onnxsmith.verification.sessions import verify_models


@dataclass(frozen=True)
class Change:
    """Holds the fixed model (None if there is none), and the content for the report."""

    headline: str
    parts: tuple[Part, ...] = ()
    model: ir.Model | None = None
    path: Path | None = None


@dataclass(frozen=True)
class _Step:
    """Holds the result for one target: a form of the model that the target takes, or the reason why there is none.
    `at_sizes` is True if sizes were fixed in this form."""

    fixed: Fixed | None
    why_not: str = ""
    note: str = ""
    at_sizes: bool = False


def applied(
    targets: Mapping[str, Target | Profile], subject: Subject, output: str | Path | None, verify: Verify, save: Save
) -> Change:
    """Fixes the model for one target after another."""
    now, original, steps, notes = subject, subject, [], []
    for name, target in targets.items():
        with TableJudge.judging(target) if isinstance(target, Profile) else target.judging() as judge:
            step = _fixed(name, judge, now, original, verify)
        if step.fixed is None:
            return Change(step.why_not)
        steps += [(name, one) for one in step.fixed.steps]
        notes += [step.note] if step.note else []
        if step.at_sizes:
            assert original.static is not None
            original = original.static
        now = now.with_model(step.fixed.model)
    edits = Edits(tuple(steps))
    also = "".join(f"; {note}" for note in notes)
    if not steps:
        return Change(f"nothing to fix{also}")
    inside = correct_intermediates(now.model)
    if output is None:
        part = verify_models(_loadable(original.model), now.model, verify, given=original.given)
        part = with_clauses(settled(part, now.model), inside)
        said = f"fixed{also}{_clauses(part)}"
        return Change(said, (edits, part, Written({}, "no output was requested")), now.model)
    with staged(output) as stage:
        stage.write(now.model, external_data=as_read(subject.model, save.external_data))
        checked(now.model, where="the fixed model", file=stage.path)
        plain = _loadable(original.model)
        whole = original.source if plain is original.model and original.source is not None else plain
        part = verify_models(whole, load(stage.path), verify, given=original.given)
        if not part.equal and not (part.unsure and save.write_unsure):
            why = "the fixed model differs from the original" if part.differs else "; ".join(part.unsure)
            return Change(f"the fixed model was not written: {why}", (edits, part, Written({}, why)))
        part = with_clauses(settled(part, now.model), inside)
        if part.misdeclared:
            stage.write(now.model, external_data=as_read(subject.model, save.external_data))
            checked(now.model, where="the fixed model", file=stage.path)
        files = written(stage.commit())
    path = Path(next(iter(files.files)))
    return Change(f"fixed in {path}{also}{_clauses(part)}", (edits, part, files), load(path), path)


def _clauses(part: Verification) -> str:
    """Returns the end of the headline on declarations that were wrong in the fixed model."""
    return "".join(f"; {clause}" for clause in part.declared)


def _fixed(name: str, judge: Judge, now: Subject, original: Subject, verify: Verify) -> _Step:
    """Returns the fixes for one target; no fixes if the target takes the model already."""

    def good(model: ir.Model) -> str:
        return _wrong(original, model, verify)

    stops, only_sized = taken(judge, now.model, now)
    if stops is None and only_sized is None:
        return _Step(Fixed(now.model, ()))
    search = Search()
    found = fixed(judge, now, {UNKNOWN}, good, search)
    if found is not None:
        return _Step(found, note=f"{name} accepts the model only with fixed sizes" if found.symbols else "")
    if stops is None:
        return _Step(
            Fixed(now.model, ()),
            note=f"{name} accepts the model only with fixed sizes, and no rewrite was found for other sizes",
        )
    static = now.static
    if static is not None:
        at_sizes = _at_fixed_sizes(name, judge, now, static, verify, search)
        if at_sizes is not None:
            return at_sizes
    if search.rejected:
        return _Step(
            None, f"nothing was written: {name} would accept the model with this rewrite, {search.rejected[0]}"
        )
    return _Step(None, f"no rewrite was found with which {name} accepts the model")


def _at_fixed_sizes(
    name: str, judge: Judge, now: Subject, static: Subject, verify: Verify, search: Search
) -> _Step | None:
    """Returns the model with fixed sizes, if the target takes it, perhaps after other fixes. If the user did not give
    the sizes, the model is not written to a file, because it would be useless at other sizes."""

    def good(model: ir.Model) -> str:
        return _wrong(static, model, verify)

    stops, _ = taken(judge, static.model, static)
    found = Fixed(static.model, ()) if stops is None else fixed(judge, static, {UNKNOWN}, good, search)
    if found is None:
        return None
    wanted = sorted(symbols(signature(now.model)))
    sizes = of_feed(signature(now.model), static.feeds or {})
    lacking = [one for one in wanted if one in sizes and not isinstance(now.sizes.get(one), int)]
    if lacking and not now.given:
        options = " ".join(f"--dim {pasted(one)}={sizes[one]}" for one in lacking)
        return _Step(
            None,
            f"nothing was written: {name} accepts the model only with fixed sizes; give these sizes, for example "
            f"{options}",
        )
    said = f"sizes fixed: {', '.join(f'{one}={size}' for one, size in sizes.items()) or 'those of the input'}"
    made = replace(found, steps=(said, *found.steps))
    return _Step(made, at_sizes=True)


def _wrong(original: Subject, model: ir.Model, verify: Verify) -> str:
    """Returns why the model must not be written; "" if the model agrees with the original."""
    try:
        found = verify_models(_loadable(original.model), model, verify, given=original.given)
    except OnnxsmithError as error:
        return f"but the result could not be compared with the original: {error.problem.what}"
    worst = next((f"{one.name}: {one.reason}" for one in found.outputs if not one.equal), "")
    return f"but the result differs from the original, {worst}" if found.differs else ""


def _loadable(model: ir.Model) -> ir.Model:
    """Returns the model with unique node names, and with names of their own in bodies. onnxruntime refuses a file with
    other names, and names do not change results."""
    for fix in (NodeNames(), BodyNames()):
        model = next((made for _, made in fix.tries(model, ())), model)
    return model
