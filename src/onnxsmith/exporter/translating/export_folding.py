"""Folds what torch's exporter left open in a graph: calls of functions, constants, nodes that are there twice."""

from __future__ import annotations

import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnxscript.optimizer import fold_constants_ir
from onnxscript.rewriter import onnx_fusions

_ROUNDS = 2


def fold(model: ir.Model) -> None:
    """Does in place what onnxscript's optimiser does, without its rewrite rules: the simplifier has them, and one of
    them walks the whole graph for each node."""
    passes.InlinePass()(model)
    for _ in range(_ROUNDS):
        folded = fold_constants_ir(model, onnx_shape_inference=True)
        if not _without_unused(model) and not folded.modified:
            break
    onnx_fusions.fuse(model)
    ir.passes.Sequential(
        passes.RemoveUnusedNodesPass(),
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        passes.LiftSubgraphInitializersToMainGraphPass(),
        passes.DeduplicateInitializersPass(),
        passes.CommonSubexpressionEliminationPass(),
        passes.OutputFixPass(),
        passes.NameFixPass(),
    )(model)


def _without_unused(model: ir.Model) -> bool:
    """Removes what nothing uses; whether anything was."""
    unused: list[ir.passes.InPlacePass] = [
        passes.RemoveUnusedNodesPass(),
        passes.RemoveUnusedFunctionsPass(),  # type: ignore[no-untyped-call]
        passes.RemoveUnusedOpsetsPass(),
    ]
    return ir.passes.Sequential(*unused)(model).modified
