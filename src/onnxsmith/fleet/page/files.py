"""Writes the page and the folder with the pages of its cells, both at once or not at all."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from onnxsmith.base import devices, folders, user_files
from onnxsmith.base.clock import advance, stage
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.fleet import FleetCell, FleetMatrix
from onnxsmith.base.words import pasted, pasted_words
from onnxsmith.fleet import cell_report
from onnxsmith.fleet.page.content import Content, Origin, seeing
from onnxsmith.fleet.page.html_page import to_html
from onnxsmith.fleet.plan import HERE
from onnxsmith.fleet.row import Outcome, Row
from onnxsmith.fleet.run_list import Place
from onnxsmith.fleet.stores.base import closing, opened
from onnxsmith.graph.files.output_paths import free_path, refuse_other_than_page
from onnxsmith.graph.files.save import disk_problems

Render = Callable[[Report], str]
"""A function that returns a report as an HTML page."""

ALL_UP_TO = 500
"""The largest number of cells of which each gets a page. A choice: 500 pages are 6 MB."""
_INDEX = "cells.json"
"""The file that tells the folder of a page from any other. It lists the files of the folder."""
_FORMAT = 1


@dataclass(frozen=True)
class WrittenPage:
    """What was written: the page and the folder with their sizes in bytes, the number of pages in the folder, and the
    number of cells that have a row and no page."""

    files: dict[str, int]
    reports: int
    left_out: int


def refuse(path: str | Path) -> None:
    """Raises if the page, or the folder of its cells, would replace something else, or cannot be written there.

    Raises:
        OnnxsmithError: `fleet/page`; `save/no-folder`; `save/needed` if the file is no HTML page.
    """
    target = Path(path)
    if target.is_dir() or target.is_symlink() or devices.is_device(target) or not target.name:
        kind = "a folder" if target.is_dir() else "a link" if target.is_symlink() else "no file"
        raise problem(
            "fleet/page",
            "the page of a fleet is a file, and a folder beside the file has the reports of the cells",
            where=str(path),
            why=f"the path is {kind}",
            fix=f"give the path of a new file: --page {pasted(free_path(_inside(target)))}",
        )
    refuse_missing(target.absolute().parent)
    refuse_other_than_page(str(target))
    _refuse_foreign(cells_folder(target), target)


def _inside(target: Path) -> Path:
    """Returns a path for a page that is near a path which cannot be one."""
    return target / "fleet.html" if target.is_dir() else target.with_name("fleet.html")


def cells_folder(target: Path) -> Path:
    """Returns the folder for the pages of cells: `matrix-cells` for `matrix.html`."""
    return target.with_name(f"{target.stem}-cells")


def _refuse_foreign(folder: Path, target: Path) -> None:
    if not os.path.lexists(folder):
        return
    why = _foreign(folder)
    if why:
        raise problem(
            "fleet/page",
            f"{folder.name} is not a folder of cells that onnxsmith wrote",
            where=str(folder),
            why=f"{why}; writing a page replaces this folder by the reports of the cells",
            fix=f"give the page another name: --page {pasted(_free(target))}",
        )


def _free(target: Path) -> Path:
    """Returns a path for the page at which neither a page nor a folder of cells exists."""
    taken: list[Path] = []
    while True:
        path = free_path(target.with_name(f"{target.stem}_2{target.suffix}"), taken)
        if not os.path.lexists(cells_folder(path)):
            return path
        taken.append(path)


def _foreign(folder: Path) -> str:
    """Returns why a folder is not ours; "" if it is."""
    if folder.is_symlink() or not folder.is_dir():
        return "it is a link" if folder.is_symlink() else "it is a file"
    present = {file.name for file in folder.iterdir()}
    if not present:
        return ""
    try:
        index = user_files.parse_json(user_files.read_utf8(folder / _INDEX))
        listed = {*index["files"], _INDEX} if index["format"] == _FORMAT else None
    except (OSError, ValueError, KeyError, TypeError):
        listed = None
    if listed is None:
        return f"the folder has no {_INDEX} that this version can read"
    added = sorted(present - listed)
    return f"the folder has files that onnxsmith did not write, such as {added[0]}" if added else ""


@closing()
def write(
    table: FleetMatrix, path: str | Path, render: Render, origin: Origin | None = None, *, every: bool = False
) -> WrittenPage:
    """Writes the page of a run and the pages of its cells, in place of older ones. `render` makes the page of a report.
    Of more than 500 cells, only those that are not `done` get a page, unless `every`.

    Raises:
        OnnxsmithError: `fleet/page`, `save/…`, and the errors of the store.
    """
    origin, target = origin or Origin(), Path(path)
    refuse(target)
    folder = cells_folder(target)
    refused = disk_problems(target, "the page could not be written")
    with stage("write the page"), refused, folders.beside(target) as beside:
        staged, page = folders.OwnPath(beside / folder.name), beside / target.name
        staged.mkdir()
        reports, left_out, content = _with_reports(table, staged, render, origin, every=every)
        sizes = {file.name: file.stat().st_size for file in staged.iterdir()}
        _write_index(OwnPath(staged / _INDEX), target, sizes)
        address = f"./{quote(folder.name, safe='', errors='replace')}"
        html = to_html(content.data(address, left_out, _every_command(table, origin, path)))
        page.write_bytes(html.encode(errors="backslashreplace"))
        files = {str(target): page.stat().st_size, f"{folder}{os.sep}": sum(sizes.values())}
        _refuse_foreign(folder, target)  # it may have come while the pages were written
        _place(page, target, staged, folder)
    return WrittenPage(files, reports, left_out)


def _place(page: Path, target: Path, staged: Path, folder: Path) -> None:
    """Moves the folder and the page to their targets. If one of them cannot be moved, both are as they were."""
    with folders.moved(staged, folder, staged.parent):
        folders.place(page, target)


def _with_reports(
    table: FleetMatrix, staged: OwnPath, render: Render, origin: Origin, *, every: bool
) -> tuple[int, int, Content]:
    """Writes the pages of cells into a folder. Returns their number, the number of cells without one, and the data of
    the page."""
    store, content = opened(table.store), Content(table, origin)
    places: dict[str, list[Place]] = defaultdict(list)
    for cell in table.cells:
        places[cell.key].append((cell.model, cell.setting, cell.environment))
    all_of_them = every or len(table.cells) <= ALL_UP_TO
    written: set[str] = set()
    left_out = 0
    for number, cell in enumerate(table.cells):
        advance("write the page", number, len(table.cells))
        row = store.row(cell.key)
        name = ""
        if row is not None and (all_of_them or cell.outcome != str(Outcome.DONE)):
            name = cell.key
            if name not in written:
                html = render(_report(cell, row, places[cell.key], origin))
                (staged / f"{name}.html").write_bytes(html.encode(errors="backslashreplace"))
                written.add(name)
        left_out += row is not None and not name
        content.add(cell, row, name)
    return len(written), left_out, content


def _report(cell: FleetCell, row: Row, places: Sequence[Place], origin: Origin) -> Report:
    if cell.environment == HERE:
        report = cell_report.of_row("fleet cell", row, places[0], origin.folder, whole=True)
        notes = list(report.notes)
    else:  # the commands would run with another Python
        report = cell_report.of_row("fleet cell", row, places[0], origin.folder, whole=True, typed=lambda _: "")
        again = f"`{seeing(cell, origin)}` runs the steps again in that environment, and shows their commands"
        notes = [*report.notes, f"the steps ran with the Python of the environment {cell.environment}: {again}"]
    notes += [
        f"this cell and {cell_report.named(place)} need the same work, which was computed once" for place in places[1:]
    ]
    return replace(report, notes=tuple(notes))


def _write_index(index: OwnPath, target: Path, sizes: Mapping[str, int]) -> None:
    data = {"format": _FORMAT, "page": target.name, "files": sorted(sizes)}
    index.write_bytes(json.dumps(data, indent=1).encode())


def _every_command(table: FleetMatrix, origin: Origin, path: str | Path) -> str:
    """Returns the command that writes the pages of all cells."""
    since = ["--since", table.since] if table.since else []
    store = ["--store", origin.store] if origin.store else []
    words = ["onnxsmith", "fleet", "show", origin.plan or table.store, "--name", table.run, *since, *store]
    return pasted_words([*words, "--page", str(path), "--every-cell"])
