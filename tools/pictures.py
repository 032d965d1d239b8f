"""Makes the pictures of the documents: a chart of one benchmark, a page of `view`, a report, and a cell of a notebook.

    python tools/pictures.py [chart]

The chart is drawn from the table of docs/benchmarks.md. The pages are shown in Chromium, which takes the pictures.
The cell is one of examples/34_notebook, which is run.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
MODEL = "examples/66_super_resolution/model.py:build"
_WIDTH, _ROW, _LEFT = 720, 30, 230
"""The width of the chart, the height of a bar with its gap, and the room for the names, in pixels."""
_INK, _BAR, _OURS = "#6e7781", "#9aa4b0", "#1f6feb"
"""Colours that can be read on white and on black."""


def chart() -> str:
    """Returns the chart as SVG: how many models each exporter writes a right file of, at first contact."""
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    first = _cells(page, "first")
    bars = [
        ("onnxsmith, first contact", first[1], _OURS),
        ("onnxsmith, mended since", _cells(page, "first, mended and measured again")[1], _OURS),
        ("torch.onnx, dynamo=True", first[4], _BAR),
        ("torch.onnx, dynamo=False", first[5], _BAR),
    ]
    whole = first[0]
    scale = (_WIDTH - _LEFT - 50) / whole
    height = _ROW * len(bars) + 8
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    font = 'font-family="system-ui, sans-serif" font-size="15"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font} role="img">',
        f"<title>Right ONNX files of {whole} models at first contact</title>",
    ]
    for number, (name, count, colour) in enumerate(bars):
        top = 4 + number * _ROW
        width = round(count * scale, 1)
        lines += [
            f'<text x="{_LEFT - 10}" y="{top + 17}" text-anchor="end" fill="{_INK}">{name}</text>',
            f'<rect x="{_LEFT}" y="{top + 2}" width="{width}" height="{_ROW - 8}" rx="3" fill="{colour}"/>',
            f'<text x="{_LEFT + width + 8}" y="{top + 17}" fill="{_INK}">{count}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def _cells(page: str, name: str) -> list[int]:
    """Returns the first number of each cell of a row of the table of rounds; 0 for an empty cell."""
    table = page[page.index("| round ") :]
    row = re.search(rf"^\| {re.escape(name)} +\|(.*)\|$", table, re.MULTILINE)
    assert row is not None
    return [int((re.findall(r"\d+", cell) or ["0"])[0]) for cell in row[1].split("|")]


def pages(folder: Path) -> dict[str, Path]:
    """Writes a page of `view`, a report and a cell into a folder, and returns them by the name of their picture."""
    (folder / "examples").symlink_to(ROOT / "examples")
    export = [
        "export",
        MODEL,
        "-o",
        "superres.onnx",
        "--dynamic",
        "x:0=batch,2=height,3=width",
        "--html",
        "report.html",
    ]
    for words in (export, ["view", "superres.onnx", "-o", "view.html"]):
        subprocess.run([sys.executable, "-m", "onnxsmith", *words, "-q"], cwd=folder, check=True)
    (folder / "notebook.html").write_text(_cell(folder), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in ("view", "report", "notebook")}


def _cell(folder: Path) -> str:
    """Runs the notebook of the examples, and returns a page with the cell that compares, as JupyterLab shows it."""
    notebook = folder / "first_look.ipynb"
    shutil.copy(ROOT / "examples" / "34_notebook" / notebook.name, notebook)
    subprocess.run(
        [sys.executable, "-c", "from nbclient.cli import main; main()", "--inplace", notebook.name],
        cwd=folder,
        check=True,
    )
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    cell = next(one for one in cells if "onnxsmith.compare" in "".join(one["source"]))
    (shown,) = (output["data"]["text/html"] for output in cell["outputs"])
    code = html.escape("".join(cell["source"]))
    box = "border: 1px solid #e0e0e0; background: #f5f5f5; padding: 6px 10px; font: 13px/1.4 monospace"
    return (
        '<!doctype html><meta charset="utf-8"><body data-jp-theme-light="true" style="margin: 16px">'
        f'<pre style="{box}">{code}</pre>{"".join(shown)}</body>'
    )


def take(names: dict[str, Path]) -> None:
    """Takes the pictures of pages."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, file in names.items():
            page = browser.new_page(viewport={"width": 1200, "height": 720})
            page.goto(file.as_uri())
            page.wait_for_timeout(1000)
            page.screenshot(path=PICTURES / f"{name}.png")
        browser.close()


def main() -> None:
    """Writes the pictures, or with the word `chart` the chart alone."""
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / "chart.svg").write_text(chart(), encoding="utf-8")
    if sys.argv[1:] != ["chart"]:
        with tempfile.TemporaryDirectory() as folder:
            take(pages(Path(folder)))


if __name__ == "__main__":
    main()
