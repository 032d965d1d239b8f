"""The base class of the forms in which `--report` writes a report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from onnxsmith.base import rooms
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.words import pasted
from onnxsmith.cli.render.html_report import View


class Form(ABC):
    """A form of the file that `--report` writes. The name of its module is the extension of the file."""

    described: str
    """Names such a file, with its article: `an HTML page`."""

    @abstractmethod
    def texts(self, report: Report, path: str, view: View | None) -> dict[str, str]:
        """Returns the text of the file at `path`, and of each picture beside it, by path. `view` is the page of the
        model that the report may link to."""

    @abstractmethod
    def is_own(self, start: bytes) -> bool:
        """Whether a file that begins with these bytes is a report in this form, so that a new one may replace it."""

    def refuse_loss(self, path: str) -> None:
        """Raises if a file at the path is no report in this form.

        Raises:
            OnnxsmithError: `save/needed`.
        """
        from onnxsmith.graph.files.output_paths import refuse_other_than

        refuse_other_than(path, self.is_own, self.described)


def form_of(path: str) -> Form:
    """Returns the form for the extension of the path.

    Raises:
        OnnxsmithError: `report/unknown-form`.
    """
    forms = rooms.members("onnxsmith.cli.render.forms", Form)
    suffix = Path(path).suffix
    if suffix[1:] not in forms:
        known = ", ".join(f".{name}" for name in forms)
        raise problem(
            "report/unknown-form",
            f"no report format has the extension {suffix!r}" if suffix else "the file of --report has no extension",
            where=path,
            why=f"the extension sets the format of the report: {known}",
            fix=f"write {pasted(Path(path).with_suffix('.md'))} in its place, or use another of these extensions",
        )
    return forms[suffix[1:]]
