"""Decides whether a folder may be written, and moves a finished bundle into place."""

from __future__ import annotations

import json
from pathlib import Path

from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import problem
from onnxsmith.graph.files.digest import sha256


def check_target(target: Path) -> None:
    """Raises if the folder cannot be made at `target`.

    Raises:
        OnnxsmithError: `save/no-folder`, `bundle/folder`.
    """
    parent = target.absolute().parent
    if not target.name:
        raise problem("bundle/folder", "the output path does not name a new folder", where=str(target), fix="-o bundle")
    refuse_missing(parent)


def refuse_taken(target: Path, index: str, *, force: bool) -> None:
    """Raises if a new bundle would overwrite anything but an older bundle. An older bundle is replaced if its files are
    unchanged, or with `force`.

    Raises:
        OnnxsmithError: `bundle/folder`, `bundle/changed`.
    """
    if target.is_symlink() or target.is_file():
        raise problem(
            "bundle/folder",
            "the output is a link or a file",
            where=str(target),
            why="a bundle is a folder of its own",
            fix="give the path of a new folder: -o bundle",
        )
    if not target.is_dir() or not any(target.iterdir()):
        return
    listed = _listed(target / index)
    if listed is None:
        raise problem(
            "bundle/folder",
            "the folder is not empty, and not a bundle",
            where=str(target),
            why=f"it has no {index}, so its files are not onnxsmith's to remove, not even with --force",
            fix="give the path of a new folder: -o bundle",
        )
    here = {file.relative_to(target).as_posix() for file in target.rglob("*") if not file.is_dir()}
    here = {name for name in here if "__pycache__/" not in f"/{name}"}
    changed = {name for name, digest in listed.items() if name in here and sha256(target / name) != digest}
    touched = sorted((here - set(listed) - {index}) | changed)
    if touched and not force:
        raise problem(
            "bundle/changed",
            f"the bundle there has files that were added or changed since: {', '.join(touched[:5])}",
            where=str(target),
            why="they would be lost",
            fix="give another folder, or add --force to replace the whole folder",
        )


def move(place: Path, target: Path, beside: Path) -> None:
    """Moves the finished folder to its target. An older bundle is removed only after the new bundle is in place."""
    old = beside / "replaced"
    if target.is_dir():
        target.rename(old)
    try:
        place.rename(target)
    except BaseException:
        if old.is_dir():
            old.rename(target)
        raise


def _listed(index: Path) -> dict[str, str] | None:
    """Returns the digests in an index by the file's path in the bundle; None if the file is not the index of a
    bundle."""
    try:
        held = json.loads(index.read_text(encoding="utf-8"))
        files = held["files"]
        return dict(files) if held["format"] == 1 and "form" in held else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
