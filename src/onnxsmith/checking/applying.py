"""Applies fixes until the targets take a model, compares the result with the original, and writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import onnx_ir as ir

from onnxsmith.checking.fixing import UNKNOWN, Fixed, fixed
from onnxsmith.checking.subject import Subject
from onnxsmith.comparison.sessions import verify_models
from onnxsmith.model.files.check import check
from onnxsmith.model.files.load import load
from onnxsmith.model.files.save import as_read, staged
from onnxsmith.problem import OnnxsmithError
from onnxsmith.report.base import Part
from onnxsmith.report.parts.edits import Edits
from onnxsmith.report.parts.verification import Verification
from onnxsmith.report.parts.written import Written, written
from onnxsmith.settings import Save, Verify
from onnxsmith.targets.base import Target


@dataclass(frozen=True)
class Change:
    """The fixed model, None if there is none, and what the report says of it."""

    headline: str
    parts: tuple[Part, ...] = ()
    model: ir.Model | None = None
    path: Path | None = None


def applied(
    targets: Mapping[str, Target], subject: Subject, output: str | Path | None, verify: Verify, save: Save
) -> Change:
    """Fixes the model for one target after the other."""
    now, steps = subject, []
    for name, target in targets.items():
        found = _fixed(target, now, subject, verify)
        if found is None:
            return Change(f"no rewrite was found with which {name} takes it")
        steps += [(name, step) for step in found.steps]
        now = subject.with_model(found.model)
    edits = Edits(tuple(steps))
    if not steps:
        return Change("nothing to fix")
    if output is None:
        part = verify_models(subject.model, now.model, verify, given=subject.given)
        return Change("fixed", (edits, part, Written({}, "no output was requested")), now.model)
    with staged(output) as stage:
        stage.write(now.model, external_data=as_read(subject.model, save.external_data))
        check(now.model, where="the fixed model", file=stage.path)
        part = verify_models(subject.source or subject.model, load(stage.path), verify, given=subject.given)
        if not part.equal and not (part.unsure and save.write_unsure):
            why = "the fixed model differs from the original" if part.differs else "; ".join(part.unsure)
            return Change("the fixed model was not written", (edits, part, Written({}, why)))
        files = written(stage.commit())
    path = Path(next(iter(files.files)))
    return Change(f"fixed in {path}", (edits, part, files), load(path), path)


def _fixed(target: Target, now: Subject, original: Subject, verify: Verify) -> Fixed | None:
    """The fixes for one target; without steps if it takes the model already."""

    def good(model: ir.Model) -> bool:
        return _verified(original, model, verify) is not None

    with target.judging() as judge:
        answer = judge.ask(now.model, now.feeds)
        if answer.refusal is None:
            return Fixed(now.model, ())
        return fixed(judge, now, {UNKNOWN}, good)


def _verified(original: Subject, model: ir.Model, verify: Verify) -> Verification | None:
    """The comparison; None if the two differ."""
    try:
        found = verify_models(original.model, model, replace(verify), given=original.given)
    except OnnxsmithError:
        return None
    return None if found.differs else found
