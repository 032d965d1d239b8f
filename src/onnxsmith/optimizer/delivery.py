"""Verifies and writes a simplified model. If it differs, simplifies again without the faulty rewrites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.parts.written_files import Written
from onnxsmith.base.report.parts.written_files import written as files_written
from onnxsmith.base.settings import Save
from onnxsmith.graph.files.save import staged
from onnxsmith.verification.intermediate_declarations import corrected_clause
from onnxsmith.verification.output_declarations import settled, with_clauses

if TYPE_CHECKING:
    from onnxsmith.optimizer import faulty_rewrites


class _TooLargeError(Exception):
    """Raised if the written files are larger than the original may grow."""


@dataclass(frozen=True)
class Delivery:
    """Verifies a model, and writes it if it agrees or if no verification was requested. `most` is the largest allowed
    size of the files in bytes."""

    output: str | Path | None
    save: Save
    verified: Callable[[Path | ir.Model], Verification]
    asked: bool
    most: float | None
    check: Callable[..., object]
    """Checks a model against the specification, with the strictest check that the original passes."""

    def __call__(self, simple: ir.Model, part: Simplification) -> tuple[Verification, Written]:
        said = corrected_clause(part.misdeclared)
        if self.output is None:
            found = settled(with_clauses(self.verified(simple), said), simple)
            return found, Written({}, "no output was requested")
        with staged(self.output) as target:
            with stage("save"):
                target.write(simple, external_data=self.save.external_data)
                if self.most is not None and target.nbytes() > self.most:
                    raise _TooLargeError
                self.check(simple, where="the simplified model", file=target.path)
            verification = self.verified(target.path)
            if self.asked and not verification.equal and not (verification.unsure and self.save.write_unsure):
                return verification, Written({}, _why_not(verification))
            verification = settled(with_clauses(verification, said), simple)
            with stage("save"):
                if verification.misdeclared:
                    target.write(simple, external_data=self.save.external_data)
                    self.check(simple, where="the simplified model", file=target.path)
                return verification, files_written(target.commit())


def _why_not(verification: Verification) -> str:
    if verification.unsure:
        return "the check cannot decide whether the simplified model is equal; --write-unsure writes it anyway"
    return "the simplified model differs from the original"


@dataclass(frozen=True)
class Delivered:
    """A simplified model, with the report parts on its rewrites, its verification and its files."""

    model: ir.Model
    part: Simplification
    verification: Verification
    written: Written


def delivered(delivery: Delivery, run: faulty_rewrites.Simplify) -> Delivered:
    """Simplifies, verifies and writes the model. If the file is too large, tries again with less folding, then without
    any rewrite."""
    notes: tuple[str, ...] = ()
    fallbacks: Iterator[dict[str, Any]] = iter(({"slack": 0}, {"max_growth": 0.0}, {"limit": 0}))
    while True:
        with stage("simplify"):
            model, part = run()
        try:
            return _without_culprits(delivery, run, model, replace(part, notes=(*part.notes, *notes)))
        except _TooLargeError:
            less = next(fallbacks, None)
            if less is None:
                delivery = replace(delivery, most=None)
                notes = ("the file is larger than before even with nothing folded",)
            else:
                run = partial(run, **less)
                notes = ("some rewrites were left out, so that the file does not grow",)


def _bit_exact(delivery: Delivery, run: faulty_rewrites.Simplify) -> Delivered | None:
    """Simplifies with bit-exact rewrites only. Needed if the check cannot tell rounding from a fault. Returns None if
    the check does not pass then, either."""
    with stage("simplify"):
        model, part = run(exactness="bitwise")
    found = Delivered(model, replace(part, notes=(*part.notes, _BIT_EXACT)), *delivery(model, part))
    return found if found.verification.equal else None


_BIT_EXACT = (
    "only bit-exact rewrites were used: with other rewrites, the check could not distinguish rounding from a fault"
)


def _without_culprits(
    delivery: Delivery, run: faulty_rewrites.Simplify, model: ir.Model, part: Simplification
) -> Delivered:
    """Verifies and writes the model. If it differs or does not run, simplifies again without the faulty rewrites."""
    trouble: OnnxsmithError | None = None
    try:
        found = Delivered(model, part, *delivery(model, part))
        if found.verification.equal or not delivery.asked:
            return found
        if found.verification.unsure:
            return found if delivery.save.write_unsure else _bit_exact(delivery, run) or found
    except OnnxsmithError as error:
        if not delivery.asked or not error.problem.id.startswith(("model/", "runtime/", "verify/")):
            raise
        trouble = error
    with stage("blame"):
        from onnxsmith.optimizer import faulty_rewrites

        kept = faulty_rewrites.without_culprits(run, delivery.verified, delivery.check)
    if kept is not None:
        part = replace(kept.part, notes=part.notes)
        return Delivered(kept.model, part, *delivery(kept.model, part))
    if trouble is not None:
        raise trouble
    return found
