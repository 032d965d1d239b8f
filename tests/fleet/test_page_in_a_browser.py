"""The page of a run in Chromium, from disk, with the network off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onnxsmith.cli.render.html_report import to_html as render
from onnxsmith.fleet import tables
from onnxsmith.fleet.page import files
from onnxsmith.fleet.page.content import Origin
from onnxsmith.fleet.row import Outcome, Row
from onnxsmith.fleet.run_list import Place
from onnxsmith.fleet.stores.base import closing, opened
from tests.chromium import FromDisk
from tests.fleet import made_up
from tests.viewer.browser.test_accessibility import AXE

HOSTILE = '</script x><!--<script x></script><img src=x onerror=alert(1)> "quoted" \u202egnp.exe'


def written(folder: Path, cells: dict[Place, Row | None], before: dict[Place, Row | None] | None = None) -> Path:
    """A page of these cells, with a page for each that has a row."""
    runs = {**({"before": before} if before else {}), "now": cells}
    address = made_up.store(folder / "rows.sqlite", runs)
    with closing():
        rows = opened(address)
        since = tables.earlier(rows, "before" if before else "")
        table = tables.matrix(rows, tables.run_of(rows), since)
    files.write(table, folder / "m.html", render, Origin("my plan.toml", "/my plans"))
    return folder / "m.html"


def of(outcomes: dict[str, list[Outcome | None]], settings: list[str], mark: str = "") -> dict[Place, Row | None]:
    """The cells of models by settings. `mark` gives their rows keys of their own."""
    cells: dict[Place, Row | None] = {}
    for model, listed in outcomes.items():
        for setting, outcome in zip(settings, listed, strict=True):
            place = (model, setting, "here")
            key = f"{made_up.key_of(place)}{mark}"
            files = [f"out/{model}"] if outcome is Outcome.DIFFERENT else []
            problem = "gate/worse" if outcome is Outcome.DIFFERENT else ""
            one = made_up.row(place, outcome, key=key, problem=problem, files=files) if outcome is not None else None
            cells[place] = one
    return cells


GOOD = Outcome.DONE
SETTINGS = ["plain", "opset 23", "int8"]
BEFORE = {
    "vision/resnet10.onnx": [GOOD, GOOD, GOOD],
    "vision/resnet9.onnx": [GOOD, GOOD, GOOD],
    "text/bert.onnx": [GOOD, GOOD, Outcome.FAILED],
    "text/llama.onnx": [GOOD, GOOD, GOOD],
}
NOW = {
    "vision/resnet10.onnx": [GOOD, GOOD, GOOD],
    "vision/resnet9.onnx": [GOOD, Outcome.DIFFERENT, GOOD],
    "text/bert.onnx": [GOOD, GOOD, GOOD],
    "text/llama.onnx": [Outcome.CRASHED, GOOD, None],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path, of(NOW, SETTINGS), of(BEFORE, SETTINGS, "0"))


def models(page: Any) -> list[str]:
    return page.locator(".line:visible > [role=rowheader]").all_text_contents()


def cells(page: Any, model: str) -> list[str]:
    line = page.locator(".line", has=page.get_by_role("rowheader", name=model, exact=True))
    return line.locator("[role=gridcell]").all_text_contents()


def focused(page: Any) -> list[str]:
    """The model and the text of the cell that has the focus."""
    return page.evaluate("""() => {
      const at = document.activeElement;
      return [at.closest(".line")?.firstChild.textContent ?? "", at.textContent];
    }""")


def address(page: Any, has: str) -> str:
    """The fragment of the address, once it was written."""
    for _ in range(100):
        found = str(page.evaluate("location.hash"))
        if has in found:
            return found
        page.wait_for_timeout(50)
    raise AssertionError(f"the address never has {has}")


def test_the_worst_stands_first_with_marks_and_counts(from_disk: FromDisk, path: Path) -> None:
    page = from_disk(path)
    assert models(page) == ["text/llama.onnx", "vision/resnet9.onnx", "vision/resnet10.onnx", "text/bert.onnx"]
    assert cells(page, "text/llama.onnx") == ["! crashed▲", "✓ done", "· missing"]
    assert cells(page, "text/bert.onnx") == ["✓ done", "✓ done", "✓ done▽"]
    assert page.locator(".counts [role=row]").all_inner_texts() == [
        "✓ done\n3\n3\n3", "· missing\n·\n·\n1", "≠ different\n·\n1\n·", "! crashed\n1\n·\n·",
    ]  # fmt: skip
    assert page.locator(".chip").all_inner_texts() == ["✓ done 9", "· missing 1", "≠ different 1", "! crashed 1"]
    assert page.locator("#shown").inner_text() == "4 of 4 models"


def test_filters(from_disk: FromDisk, path: Path) -> None:
    page = from_disk(path)
    page.keyboard.press("/")
    page.keyboard.type("VISION net1")
    assert models(page) == ["vision/resnet10.onnx"]
    assert page.locator(".counts [role=row]").first.inner_text() == "✓ done\n1\n1\n1"
    page.locator("#find").fill("")
    page.locator(".chip", has_text="different").click()
    assert models(page) == ["vision/resnet9.onnx"]
    assert page.locator(".line:visible .off").count() == 2, "cells that the filter does not ask for are dim"
    page.locator(".chip", has_text="crashed").click()
    assert models(page) == ["text/llama.onnx", "vision/resnet9.onnx"]
    page.locator(".chip", has_text="different").click()
    page.locator(".chip", has_text="crashed").click()
    page.locator("#changed").check()
    assert models(page) == ["text/llama.onnx", "vision/resnet9.onnx", "text/bert.onnx"]
    page.locator("#find").fill("no such model")
    assert models(page) == []
    assert page.locator("#shown").inner_text() == "0 of 4 models"
    page.locator("#find").fill("")
    assert len(models(page)) == 3


def test_without_another_run_there_is_no_filter_for_changes(from_disk: FromDisk, tmp_path: Path) -> None:
    page = from_disk(written(tmp_path, of(NOW, SETTINGS)), "#changed=1")
    assert not page.locator("#changed").is_visible()
    assert len(models(page)) == 4


def test_orders(from_disk: FromDisk, path: Path) -> None:
    page = from_disk(path)
    by_name = ["text/bert.onnx", "text/llama.onnx", "vision/resnet9.onnx", "vision/resnet10.onnx"]
    page.locator("#sort").select_option("name")
    assert models(page) == by_name
    page.locator(".names button", has_text="model").click()
    assert models(page) == by_name[::-1]
    page.locator("#sort").select_option("plan")
    assert models(page) == list(NOW)
    column = page.locator(".names button", has_text="opset 23")
    column.click()
    assert models(page)[0] == "vision/resnet9.onnx"
    assert page.locator("[aria-sort]").get_attribute("aria-sort") == "descending"
    assert page.locator("#sort").evaluate("one => one.selectedOptions[0].textContent") == "by opset 23"
    column.click()
    assert models(page)[-1] == "vision/resnet9.onnx"


def test_the_address_keeps_what_is_shown(from_disk: FromDisk, path: Path) -> None:
    page = from_disk(path)
    page.locator("#find").fill("resnet")
    page.locator(".chip", has_text="done").click()
    page.locator("#changed").check()
    page.locator("#changed").uncheck()
    page.locator(".names button", has_text="opset 23").click()
    page.locator(".different").last.click()
    hash_ = address(page, "column=opset+23")
    again = from_disk(path, hash_)
    assert again.locator("#find").input_value() == "resnet"
    assert again.locator(".chip[aria-pressed=true]").all_inner_texts() == ["✓ done 9"]
    assert models(again) == models(page) == ["vision/resnet9.onnx", "vision/resnet10.onnx"]
    assert again.locator("#panel h2").inner_text() == "vision/resnet9.onnx"
    assert again.locator("[aria-selected=true]").inner_text() == "≠ different▲"
    again.evaluate("location.hash = '#sort=name'")
    again.locator("#panel").wait_for(state="hidden")
    assert len(models(again)) == 4


def test_an_address_of_another_page_says_what_is_lost(from_disk: FromDisk, path: Path) -> None:
    page = from_disk(path, "#model=gone.onnx&column=fp64&outcome=exploded&by=none")
    for name in ("gone.onnx", "fp64", "exploded", "none"):
        assert name in page.locator("#lost").inner_text()
    assert len(models(page)) == 4


def test_the_panel_tells_all_of_a_cell(from_disk: FromDisk, path: Path) -> None:
    page = from_disk(path)
    page.locator(".line .different").click()
    text = page.locator("#panel").inner_text()
    assert "≠ different ▲ worse: done in before" in text
    assert "a model is worse than its baseline" in text
    assert made_up.FIX in text
    assert "3.50 s" in text
    assert "runner" in text
    assert "onnx 1.20.0" in text
    steps = (
        "cd '/my plans'",
        "onnxsmith simplify vision/resnet9.onnx -o 1-simplify.onnx",
        "onnxsmith compare vision/resnet9.onnx 1-simplify.onnx  # different",
    )
    assert page.locator("#panel pre").all_inner_texts() == [
        "\n".join(steps),
        "onnxsmith fleet why 'my plan.toml' vision/resnet9.onnx --setting 'opset 23'",
        "cd '/my plans'\nonnxsmith view out/vision/resnet9.onnx",
    ]
    link = str(page.locator("#panel a").get_attribute("href"))
    assert (path.parent / link).is_file()
    page.locator(".line .missing").click()
    key = made_up.key_of(("text/llama.onnx", "int8", "here"))
    assert page.locator("#panel pre").all_inner_texts() == [f"onnxsmith fleet cell 'my plan.toml' {key}"]
    page.locator("#panel .close").click()
    assert not page.locator("#panel").is_visible()


def test_a_cell_of_another_environment(from_disk: FromDisk, tmp_path: Path) -> None:
    places = [("a.onnx", "plain", name) for name in ("here", "older")]
    page = from_disk(written(tmp_path, {one: made_up.row(one, Outcome.DIFFERENT) for one in places}))
    page.locator(".line .different").nth(1).click()
    assert "simplify: done, compare: different" in page.locator("#panel").inner_text()
    assert page.locator("#panel pre").all_inner_texts() == [
        "onnxsmith fleet why 'my plan.toml' a.onnx --setting plain --environment older"
    ]


def test_the_link_of_a_cell_opens_its_report(from_disk: FromDisk, path: Path) -> None:
    page = from_disk(path)
    page.locator(".line .crashed").click()
    link = str(page.locator("#panel a").get_attribute("href"))
    report = from_disk(path.parent / link)
    assert "text/llama.onnx plain: crashed" in report.locator("h1 + p").inner_text()


def test_the_keyboard(from_disk: FromDisk, path: Path) -> None:
    page = from_disk(path)
    for _ in range(20):
        page.keyboard.press("Tab")
        if focused(page)[0]:
            break
    assert focused(page) == ["text/llama.onnx", "! crashed▲"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert focused(page) == ["vision/resnet9.onnx", "≠ different▲"]
    page.keyboard.press("Enter")
    assert page.locator("#panel h2").inner_text() == "vision/resnet9.onnx"
    assert page.evaluate("document.activeElement.id") == "panel"
    page.keyboard.press("Escape")
    assert not page.locator("#panel").is_visible()
    assert focused(page) == ["vision/resnet9.onnx", "≠ different▲"]
    page.keyboard.press("End")
    page.keyboard.press("PageDown")
    assert focused(page) == ["text/bert.onnx", "✓ done▽"]
    page.keyboard.press("Control+Home")
    assert focused(page) == ["text/llama.onnx", "! crashed▲"]
    page.keyboard.press("ArrowUp")
    assert focused(page) == ["", "plain"]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert models(page)[0] == "vision/resnet9.onnx", "sorted by the column"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert focused(page) == ["", "model"]
    page.keyboard.press("ArrowDown")
    assert focused(page)[0] == "vision/resnet9.onnx"


def test_a_filter_keeps_a_cell_that_tab_reaches(from_disk: FromDisk, path: Path) -> None:
    page = from_disk(path)
    page.locator(".line .crashed").click()
    page.locator("#find").fill("bert")
    assert page.locator("#grid [tabindex='0']:visible").count() == 1
    page.locator("#find").fill("nothing")
    assert page.locator("#grid [tabindex='0']:visible").count() == 1


def test_names_come_from_strangers(from_disk: FromDisk, tmp_path: Path) -> None:
    place = (HOSTILE, HOSTILE + "2", "here")
    one = made_up.row(place, Outcome.FAILED, headline=HOSTILE, problem=HOSTILE, machine=HOSTILE, files=["a'b.onnx"])
    page = from_disk(written(tmp_path, {place: one}))
    page.locator(".line .failed").hover()
    page.locator(".line .failed").click()
    shown = HOSTILE.replace("\u202e", "\\u{202e}")
    assert models(page) == [shown]
    assert page.locator("#panel h2").inner_text() == shown
    assert page.locator("img").count() == 0
    assert page.locator("#panel pre").last.inner_text().endswith("onnxsmith view 'a'\"'\"'b.onnx'")
    again = from_disk(path := tmp_path / "m.html", address(page, "column="))
    assert again.locator("#panel h2").inner_text() == shown
    assert path.is_file()


def test_rows_are_drawn_when_they_come_near(from_disk: FromDisk, tmp_path: Path) -> None:
    settings = [f"setting{number:02d}" for number in range(12)]
    outcomes: dict[str, list[Outcome | None]] = {f"model{number:03d}.onnx": [GOOD] * 12 for number in range(199)}
    outcomes["model199.onnx"] = [GOOD] * 11 + [Outcome.FAILED]
    page = from_disk(written(tmp_path, of(outcomes, settings)), "#sort=plan")
    page.locator(".line [role=gridcell]").first.wait_for()
    drawn = "document.querySelectorAll('.line > [role=gridcell]').length"
    assert page.evaluate(drawn) < 100 * 12
    page.locator(".line [role=gridcell]").first.focus()
    page.keyboard.press("Control+End")
    assert focused(page) == ["model199.onnx", "✕"]
    assert page.locator(".line .failed").is_visible()
    assert page.evaluate("document.querySelector('.names').getBoundingClientRect().top") >= 0, "names stay in sight"
    page.locator(".chip", has_text="failed").click()
    assert models(page) == ["model199.onnx"]


CONTRASTS = """() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const parts = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const [red, green, blue] = colour.slice(0, 3).map((part) => {
      const value = part / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = parts(getComputedStyle(one).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility()) continue;
    const [one, two] = [luminance(parts(getComputedStyle(element).color)), luminance(behind(element))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    found.push([`${element.className} ${element.textContent.slice(0, 20)}`, ratio]);
  }
  return found;
}"""
"""The contrast of each text with what is behind it, as WCAG 2.2 defines it."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_can_be_read(from_disk: FromDisk, tmp_path: Path, theme: str) -> None:
    every = [[one, Outcome.DONE] for one in Outcome]
    outcomes: dict[str, list[Outcome | None]] = {f"{number}.onnx": [*row] for number, row in enumerate(every)}
    outcomes["missing.onnx"] = [None, Outcome.DIFFERENT]
    before = {name: [GOOD, Outcome.FAILED] for name in outcomes}
    path = written(tmp_path, of(outcomes, ["one", "two"]), of(before, ["one", "two"], "0"))
    page = from_disk(path, "#model=missing.onnx&column=two", color_scheme=theme)
    page.locator(".line .lost").wait_for()
    assert len({mark[0] for mark in page.locator(".line > [role=gridcell]").all_text_contents()}) == len(Outcome) + 1, (
        "a mark for each"
    )
    for step in range(2):
        found = page.evaluate(CONTRASTS)
        assert len(found) > 40
        assert [one for one in found if one[1] < 4.5] == []
        if not step:
            page.locator(".chip", has_text="failed").click()


@pytest.mark.skipif(not AXE.exists(), reason="`npm ci` was not run in viewer: `make test` does where npm is")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_fault(from_disk: FromDisk, path: Path, theme: str) -> None:
    from tests.viewer.browser.test_accessibility import faults

    page = from_disk(path, color_scheme=theme)
    assert faults(page) == []
    page.locator(".line .different").click()
    page.locator(".chip", has_text="crashed").click()
    assert faults(page) == []


def test_a_narrow_window(from_disk: FromDisk, path: Path) -> None:
    page = from_disk(path, size=(400, 800))
    page.locator(".line .crashed").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.locator("#panel h2").is_visible()
