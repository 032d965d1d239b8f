"""HTML reports and the view that they link to: `--html` with `--view`."""

from __future__ import annotations

import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import onnxsmith
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Bars, Chart, Places, Report, Table
from onnxsmith.base.report.parts.edits import Entry, Simplification
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands.run import Bench
from onnxsmith.cli.render import chart
from onnxsmith.cli.render.html_report import Cell, View, linked, relative, to_html
from onnxsmith.cli.render.report_files import Pages, write
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.html_page import beside
from onnxsmith.viewer.page_links import fragment
from tests.test_cli import called
from tests.viewer.models import HEAD, chain
from tests.viewer.test_view import scene_in

TEXT = (
    "g (float[N,3] x) => (float[N,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}> {\n"
    "[product] t = MatMul(x, w)\n[act] u = Relu(t)\n[squash] y = Tanh(u) }"
)


class Links(HTMLParser):
    """The addresses in a page, by their text."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._at = ""
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._at = dict(attrs).get("href") or "" if tag == "a" else ""

    def handle_data(self, data: str) -> None:
        if self._at:
            self.found.setdefault(data, self._at)
            self._at = ""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    save(from_text(HEAD + TEXT), tmp_path / "m.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_addresses_are_those_of_the_page() -> None:
    """`viewer/tests/url.test.ts` holds the page to the same file."""
    examples = json.loads((Path(__file__).parent / "viewer" / "addresses.json").read_text(encoding="utf-8"))
    for place, address in examples:
        given = {"opened" if name == "open" else name: value for name, value in place.items()}
        assert fragment(**given) == address


def test_each_tensor_leads_to_its_node(folder: Path) -> None:
    (folder / "out").mkdir()
    args = ("compare", "m.onnx", "m.onnx@reference", "--per-layer", "--html", "out/r.html", "--view", "v.html")
    status, _, err = called(*args, cwd=folder)
    assert (status, err) == (0, "")
    found = Links(folder / "out" / "r.html").found
    assert found["The model"] == "../v.html"
    colour = "colour=error+including+the+error+of+the+inputs"
    assert [found[name] for name in ("t", "u", "y")] == [
        f"../v.html#&at=node:{node}&{colour}" for node in ("product", "act", "squash")
    ]
    scene = scene_in((folder / "v.html").read_text(encoding="utf-8"))
    assert {"product", "act", "squash"} <= set(scene["models"][0]["nodes"]["name"])
    assert "error including the error of the inputs" in [layer["title"] for layer in scene["overlays"]]
    assert scene["warnings"] == []


@pytest.mark.parametrize(
    ("args", "name", "place"),
    [
        (["inspect", "m.onnx", "--nodes"], "act", "#&at=node:act"),
        (["inspect", "m.onnx", "--tensors"], "w", "#&at=tensor:w"),
        (["dump", "m.onnx", "--runtime", "reference"], "u", "#&at=node:act&colour=largest+magnitude"),
        (["dump", "m.onnx", "--runtime", "reference"], "x", "#&at=tensor:x"),
        (["simplify", "m.onnx", "-o", "s.onnx", "--explain"], "y", "#&at=node:squash"),
        (["rename", "m.onnx", "u", "v", "-o", "s.onnx"], "y", "#&at=node:squash"),
        (
            ["bench", "m.onnx", "--profile", "--seconds", "0.2", "--dim", "N=4"],
            "act",
            "#&at=node:act&colour=time+on+m.onnx+on+onnxruntime",
        ),
        (["check", "m.onnx", "--target", "onnxruntime"], "The model", ""),
        (["diff", "m.onnx", "m.onnx"], "The model", ""),
    ],
)
def test_reports_of_commands(folder: Path, args: list[str], name: str, place: str) -> None:
    _, _, err = called(*args, "--html", "r.html", "--view", "v.html", cwd=folder)
    assert err == ""
    assert Links(folder / "r.html").found[name] == f"v.html{place}"
    assert scene_in((folder / "v.html").read_text(encoding="utf-8"))["models"]


OLD = """g (float[N,3] x) => (float[N,3] y) <float[3] w = {1,2,3}> {
    [product] t = Mul(x, w)
    [act] u = LeakyRelu<alpha = 0.1>(t)
    [squash] v = Tanh(u)
    [gone] y = Sqrt(v) }"""
NEW = (
    OLD.replace("0.1", "0.2")
    .replace("2,3}", "2,4}")
    .replace("[gone] y = Sqrt(v)", "[gone] z = Abs(v)\n[last] y = Neg(z)")
)


def test_rows_of_a_difference_lead_to_the_model_that_has_them(tmp_path: Path) -> None:
    """`gone` is the name of a node in both models: the removed one is in the old model."""
    for name, text in (("old", OLD), ("new", NEW)):
        save(from_text(HEAD + text), tmp_path / f"{name}.onnx")
    _, _, err = called("diff", "old.onnx", "new.onnx", "--html", "r.html", "--view", "v.html", cwd=tmp_path)
    assert err == ""
    found = Links(tmp_path / "r.html").found
    assert found["act"] == "v.html#&at=node:act&model=1"
    assert found["w"] == "v.html#&at=tensor:w&model=1"
    assert found["Sqrt gone"] == "v.html#&at=node:gone"
    assert found["Abs gone, Neg last"] == "v.html#&at=node:gone&model=1"


def test_the_summary_of_a_simplification_leads_to_the_first_place(tmp_path: Path) -> None:
    text = "g (float[N] x) => (float[N] y) { [one] a = Identity(x)\n[two] b = Identity(a)\n[act] y = Relu(b) }"
    save(from_text(HEAD + text), tmp_path / "m.onnx")
    _, _, err = called("simplify", "m.onnx", "-o", "s.onnx", "--html", "r.html", "--view", "v.html", cwd=tmp_path)
    assert err == ""
    rules = [target for name, target in Links(tmp_path / "r.html").found.items() if "identity" in name]
    assert rules
    assert set(rules) == {"v.html#&at=node:one&colour=rewrites"}


def test_modules_and_repeated_names() -> None:
    model = chain([f"{op}@net.{module}" for module in "ab" for op in ("Relu", "Abs", "Neg")])
    model.graph[0].name = model.graph[1].name = "same"
    save(model, Path(model_file := "module.onnx"))
    try:
        links = beside([model_file], Report("x", Verdict.DONE)).links
    finally:
        Path(model_file).unlink()
    assert links.of("module", "net.a") == "#net.a"
    assert links.of("module", "net.c") is None
    assert links.of("node", "same") == "#&at=node:same"
    assert links.of("tensor", "v1") == "#&at=node-number:1"
    assert links.of("node", "") is None


def test_the_worst_row_stands_first() -> None:
    table = Table(
        ("node", "error"),
        (("a", "1"), ("b", "9"), ("c", "")),
        places=(Places(0, "node", ("a", "b", "")),),
        worst_first=(1, 0, 2),
    )
    shown = linked(table, View("v.html", lambda kind, name: f"#{kind}:{name}" if name == "b" else None))
    assert shown.rows == ((Cell("b", "v.html#node:b"), Cell("9")), (Cell("a"), Cell("1")), (Cell("c"), Cell("")))


def test_bars_keep_to_their_rows() -> None:
    table = Table(
        ("node", "error"),
        (("a", "1"), ("b", "9"), ("c", "")),
        worst_first=(1, 0, 2),
        bars=(Bars(1, ((0.5,), (3.0,), ()), "share"),),
    )
    assert [row[1].bar for row in linked(table, None).rows] == [(101.0,), (50.0,), ()]
    assert [row[0] for row in linked(table, None).rows] == [Cell("b"), Cell("a"), Cell("c")]


def test_a_page_folds_what_is_one_line_and_shows_its_warnings_above() -> None:
    part = Simplification(2, 2, 0, 0, (), (), 1, switched_off=(Entry(1, "fuse/a", "n", "it differed"),))
    page = to_html(Report("simplify", Verdict.DONE, (part,), headline="h"))
    above, _, folded = page.partition('<details class="part">')
    assert '<p class="warn">switched off fuse/a at n: it differed</p>' in above
    assert "<summary><h2>Simplification</h2> <span>2 → 2 nodes; nothing to do</span></summary>" in folded


def test_nothing_is_written_unless_both_can_be(folder: Path) -> None:
    status, _, err = called("inspect", "m.onnx", "--nodes", "--html", "none/r.html", "--view", "v.html", cwd=folder)
    assert status == 2
    assert "report/not-written" in err
    assert not (folder / "v.html").exists()
    status, _, err = called("inspect", "m.onnx", "--html", "p.html", "--view", "p.html", cwd=folder)
    assert (status, "save/needed" in err) == (2, True)
    status, _, err = called("inspect", "m.onnx", "--view", "m.onnx", cwd=folder)
    assert (status, "save/needed" in err) == (2, True)
    (folder / "notes.txt").write_text("kept")
    status, _, err = called("inspect", "m.onnx", "--view", "notes.txt", cwd=folder)
    assert (status, "save/needed" in err) == (2, True)
    assert sorted(path.name for path in folder.iterdir()) == ["m.onnx", "notes.txt"]


def test_a_torch_model_has_no_view(tmp_path: Path) -> None:
    report = Report("bench", Verdict.DONE, onnxsmith.inspect(from_text(HEAD + TEXT)).parts)
    pages = Pages(str(tmp_path / "r.html"), str(tmp_path / "v.html"), Bench(("net.py:build",)).shown())
    told = write(report, pages)
    assert [found.id for found in told.problems] == ["view/no-file"]
    assert told.verdict is Verdict.FAILED
    assert "view/no-file" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert not (tmp_path / "v.html").exists()


def test_a_command_that_failed_has_no_view(folder: Path) -> None:
    (folder / "broken.onnx").write_bytes(b"\x08\x0a\xff")
    status, _, _ = called("inspect", "broken.onnx", "--html", "r.html", "--view", "v.html", cwd=folder)
    assert status == 2
    assert (folder / "r.html").exists()
    assert not (folder / "v.html").exists()


def test_relative_addresses(tmp_path: Path) -> None:
    assert relative(str(tmp_path / "a b#?.html"), str(tmp_path / "r.html")) == "a%20b%23%3F.html"
    assert unquote(relative(str(tmp_path / "v.html"), str(tmp_path / "deep" / "er" / "r.html"))) == "../../v.html"


def test_the_page_has_the_colours_of_the_view_and_axes() -> None:
    source = to_html(Report("x", Verdict.DONE))
    assert "light-dark(" in source
    assert not re.search(r"prefers-color-scheme", source)
    found = chart.drawn(Chart("t", ("first", "second", "last"), (("c", (1.0, 0.1, 0.01)),), x="order", y="size"))
    assert [text for _, text, _ in found.marks] == ["first", "last"]
    assert (found.x, found.y) == ("order", "size")


def heights(*values: float) -> tuple[list[float], dict[str, float]]:
    """Where a chart draws these values, and its grid lines by text."""
    labels = tuple(f"t{number}" for number in range(len(values)))
    found = chart.drawn(Chart("t", labels, (("c", values),)))
    (points,) = found.curves[0].pieces
    return [float(point.split(",")[1]) for point in points.split()], {text: y for y, text in found.lines}


def test_values_above_one_are_told_apart_on_a_chart() -> None:
    """A long way below 1 leaves two fifths of the height to what lies above it, with its own numbers."""
    (least, one, twice, often), lines = heights(1e-9, 1.0, 2.0, 40.0)
    assert one - often > 0.35 * least
    assert one - twice > 18
    assert twice - often > 60
    assert {"1", "10", "2", "5"} <= lines.keys()
    assert lines["1"] == pytest.approx(one, abs=0.1)
    texts = sorted(lines.values())
    assert min(b - a for a, b in itertools.pairwise(texts)) >= 16


def test_infinite_values_have_a_line_of_their_own() -> None:
    (finite, infinite, zero), lines = heights(3.0, float("inf"), 0.0)
    assert lines["inf"] == infinite == 0.0
    assert finite - infinite > 15
    assert zero == max(finite, infinite, zero)


@pytest.mark.parametrize("values", [(0.0,), (float("inf"),), (1.0, 0.1), (300.0, 2000.0), (1e-7, 1e-6), (5e20, 1e-12)])
def test_every_chart_has_an_axis(values: tuple[float, ...]) -> None:
    drawn, lines = heights(*values)
    assert all(0 <= y <= chart.HEIGHT for y in drawn)
    assert len(lines) >= 2


def test_culprits_come_first_in_the_table_of_layers(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["": 20]> g (float[2,3] x) => (float[2,3] y) <float k = {%s}> '
    body = "{ a = Tanh(x)\n b = Exp(a)\n c = Mul(b, k)\n d = Exp(c)\n y = Exp(d) }"
    sides = [from_text(text % number + body) for number in ("1.0", "1.5")]
    part = onnxsmith.compare(*sides, per_layer=True).report.part(Layers)
    table = next(block for block in part.blocks() if isinstance(block, Table))
    assert part.culprits == ("c",)
    assert table.rows[table.worst_first[0]][0] == "c"
    assert max(part.layers, key=lambda layer: layer.inherited).name != "c"


def test_the_code_of_a_fix_keeps_its_lines() -> None:
    code = "write there:\n    if x.shape[0] > 1:\n        return x"
    page = to_html(Report("export", Verdict.FAILED, problems=(Problem("a/b", "w", fix=code),)))
    assert "    if x.shape[0] &gt; 1:\n        return x" in page
    assert ".problem td { white-space: pre-wrap; }" in page
