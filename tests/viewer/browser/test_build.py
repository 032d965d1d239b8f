"""The built page is what its source gives, and its unit tests pass in Node.js."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.viewer.browser.page import BUILT, ROOT

VIEWER = ROOT / "viewer"
LIMIT = 300_000
"""Bytes of the built page. A choice: a page of a small model stays small."""

needs_npm = pytest.mark.skipif(
    shutil.which("node") is None or not (VIEWER / "node_modules" / "esbuild").is_dir(),
    reason="no Node.js, or `npm ci` was not run in viewer: `make test` does where npm is",
)


def node(*words: str) -> None:
    done = subprocess.run(["node", *words], cwd=VIEWER, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@needs_npm
def test_the_built_page_is_what_its_source_gives(tmp_path: Path) -> None:
    node("build.mjs", "--into", str(tmp_path))
    for name in ("viewer.js", "viewer.css"):
        assert (tmp_path / name).read_bytes() == (BUILT / name).read_bytes(), (
            f"{name} is not built from viewer/src: run `make viewer`"
        )


@needs_npm
def test_types() -> None:
    node("node_modules/typescript/bin/tsc", "--noEmit")


@needs_npm
def test_units() -> None:
    node("build.mjs", "--tests", "build/tests")
    node("--test", "build/tests/")


def test_the_page_is_small() -> None:
    assert sum(path.stat().st_size for path in BUILT.iterdir()) <= LIMIT


def test_the_page_can_stand_inside_html() -> None:
    assert "</script" not in (BUILT / "viewer.js").read_text(encoding="utf-8").lower()
    assert "</style" not in (BUILT / "viewer.css").read_text(encoding="utf-8").lower()


def test_names_never_become_html() -> None:
    for path in (VIEWER / "src").glob("*.ts"):
        text = path.read_text(encoding="utf-8")
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "fetch(",
            "XMLHttpRequest",
        ):
            assert word not in text, f"{path.name} uses {word}"
