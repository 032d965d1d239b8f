"""onnxsmith: from a PyTorch model to an ONNX model that can be trusted.

This module is the whole public interface. It defines nothing and imports each name on first use, so that a command that
needs neither torch nor onnxruntime does not load them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from onnxsmith._version import __version__

if TYPE_CHECKING:
    from onnxsmith.benching.bench import bench
    from onnxsmith.building.build import build
    from onnxsmith.bundles.bundle import bundle
    from onnxsmith.checking.check import check
    from onnxsmith.comparing.compare import compare
    from onnxsmith.comparison.run import run
    from onnxsmith.differences.diff import diff
    from onnxsmith.editing.edit import edit
    from onnxsmith.editing.merge import merge
    from onnxsmith.editing.split import split
    from onnxsmith.exporter.diagnose import diagnose
    from onnxsmith.exporter.export import export
    from onnxsmith.exporter.module.shrinking import shrink
    from onnxsmith.exporter.tracing.rewriting import rewrite
    from onnxsmith.exporter.translating.register import register
    from onnxsmith.exporter.translations.base import onnx_op
    from onnxsmith.inspection.doctor import doctor
    from onnxsmith.inspection.explain import explain
    from onnxsmith.inspection.inspect import inspect
    from onnxsmith.layers.dump import dump
    from onnxsmith.model.files.load import load
    from onnxsmith.model.files.save import save
    from onnxsmith.precision.bisect import bisect
    from onnxsmith.precision.pruning.prune import prune
    from onnxsmith.precision.quantize import quantize
    from onnxsmith.problem import OnnxsmithError, Problem
    from onnxsmith.reduction.reduce import reduce
    from onnxsmith.report.base import Report
    from onnxsmith.report.verdict import Verdict
    from onnxsmith.result import Result
    from onnxsmith.settings import Save, Verify
    from onnxsmith.simplifier.simplify import simplify
    from onnxsmith.viewing.view import view

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
    "view",
]

# The module of each public name. The imports above are for type checkers only.
_HOME = {
    "OnnxsmithError": "problem",
    "Problem": "problem",
    "Report": "report.base",
    "Result": "result",
    "Save": "settings",
    "Verdict": "report.base",
    "Verify": "settings",
    "bench": "benching.bench",
    "bisect": "precision.bisect",
    "build": "building.build",
    "bundle": "bundles.bundle",
    "check": "checking.check",
    "compare": "comparing.compare",
    "diagnose": "exporter.diagnose",
    "diff": "differences.diff",
    "doctor": "inspection.doctor",
    "dump": "layers.dump",
    "edit": "editing.edit",
    "explain": "inspection.explain",
    "export": "exporter.export",
    "inspect": "inspection.inspect",
    "load": "model.files.load",
    "merge": "editing.merge",
    "onnx_op": "exporter.translations.base",
    "prune": "precision.pruning.prune",
    "quantize": "precision.quantize",
    "reduce": "reduction.reduce",
    "register": "exporter.translating.register",
    "rewrite": "exporter.tracing.rewriting",
    "run": "comparison.run",
    "save": "model.files.save",
    "shrink": "exporter.module.shrinking",
    "simplify": "simplifier.simplify",
    "split": "editing.split",
    "view": "viewing.view",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
