"""The page of a run, and the folder with the reports of its cells. No model is run."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.fleet import FleetCell, FleetMatrix
from onnxsmith.base.report.parts.written_files import Written
from onnxsmith.cli import application
from onnxsmith.cli.render.html_report import to_html as render
from onnxsmith.fleet import tables
from onnxsmith.fleet.page import files
from onnxsmith.fleet.page.content import Content, Origin
from onnxsmith.fleet.page.html_page import to_html
from onnxsmith.fleet.row import Outcome, Row
from onnxsmith.fleet.stores.base import closing, opened
from tests import gallery
from tests.conftest import Refused
from tests.fleet import made_up

HOSTILE = '</script x><!--<script x></script><img src=x onerror=alert(1)> "quoted" \u202egnp.exe'
WORSE = "gate/worse"


def place(model: str, setting: str = "fast") -> tuple[str, str, str]:
    return model, setting, "here"


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A run of three models with two settings, and one before it. One cell has no row."""
    before = {place("a.onnx"): made_up.row(place("a.onnx"), key="0a")}
    now: dict[tuple[str, str, str], Row | None] = {
        place("a.onnx"): made_up.row(place("a.onnx"), Outcome.DIFFERENT, headline="output 3 differs", problem=WORSE),
        place("a.onnx", "exact"): made_up.row(place("a.onnx", "exact"), files=["out/a.onnx", "out/a.data"]),
        place("b.onnx"): made_up.row(place("b.onnx"), Outcome.CRASHED),
        place("c.onnx"): None,
        place("c.onnx", "exact"): made_up.row(place("c.onnx", "exact")),
    }
    return made_up.store(tmp_path / "rows.sqlite", {"first": before, "second": now})


def table(store: str, since: str = "") -> FleetMatrix:
    with closing():
        rows = opened(store)
        return tables.matrix(rows, tables.run_of(rows), tables.earlier(rows, since))


def data_in(page: Path) -> dict[str, Any]:
    source = page.read_text(encoding="utf-8")
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', source, re.DOTALL)
    return json.loads(text)


class Elements(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}


def test_the_command_writes_the_page_and_the_reports(store: str, tmp_path: Path) -> None:
    page = tmp_path / "matrix.html"
    words = ["fleet", "show", store, "--since", "first", "--page", str(page), "--json"]
    printed, status = gallery.called(application.main, words)
    assert status == 1, "a cell is worse than in the first run"
    report = Report.from_json(printed)
    assert list(report.part(Written).files) == [str(page), f"{tmp_path / 'matrix-cells'}/"]
    data = data_in(page)
    assert (data["run"], data["since"]) == ("second", "first")
    assert data["models"] == ["a.onnx", "b.onnx", "c.onnx"]
    assert [column[:2] for column in data["columns"]] == [["fast", "fast"], ["exact", "exact"]]
    assert data["outcomes"] == ["done", "missing", "different", "crashed"]
    assert data["titles"][WORSE], "the page of the problem says what it is in one line"
    worse = data["cells"][0][0]
    texts = [data["texts"][number] for number in worse[3:6]]
    assert (worse[:3], texts[:2]) == ([2, 0, 1], ["output 3 differs", WORSE])
    assert made_up.FIX in data["texts"]
    assert data["cells"][1][1] is None, "this model has no such setting"
    reports = sorted(file.name for file in (tmp_path / "matrix-cells").iterdir())
    keys = [made_up.key_of(place(*one)) for one in (("a.onnx",), ("a.onnx", "exact"), ("b.onnx",), ("c.onnx", "exact"))]
    assert reports == sorted([*(f"{key}.html" for key in keys), "cells.json"])
    assert f"{texts[2]}.html" in reports


def test_cells_of_another_environment_have_no_commands_of_this_python(tmp_path: Path) -> None:
    """The steps ran with another Python; `fleet why` runs them with it."""
    places = [("a.onnx", "two words", name) for name in ("here", "older")]
    address = made_up.store(tmp_path / "s.sqlite", {"r": {one: made_up.row(one) for one in places}})
    files.write(table(address), tmp_path / "m.html", render, Origin("plan.toml", "/plans"))
    assert [column[2:] for column in data_in(tmp_path / "m.html")["columns"]] == [["here", False], ["older", True]]
    here, older = (
        html.unescape((tmp_path / "m-cells" / f"{made_up.key_of(one)}.html").read_text(encoding="utf-8"))
        for one in places
    )
    typed = "onnxsmith simplify a.onnx -o 1-simplify.onnx"
    again = "onnxsmith fleet why plan.toml a.onnx --setting 'two words' --environment older"
    assert (typed in here, typed in older) == (True, False)
    assert (again in here, again in older) == (False, True)


