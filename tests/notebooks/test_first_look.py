"""The notebook of the examples runs as in Jupyter, and shows a card below each cell."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import documents
from tests.notebooks import hosts

ROOT = Path(__file__).parent.parent.parent
NOTEBOOK = ROOT / "examples" / "34_notebook" / "first_look.ipynb"
RUN = "import sys; from nbclient.cli import main; sys.exit(main())"
"""Does what `jupyter execute` does, in this Python."""
LAST: dict[str, Any] = {
    "cell_type": "code",
    "execution_count": None,
    "id": "last",
    "metadata": {},
    "outputs": [],
    "source": "import traceback\ntraceback.print_last()",
}
Cells = list[dict[str, Any]]

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Cells:
    """The cells of the notebook after a run, and a last one that prints the traceback of the error."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    notebook["cells"].append(LAST)
    copy = folder / "first_look.ipynb"
    copy.write_text(json.dumps(notebook), encoding="utf-8")
    variables = documents.environment(folder / "bin", ROOT / "src") | {"IPYTHONDIR": str(folder / "ipython")}
    command = [sys.executable, "-c", RUN, "--inplace", copy.name]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ran = json.loads(copy.read_text(encoding="utf-8"))
    return [cell for cell in ran["cells"] if cell["cell_type"] == "code"]


def joined(text: str | list[str]) -> str:
    return "".join(text)


def pages(cells: Cells) -> list[str]:
    shown = [output.get("data", {}) for cell in cells for output in cell["outputs"]]
    return [joined(data["text/html"]) for data in shown if "text/html" in data]


def test_each_answer_is_a_card(cells: Cells) -> None:
    verdicts = [
        re.findall(r'class="title">onnxsmith (\w+) <strong class="verdict">([\w-]+)</strong>', one)[0]
        for one in pages(cells)
    ]
    said = [("export", "done"), ("simplify", "done"), ("compare", "different"), ("inspect", "done"), ("view", "done")]
    assert verdicts == said
    assert all(len(one) < 40_000 for one in pages(cells)[:4])


def test_the_planted_fault_is_named(cells: Cells) -> None:
    compared = pages(cells)[2]
    assert "compare/first-error" in compared
    assert "second.bias" in compared


def test_an_error_is_short_and_the_traceback_can_be_had(cells: Cells) -> None:
    *_, failed, whole = cells
    (error,) = failed["outputs"]
    text = "\n".join(error["traceback"])
    assert len(error["traceback"]) < 8
    assert "model/not-found: there is no such file" in text
    assert 'in line 1 of the cell: onnxsmith.simplify("missing.onnx")' in text
    printed = "".join(joined(output["text"]) for output in whole["outputs"])
    assert "Traceback (most recent call last)" in printed
    assert "load.py" in printed


def test_a_terminal_gets_one_line(cells: Cells) -> None:
    lines = [output["data"]["text/plain"] for cell in cells for output in cell["outputs"] if "data" in output]
    assert len(lines) == 5
    assert all(re.fullmatch(r"<(Result|Report) of .+>", joined(line)) for line in lines)


def test_the_file_has_no_outputs() -> None:
    stored = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in stored["cells"] if "outputs" in cell)
    assert stored["metadata"].keys() == {"kernelspec", "language_info"}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("host", [hosts.lab, hosts.code, hosts.untrusted])
def test_the_outputs_fit_into_the_pages_of_notebooks(
    cells: Cells, browser: Any, tmp_path: Path, host: Any, theme: str
) -> None:
    path = tmp_path / "cells.html"
    path.write_text(host("".join(pages(cells)), theme), encoding="utf-8")
    page = browser.new_page(viewport={"width": 900, "height": 700}, offline=True, color_scheme="null")
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 900
    text = page.locator("body").inner_text().lower()
    assert all(one in text for one in ("onnxsmith compare different", "second.bias", "float[batch,3,32,32]"))
    if host is not hosts.untrusted:
        frame = page.frame_locator("iframe")
        frame.locator("canvas").first.wait_for()
        assert "small.onnx" in frame.locator("body").inner_text()
    page.close()
