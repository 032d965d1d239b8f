"""Simplifies the graph of torch's exporter: inlines functions, folds constants, merges equal nodes."""

from __future__ import annotations

import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnxscript.optimizer import fold_constants_ir
from onnxscript.rewriter import onnx_fusions

_ROUNDS = 2


def fold(model: ir.Model) -> None:
    """Optimises in place like onnxscript's optimiser, but without its rewrite rules. The simplifier has these rules,
    and one of onnxscript's walks the whole graph for each node."""
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
    """Removes unused nodes, functions and opsets. Returns whether anything was removed."""
    unused: list[ir.passes.InPlacePass] = [
        passes.RemoveUnusedNodesPass(),
        passes.RemoveUnusedFunctionsPass(),  # type: ignore[no-untyped-call]
        passes.RemoveUnusedOpsetsPass(),
    ]
    return ir.passes.Sequential(*unused)(model).modified
