"""The page of a model that stands beside the report of another command, and to which the report links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Report
from onnxsmith.graph.model_identity import model_path
from onnxsmith.viewer.html_page import to_html
from onnxsmith.viewer.page_links import Links
from onnxsmith.viewer.reports import has_figures, read
from onnxsmith.viewer.scene_assembly import made


@dataclass(eq=False)
class Beside:
    """The page, the places on it by name, and a line on what is shown."""

    page: str
    links: Links
    headline: str


def beside(models: Sequence[str], report: Report) -> Beside:
    """Makes the page of one model or two, coloured by the figures that the report has.

    Raises:
        OnnxsmithError: `view/no-file` if a model is not a file, `model/…` if it cannot be read, `view/other-model`.
    """
    sources = [file_of(name) for name in models]
    with no_collection():
        whole, shown, _ = made(sources, [read(report)] if has_figures(report) else [])
        return Beside(to_html(whole), Links(whole, shown), whole.headline)


def file_of(name: str) -> Path:
    """Returns the file that a model is called by on the command line, such as `m.onnx@openvino`.

    Raises:
        OnnxsmithError: `view/no-file`.
    """
    path = model_path(name)
    if path is None:
        raise problem(
            "view/no-file",
            "--view shows a model file, and the command has none",
            where=name or "no output file",
            why="a torch model is code, which has no nodes to show",
            fix="leave --view out, or name an .onnx file",
        )
    return path
