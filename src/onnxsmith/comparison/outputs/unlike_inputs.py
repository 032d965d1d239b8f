"""Tells that two models were compared that take different inputs."""

from __future__ import annotations

import dataclasses

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.verification import REFUSES
from onnxsmith.base.words import pasted
from onnxsmith.graph.structure.signature import Port, Signature

_CHANNELS_LAST = (0, 2, 3, 1)
_LAST, _FIRST = "NHWC", "NCHW"


def told(found: Problem, reference: Signature, candidate: Signature) -> Problem:
    """Returns the problem. If the candidate refused an input because its inputs have other shapes or dtypes than those
    of the reference, its reason has both, and its fix says how the candidate can be compared."""
    if found.id != "verify/different" or REFUSES not in found.what:
        return found
    unlike = first_unlike(reference, candidate)
    if unlike is None:
        return found
    one, other = unlike
    return dataclasses.replace(
        found,
        why=f"the models have different inputs: the reference {one.name} {one}, the candidate {other.name} {other}; no "
        "numbers were compared",
        fix=_fix(one, other),
    )


def first_unlike(reference: Signature, candidate: Signature) -> tuple[Port, Port] | None:
    """Returns the first pair of inputs that cannot take the same arrays; inputs are paired by name, else in order."""
    named = {port.name: port for port in candidate.inputs}
    pairs = zip(reference.inputs, candidate.inputs, strict=False)
    return next(
        ((one, named.get(one.name, other)) for one, other in pairs if not _fits(one, named.get(one.name, other))), None
    )


def _fits(one: Port, other: Port) -> bool:
    if one.dtype != other.dtype or one.kind != other.kind:
        return False
    if one.shape is None or other.shape is None:
        return True
    pairs = zip(one.shape, other.shape, strict=False)
    return len(one.shape) == len(other.shape) and all(
        a == b or isinstance(a, str) or isinstance(b, str) for a, b in pairs
    )


def _fix(one: Port, other: Port) -> str:
    if one.shape is not None and other.shape is not None and one.dtype == other.dtype and len(one.shape) == 4:
        for layout, axes in ((_FIRST, _CHANNELS_LAST), (_LAST, (0, 3, 1, 2))):
            order = [one.shape[axis] for axis in axes]
            if len(other.shape) == 4 and all(
                a == b or isinstance(a, str) or isinstance(b, str) for a, b in zip(order, other.shape, strict=True)
            ):
                port = pasted(f"{other.name}={layout}")
                return (
                    f"give both models the same layout: `onnxsmith layout CANDIDATE {port} -o "
                    f"{layout.lower()}.onnx`, and "
                    "compare with the new file"
                )
    return "give a candidate that has the reference's inputs; `onnxsmith inspect CANDIDATE` shows its inputs"
