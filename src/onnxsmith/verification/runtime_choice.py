"""Chooses the next runtime for a model that the usual runtime cannot run, if the user named none."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes import _call_limits
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Runtime

LACKS = frozenset(
    {
        "runtime/no-kernel",
        "runtime/unknown-operator",
        "runtime/opset-unsupported",
        "runtime/ir-unsupported",
        "runtime/dtype-unsupported",
    }
)
"""Names the problems that report a gap of the runtime, not a fault of the model."""
FAILS = frozenset({"runtime/failed", "runtime/died"})
"""Names the problems of a runtime that refuses a model, or fails on an input, although the standard may allow both."""
STANDARD = "reference"
"""Names the runtime that follows the standard. It judges a model that the usual runtime refuses or fails on."""
_STANDARD_SECONDS = 180.0
"""Limits the seconds of all runs of the reference evaluator that judges in another runtime's place. A choice."""
_LADDER = ("onnxruntime", "openvino", "reference")
"""Lists runtimes in the order of trial: the fastest first, and last the Python evaluator, which follows the
specification."""

_LONG = ("int64", "uint64", "uint32")
_INT32 = np.iinfo(np.int32)

T = TypeVar("T")


class OfferedError(OnnxsmithError):
    """Says that the runtime that the user named lacks a capability. The fix names another runtime that has this
    capability."""


class LacksError(OnnxsmithError):
    """Says that the runtime prepared the reference model, but lacks a capability that every input needs."""


class FailsError(OnnxsmithError):
    """Says that the runtime prepared the reference model, but failed on every input. `refusal` is the last failure."""

    def __init__(self, found: Problem, refusal: Problem) -> None:
        super().__init__(found)
        self.refusal = refusal


@dataclass(frozen=True)
class RuntimeChoice:
    """Names the runtime that is used, and the refusals of the runtimes that were tried before."""

    runtime: str
    refusals: tuple[Problem, ...] = ()

    @property
    def clause(self) -> str:
        """Returns the headline's clause if this is not the usual runtime; else ""."""
        if not self.refusals:
            return ""
        said = [one.what if one.id in LACKS else f"{one.what}: {_reason(one)}" for one in self.refusals]
        return f"run on {self.runtime}: {said[0] if self.refusals[-1].id in LACKS else '; '.join(said)}"

    @property
    def is_by_standard(self) -> bool:
        """Whether the reference evaluator judged, because another runtime refused or failed on what the standard
        allows."""
        return any(one.id in FAILS for one in self.refusals)


_PLACE = re.compile(r"^.*?(?:Status Message:|Exception during initialization:|failed:)\s*", re.DOTALL)
_SOURCE = re.compile(r"^\S+\.(?:cc|h):\d+ ")
_LONGEST_REASON = 160
"""Limits the characters of a runtime's message in a headline. A choice: two lines of a terminal."""


def _reason(found: Problem) -> str:
    """Returns why a runtime failed, without the parts of its message that name its source files."""
    said = _SOURCE.sub("", _PLACE.sub("", found.why)) or found.why
    return textwrap.shorten(said, _LONGEST_REASON, placeholder=" …") if said else found.id


def in_order() -> tuple[str, ...]:
    """Returns the installed runtimes, the usual one first."""
    here = {name for name, one in rooms.members("onnxsmith.runtimes", Runtime).items() if one.missing() is None}
    usual = runtimes.default()
    return (usual, *(name for name in _LADDER if name in here and name != usual))


def able(sources: Sequence[Path | ir.Model], refusals: Mapping[str, Problem]) -> RuntimeChoice:
    """Returns the first runtime that prepares all of `sources`, except for the runtimes in `refusals`.

    Raises:
        OnnxsmithError: the first refusal, if no runtime prepares them.
    """
    known = dict(refusals)
    for name in in_order():
        if name in known:
            continue
        found = refusal_of(name, sources)
        if found is None:
            return RuntimeChoice(name, tuple(known.values()))
        known[name] = found
    first, *others = known.values()
    said = "; ".join(f"{one.what} {one.why}".strip()[:200] for one in others)
    raise OnnxsmithError(replace(first, why=f"{first.why}; the other runtimes here: {said}" if said else first.why))


def offered(refusal: Problem, sources: Sequence[Path | ir.Model], named: str) -> Problem:
    """Returns the refusal of the runtime that the user named. If another runtime accepts the models, the problem's fix
    names it."""
    try:
        choice = able(sources, {named.partition(":")[0]: refusal})
    except OnnxsmithError as error:
        return error.problem
    return replace(refusal, fix=f"--runtime {choice.runtime}, which accepts the model")


def refusal_of(name: str, sources: Sequence[Path | ir.Model]) -> Problem | None:
    """Returns why this runtime does not prepare all of `sources`; None if it prepares them."""
    if name == "openvino" and any(_needs_long_integers(load(source)) for source in sources):
        why = "OpenVINO computes 64-bit integers in 32 bits, and does not warn if these overflow"
        return Problem("runtime/dtype-unsupported", "OpenVINO may compute wrong results for this model", why=why)
    try:
        with runtimes.get(name).preparer() as preparer:
            for source in sources:
                preparer.prepare(source, Options())
    except OnnxsmithError as error:
        return error.problem
    return None


