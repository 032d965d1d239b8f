"""onnxsmith: from a PyTorch model to an ONNX model that can be trusted.

This module is the whole public interface. It defines nothing and imports each name on first use, so that a command that
needs neither torch nor onnxruntime does not load them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from onnxsmith._version import __version__

if TYPE_CHECKING:
    from onnxsmith.base.problem import OnnxsmithError, Problem
    from onnxsmith.base.report.base import Report
    from onnxsmith.base.report.verdict import Verdict
    from onnxsmith.base.result import Result
    from onnxsmith.base.settings import Save, Verify
    from onnxsmith.comparison.graphs.diff import diff
    from onnxsmith.comparison.outputs.compare import compare
    from onnxsmith.comparison.reduction.reduce import reduce
    from onnxsmith.deployment.benching.bench import bench
    from onnxsmith.deployment.bundles.bundle import bundle
    from onnxsmith.deployment.checking.check import check
    from onnxsmith.editor.building.build import build
    from onnxsmith.editor.edit import edit
    from onnxsmith.editor.merge import merge
    from onnxsmith.editor.split import split
    from onnxsmith.exporter.diagnose import diagnose
    from onnxsmith.exporter.export import export
    from onnxsmith.exporter.module.shrinking import shrink
    from onnxsmith.exporter.tracing.rewriting import rewrite
    from onnxsmith.exporter.translating.register import register
    from onnxsmith.exporter.translations.base import onnx_op
    from onnxsmith.gate.records.verify_record import verify_record
    from onnxsmith.graph.files.load import load
    from onnxsmith.graph.files.save import save
    from onnxsmith.optimizer.simplify import simplify
    from onnxsmith.precision.bisect import bisect
    from onnxsmith.precision.pruning.prune import prune
    from onnxsmith.precision.quantize import quantize
    from onnxsmith.verification.by_layer.dump import dump
    from onnxsmith.verification.run import run
    from onnxsmith.viewer.inspection.doctor import doctor
    from onnxsmith.viewer.inspection.explain import explain
    from onnxsmith.viewer.inspection.inspect import inspect
    from onnxsmith.viewer.view import view

__all__ = [
    "OnnxsmithError",
    "Problem",
    "Report",
    "Result",
    "Save",
    "Verdict",
    "Verify",
    "__version__",
    "bench",
    "bisect",
    "build",
    "bundle",
    "check",
    "compare",
    "diagnose",
    "diff",
    "doctor",
    "dump",
    "edit",
    "explain",
    "export",
    "inspect",
    "load",
    "merge",
    "onnx_op",
    "prune",
    "quantize",
    "reduce",
    "register",
    "rewrite",
    "run",
    "save",
    "shrink",
    "simplify",
    "split",
    "verify_record",
    "view",
]

# The module of each public name. The imports above are for type checkers only.
_HOME = {
    "OnnxsmithError": "base.problem",
    "Problem": "base.problem",
    "Report": "base.report.base",
    "Result": "base.result",
    "Save": "base.settings",
    "Verdict": "base.report.base",
    "Verify": "base.settings",
    "bench": "deployment.benching.bench",
    "bisect": "precision.bisect",
    "build": "editor.building.build",
    "bundle": "deployment.bundles.bundle",
    "check": "deployment.checking.check",
    "compare": "comparison.outputs.compare",
    "diagnose": "exporter.diagnose",
    "diff": "comparison.graphs.diff",
    "doctor": "viewer.inspection.doctor",
    "dump": "verification.by_layer.dump",
    "edit": "editor.edit",
    "explain": "viewer.inspection.explain",
    "export": "exporter.export",
    "inspect": "viewer.inspection.inspect",
    "load": "graph.files.load",
    "merge": "editor.merge",
    "onnx_op": "exporter.translations.base",
    "prune": "precision.pruning.prune",
    "quantize": "precision.quantize",
    "reduce": "comparison.reduction.reduce",
    "register": "exporter.translating.register",
    "rewrite": "exporter.tracing.rewriting",
    "run": "verification.run",
    "save": "graph.files.save",
    "shrink": "exporter.module.shrinking",
    "simplify": "optimizer.simplify",
    "split": "editor.split",
    "verify_record": "gate.records.verify_record",
    "view": "viewer.view",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