def test_the_report_of_a_cell_has_the_reports_of_its_steps(store: str, tmp_path: Path) -> None:
    files.write(table(store), tmp_path / "m.html", render, Origin("plan.toml", "/plans"))
    whole, crashed = (
        (tmp_path / "m-cells" / f"{made_up.key_of(place(model))}.html").read_text(encoding="utf-8")
        for model in ("a.onnx", "b.onnx")
    )
    assert "a.onnx fast: different: output 3 differs" in whole
    assert whole.count("Report of a step") == 2
    assert "cd /plans\nonnxsmith simplify a.onnx -o 1-simplify.onnx\nonnxsmith compare a.onnx 1-simplify.onnx" in whole
    assert "simplify: a note" in whole
    assert "--per-layer" in whole
    assert "Segmentation fault" in crashed


def test_a_report_of_a_step_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    one = made_up.row(place("a.onnx"))
    report = one.steps[0].report
    assert report is not None
    report["parts"] = [{"kind": "of_another_version"}]
    address = made_up.store(tmp_path / "rows.sqlite", {"only": {place("a.onnx"): one}})
    files.write(table(address), tmp_path / "m.html", render)
    source = (tmp_path / "m-cells" / f"{one.key}.html").read_text(encoding="utf-8")
    assert (
        "the report of step 1, simplify, is left out: the report has a part of the kind &#39;of_another_version&#39;"
        in source
    )
    assert "cd " not in source, "only the store is known, so the folder is not"


def test_names_come_from_strangers(tmp_path: Path) -> None:
    where = (HOSTILE, HOSTILE + "2", HOSTILE + "3")
    one = made_up.row(where, Outcome.FAILED, headline=HOSTILE, problem=HOSTILE, machine=HOSTILE,
                      versions={HOSTILE: HOSTILE}, files=[HOSTILE + ".onnx"])  # fmt: skip
    address = made_up.store(tmp_path / "rows.sqlite", {HOSTILE: {where: one}})
    files.write(table(address), tmp_path / "m.html", render, Origin(HOSTILE, HOSTILE))
    source = (tmp_path / "m.html").read_text(encoding="utf-8")
    elements = Elements(source)
    assert elements.tags.count("script") == 2
    assert "img" not in elements.tags
    assert not elements.attributes & {"src", "href", "onerror", "onload", "style"}
    data = data_in(tmp_path / "m.html")
    assert (data["run"], data["models"]) == (HOSTILE, [HOSTILE])
    assert "img" not in Elements((tmp_path / "m-cells" / f"{one.key}.html").read_text(encoding="utf-8")).tags