def _needs_long_integers(model: ir.Model) -> bool:
    """Whether the model outputs 64-bit integers, or holds integers beyond 32 bits, except for the open end of a
    Slice."""
    if any(port.dtype in _LONG for port in signature(model).outputs):
        return True
    for value in walk.initializers(model):
        if any(use.node.op_type != "Slice" for use in value.uses()) and _is_long(value.const_value):
            return True
    for node in walk.all_nodes(model):
        held = node.attributes.get("value") if node.op_type == "Constant" else None
        others = any(use.node.op_type != "Slice" for use in node.outputs[0].uses())
        if held is not None and others and _is_long(held.as_tensor()):
            return True
    return False


def _is_long(tensor: ir.TensorProtocol | None) -> bool:
    if tensor is None or tensor.dtype not in (ir.DataType.INT64, ir.DataType.UINT64, ir.DataType.UINT32):
        return False
    values = tensor.numpy()
    return bool(values.size) and (int(values.max()) > _INT32.max or int(values.min()) < _INT32.min)


def judged(
    runtime: str | None,
    sources: Sequence[Path | ir.Model],
    run: Callable[[str], T],
    *,
    deciding: int | None = None,
    by_standard: bool = True,
) -> tuple[T, RuntimeChoice]:
    """Returns the result of `run` on the usual runtime, or on the next runtime that accepts the models. Also returns
    which runtime this was. With `deciding`, only the first `deciding` of `sources` count. If only the later sources
    need a capability, this is no reason to try the next runtime.

    With `by_standard`, the reference evaluator judges models that the runtime refuses or fails on, although the
    standard allows them. All its runs together may take three minutes.

    Raises:
        OnnxsmithError: the errors of `run`. If the user named a runtime that lacks a capability, the fix names another
            (`OfferedError`), if there is one.
    """
    choice = RuntimeChoice(runtime or runtimes.default())
    refusals: dict[str, Problem] = {}
    asked = sources[:deciding]
    while True:
        try:
            return run(choice.runtime), choice
        except OnnxsmithError as error:
            failed = failure(error)
            if failed is not None and runtime is None and by_standard and choice.runtime != STANDARD:
                # A failure during a run says nothing about the later sources; one to load says it if the first loads.
                if deciding is not None and not isinstance(error, FailsError) and not refusal_of(choice.runtime, asked):
                    raise
                return _by_standard(error, RuntimeChoice(STANDARD, (*refusals.values(), failed)), asked, run)
            if error.problem.id not in LACKS:
                raise
            if deciding is not None and not isinstance(error, LacksError) and not refusal_of(choice.runtime, asked):
                raise
            refusals[choice.runtime.partition(":")[0]] = error.problem
        if runtime is not None:
            first = next(iter(refusals.values()))
            found = offered(first, asked, runtime)
            raise (OfferedError if found.fix != first.fix else OnnxsmithError)(found)
        choice = able(asked, refusals)


def failure(error: OnnxsmithError) -> Problem | None:
    """Returns the runtime's failure that an error is about; None for another error."""
    found = error.refusal if isinstance(error, FailsError) else error.problem
    return found if found.id in FAILS else None


def _by_standard(
    error: OnnxsmithError, choice: RuntimeChoice, sources: Sequence[Path | ir.Model], run: Callable[[str], T]
) -> tuple[T, RuntimeChoice]:
    """Returns the result of `run` on the reference evaluator, if the standard allows the models.

    Raises:
        OnnxsmithError: `error`, if the standard does not allow the models, or if the evaluator refuses them too.
    """
    if not all(map(follows_standard, sources)):
        raise error
    try:
        with standard_limit():
            return run(choice.runtime), choice
    except OnnxsmithError as other:
        if not is_not_judged(other):
            raise
        raise with_other(error, other.problem) from other


_NOT_JUDGED = LACKS | {"runtime/timeout", "runtime/memory", "verify/no-valid-input"}
"""Names the problems with which the reference evaluator says nothing about a model."""


def standard_limit() -> AbstractContextManager[None]:
    """Limits the time of all runs of the reference evaluator that judges in another runtime's place."""
    return _call_limits.within(_STANDARD_SECONDS)


def is_not_judged(error: OnnxsmithError) -> bool:
    """Whether an error of the reference evaluator says nothing about the model."""
    return failure(error) is not None or error.problem.id in _NOT_JUDGED


def with_other(error: OnnxsmithError, other: Problem) -> OnnxsmithError:
    """Returns the error with a clause that the reference evaluator could not judge."""
    said = f"the reference evaluator could not decide either: {other.what} {other.why}".strip()[:200]
    found = replace(error.problem, why="; ".join(filter(None, (error.problem.why, said))))
    return FailsError(found, error.refusal) if isinstance(error, FailsError) else OnnxsmithError(found)


def follows_standard(source: Path | ir.Model) -> bool:
    """Whether onnx's checker and its strict shape inference accept the model."""
    try:
        return not check(load(source))
    except OnnxsmithError:
        return False


def named(source: Source, runtime: str | None) -> tuple[Source, str | None]:
    """Splits `m.onnx@reference` into a path and a runtime, unless a file has that name."""
    if isinstance(source, str) and not Path(source).exists():
        path, at, asked = source.rpartition("@")
        if at:
            return path, asked
    return source, runtime
