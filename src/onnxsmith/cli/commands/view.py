"""`onnxsmith view MODEL [NEW]`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class View(Command):
    """Show a model, or what differs between two, in one HTML page that needs no network.

    Torch modules, scopes of names, repeated blocks, branches and functions open as levels. Writes MODEL.html in this
    folder, unless another output is named. Nothing is run.
    """

    name = "view"

    model: str = argument("an .onnx file, or ONNX text in .onnxtxt", metavar="MODEL")
    new: str = argument("a model to compare with it", default="", metavar="NEW")
    output: str = option("the HTML file to write", short="-o", metavar="FILE", default="", writes=True)
    with_: tuple[str, ...] = option(
        "colour the nodes by a report that another command wrote with --json; repeatable",
        default=(),
        name="with_",
        metavar="REPORT",
    )
    svg: str | None = option("draw one level as an SVG picture", metavar="FILE", writes=True)
    png: str | None = option("draw one level as a PNG picture", metavar="FILE", writes=True)
    module: str = option(
        "the level to draw, and to open the page at: a torch module, scope, branch or function by its path",
        default="",
        metavar="PATH",
    )
    serve: bool = flag("open a page over 50 MB from a port of this machine (127.0.0.1), until Ctrl-C")

    def run(self) -> Report:
        from pathlib import Path

        from onnxsmith.viewer.page_server import serve
        from onnxsmith.viewer.view import view

        output = self.output
        if not output and not self.svg and not self.png:
            output = f"{Path(self.new or self.model).stem}.html"
        result = view(
            self.model,
            self.new or None,
            output=output or None,
            reports=self.with_,
            svg=self.svg,
            png=self.png,
            module=self.module,
        )
        return serve(result) if self.serve else result.report
