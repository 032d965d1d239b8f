"""Refuses models that `quantize` cannot make smaller, before anything is scored."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.words import several
from onnxsmith.graph.structure import walk
from onnxsmith.precision.integer_weights import integer_weights, quantisers, wide_share
from onnxsmith.precision.method_trial import largest_weights
from onnxsmith.precision.methods.base import FLOATS, NARROW, Method


def refuse_quantised(model: ir.Model, where: str) -> tuple[str, ...]:
    """Refuses a model that is quantised already. Returns a note on weights that are, if most are not."""
    found = quantisers(model)
    stored = list(integer_weights(model))
    held = f"stored as integers that a Cast and a Mul turn into floats: {several(len(stored), 'weight')}"
    share = wide_share(model)
    if found or (stored and share < _WIDE):
        told = [f"{count} {name}" for name, count in found.items()] + ([held] if stored else [])
        raise problem(
            "quantize/quantised",
            "the model is quantised already",
            where=where,
            why=f"{', '.join(told)}; {share:.0%} of the bytes of its weights are in float32",
            fix="start from the float32 model",
        )
    return (held,) if stored else ()


def refuse_unfit(model: ir.Model, methods: Mapping[str, Method]) -> None:
    """Refuses a model without weights that one of the methods changes. Without this, the reason would come after the
    score.

    Raises:
        OnnxsmithError: `quantize/nothing`.
    """
    dtypes = {one.dtype for one in walk.tensors(model) if one.dtype in FLOATS and one.size > 1}
    if not dtypes:
        raise problem(
            "quantize/nothing",
            "no method changes this model",
            where="the model has no weights in floats",
            why="each method changes weights of floats",
            fix="keep the model as it is: it has so few weights that the file would not become smaller",
        )
    if dtypes <= set(NARROW) and "int4" not in methods and not _widened_here(model):
        names = sorted(one.name.lower() for one in dtypes)
        raise problem(
            "quantize/nothing",
            f"the model is in {' and '.join(names)}, but {', '.join(methods)} is made from a float32 model",
            where=largest_weights(model, names[0]),
            fix="start from the float32 model; or --to int4, which also narrows weights of float16",
        )


def _widened_here(model: ir.Model) -> bool:
    """Whether a Cast makes float32, perhaps of weights that are narrow only in the file."""
    return any(
        node.op_type == "Cast" and node.attributes.get_int("to", 0) == ir.DataType.FLOAT.value
        for node in walk.all_nodes(model)
    )


_WIDE = 0.2
"""The share of float32 among the bytes of the weights below which a model with integer weights is not quantised again.
A choice: 8 bits would save less than a seventh of the file."""
