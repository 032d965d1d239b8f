"""`onnxsmith explain ID [MODEL]`, `onnxsmith op NAME`, `onnxsmith doctor`."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from onnxsmith.base.options import argument, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command

_STDIN = "-"


@dataclass(frozen=True)
class Explain(Command):
    """Explain an error message of a checker, runtime, converter or exporter, or print the page of a problem or a rule.
    With MODEL, look up the node that the message names."""

    name = "explain"
    usual_line = 'onnxsmith explain "No Op registered for Gelu with domain_version of 17"'
    examples = (
        ("Read a whole log", "onnxsmith explain - < build.log"),
        (
            "Show the node that the message names",
            "onnxsmith explain \"Non-zero status code returned while running Conv node. Name:'node_Conv_0'\" net.onnx",
        ),
        ("Print the page of a problem or a rule", "onnxsmith explain fuse/conv-batchnorm"),
    )

    id: str = argument(
        "an error message, of any length; '-' reads it from standard input; or the id of a problem (model/truncated), "
        "a rule (fuse/conv-batchnorm) or a cause (tensorrt/if-shapes); 'all' lists the ids",
        metavar="ID",
    )
    model: str = argument("the .onnx file that the message is about", default="", metavar="MODEL", reads=True)

    def run(self) -> Report:
        from onnxsmith.viewer.inspection.explain import explain

        text = sys.stdin.buffer.read().decode("utf-8", "replace") if self.id == _STDIN else self.id
        return explain(text.strip() if self.id == _STDIN else text, self.model or None)


@dataclass(frozen=True)
class Op(Command):
    """Show an operator: its operands and attributes, its changes in each opset, onnxruntime's CPU kernels, an example
    that runs."""

    name = "op"
    usual_line = "onnxsmith op Resize"
    examples = (
        ("Show the definition in an older opset", "onnxsmith op Resize --opset 13"),
        ("Show an operator of another domain", "onnxsmith op ai.onnx.ml::TreeEnsemble"),
    )

    operator: str = argument("the operator: Resize, or ai.onnx.ml::TreeEnsemble", metavar="NAME")
    opset: int | None = option("show the operator as this opset defines it; default: the newest opset")

    def run(self) -> Report:
        from onnxsmith.editor.building.operator_page import operator_page

        return operator_page(self.operator, opset=self.opset)


@dataclass(frozen=True)
class Doctor(Command):
    """Show the installed runtimes, devices and versions, and name the versions that do not work together."""

    name = "doctor"
    usual_line = "onnxsmith doctor"
    examples = (
        ("Print everything for a bug report", "onnxsmith doctor --json"),
        ("Ask whether a compiled model (EPContext) can load here", "onnxsmith doctor compiled.onnx"),
    )

    model: str = argument(
        "a compiled .onnx file, to see whether its provider is here", default="", metavar="MODEL", reads=True
    )

    def run(self) -> Report:
        from onnxsmith.viewer.inspection.doctor import doctor

        return doctor(self.model or None)