def test_the_browser_is_told_to_run_one_script_and_to_ask_for_nothing(store: str, tmp_path: Path) -> None:
    files.write(table(store), tmp_path / "m.html", render)
    source = (tmp_path / "m.html").read_text(encoding="utf-8")
    for kind, element in (("script", "<script>(.*?)</script>"), ("style", "<style>(.*?)</style>")):
        (text,) = re.findall(element, source, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in source
    assert "default-src 'none'" in source
    assert not re.search(r"https?://|url\(|@import|innerHTML|eval\(", source)


def test_cells_with_one_key_share_a_page_that_names_them(tmp_path: Path) -> None:
    one = made_up.row(place("a.onnx"))
    cells = {place("a.onnx"): one, place("a.onnx", "same"): one}
    files.write(table(made_up.store(tmp_path / "r.sqlite", {"only": cells})), tmp_path / "m.html", render)
    (page,) = (tmp_path / "m-cells").glob("*.html")
    assert "this cell and a.onnx same need the same work" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(("every", "reports", "left_out"), [(False, 2, 2), (True, 4, 0)])
def test_of_many_cells_those_that_are_done_have_no_page(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, every: bool, reports: int, left_out: int
) -> None:
    monkeypatch.setattr(files, "ALL_UP_TO", 4)
    page = tmp_path / "m.html"
    words = ["fleet", "show", store, "--page", str(page), *(["--every-cell"] if every else [])]
    printed, _ = gallery.called(application.main, words)
    assert len(list((tmp_path / "m-cells").glob("*.html"))) == reports
    assert ("no report page was written for 2 cells" in printed) is (left_out > 0)
    data = data_in(page)
    assert data["leftOut"] == left_out
    assert data["every"].endswith(f"--page {page} --every-cell")


def test_a_table_of_8000_cells_is_small() -> None:
    """200 models with 40 settings, each with a headline, two commands and a time of its own."""
    places = [(f"models/family{model % 17}/model_{model:03d}.onnx", f"setting{setting:02d}", "here")
              for model in range(200) for setting in range(40)]  # fmt: skip
    rows = [
        made_up.row(place, Outcome.FAILED if number % 15 == 0 else Outcome.DONE, headline=f"{place[0]}: {number} nodes")
        for number, place in enumerate(places)
    ]
    cells = [
        FleetCell(*place, one.outcome.value, one.headline, one.problem, one.seconds, one.key)
        for place, one in zip(places, rows, strict=True)
    ]
    content = Content(FleetMatrix("run", "rows.sqlite", tuple(cells)), Origin("plan.toml"))
    for cell, one in zip(cells, rows, strict=True):
        content.add(cell, one, cell.key if one.outcome is Outcome.FAILED else "")
    assert len(to_html(content.data("./m-cells", 0, ""))) < 1_500_000


def test_a_page_replaces_an_older_one_with_its_folder(store: str, tmp_path: Path) -> None:
    page, folder = tmp_path / "m.html", tmp_path / "m-cells"
    files.write(table(store), page, lambda _: "old")
    older = made_up.store(tmp_path / "other.sqlite", {"only": {place("d.onnx"): made_up.row(place("d.onnx"))}})
    files.write(table(older), page, lambda _: "new")
    assert data_in(page)["models"] == ["d.onnx"]
    assert [file.read_text() for file in folder.glob("*.html")] == ["new"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["m-cells", "m.html", "other.sqlite", "rows.sqlite"]


@pytest.mark.parametrize("fails", ["a report", "the page"])
def test_what_fails_leaves_the_older_page(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused, fails: str
) -> None:
    page, folder = tmp_path / "m.html", tmp_path / "m-cells"
    files.write(table(store), page, lambda _: "old")
    before = page.read_bytes()

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    if fails == "the page":
        monkeypatch.setattr(Path, "replace", full)
    with refused("save/failed"):
        files.write(table(store), page, full if fails == "a report" else lambda _: "new")
    assert page.read_bytes() == before
    assert {file.read_text() for file in folder.glob("*.html")} == {"old"}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["m-cells", "m.html", "rows.sqlite"]


def test_a_first_page_that_fails_leaves_nothing(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    whole = table(store)
    monkeypatch.setattr(Path, "replace", refuse)
    with refused("save/failed"):
        files.write(whole, tmp_path / "m.html", lambda _: "new")
    assert [one.name for one in tmp_path.iterdir()] == ["rows.sqlite"]


def test_a_run_whose_page_cannot_be_written_keeps_its_table(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    printed, status = gallery.called(application.main, ["fleet", "show", store, "--page", str(tmp_path / "m.html")])
    assert status == 2
    assert "save/failed: the disk is full" in printed
    assert "1 crashed" in printed


def a_foreign_folder(page: Path) -> Path:
    folder = page.with_name("m-cells")
    folder.mkdir()
    (folder / "thesis.txt").write_text("kept")
    return folder


def a_file(page: Path) -> Path:
    page.with_name("m-cells").write_text("kept")
    return page.with_name("m-cells")


def a_link(page: Path) -> Path:
    (page.parent / "elsewhere").mkdir()
    page.with_name("m-cells").symlink_to(page.parent / "elsewhere")
    return page.with_name("m-cells")


def an_added_file(page: Path) -> Path:
    (page.parent / "m-cells").mkdir()
    (page.parent / "m-cells" / "cells.json").write_text('{"format": 1, "page": "m.html", "files": []}')
    (page.parent / "m-cells" / "notes.txt").write_text("kept")
    return page.parent / "m-cells" / "notes.txt"


def another_json(page: Path) -> Path:
    (page.parent / "m-cells").mkdir()
    (page.parent / "m-cells" / "cells.json").write_text('{"format": 2}')
    return page.parent / "m-cells" / "cells.json"


def a_folder_for_the_page(page: Path) -> Path:
    page.mkdir()
    return page


def a_link_for_the_page(page: Path) -> Path:
    page.symlink_to(page.with_name("target.html"))
    return page


@pytest.mark.parametrize(
    "there",
    [a_foreign_folder, a_file, a_link, an_added_file, another_json, a_folder_for_the_page, a_link_for_the_page],
)
def test_what_is_not_ours_is_not_replaced(
    store: str, tmp_path: Path, refused: Refused, there: Callable[[Path], Path]
) -> None:
    kept = there(tmp_path / "m.html")
    before = sorted(str(one) for one in tmp_path.rglob("*"))
    with refused("fleet/page") as refusal:
        files.write(table(store), tmp_path / "m.html", render)
    assert sorted(str(one) for one in tmp_path.rglob("*")) == before
    assert kept.exists() or kept.is_symlink()
    other = refusal.problem.fix.rpartition("--page ")[2]
    files.write(table(store), other, render)
    assert Path(other).is_file()


def test_the_options_are_refused_before_the_run(store: str, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("no plan")
    (tmp_path / "m.onnx").write_text("a model")
    for words, id_ in (
        (["--every-cell"], "fleet/page"),
        (["--page", str(tmp_path / "m.onnx")], "save/needed"),
        (["--page", str(tmp_path / "plan.toml")], "save/needed"),
        (["--page", str(tmp_path / "none" / "m.html")], "save/no-folder"),
    ):
        printed, status = gallery.called(application.main, ["fleet", "run", str(tmp_path / "plan.toml"), *words])
        assert (status, id_ in printed) == (2, True), printed
