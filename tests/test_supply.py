"""What `tools/supply.py` says of the parts of a release: a wrong one is found, and no answer is no pass."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tools import supply


def auditor(folder: Path, trap: list[str], site: list[dict[str, object]]) -> Path:
    """A program that answers as pip-audit does: `trap` are the holes of the package that is known to have some."""
    known = [{"name": "jinja2", "version": "2.10", "vulns": trap}]
    program = folder / "auditor"
    program.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        f"print(json.dumps({{'dependencies': {known!r} if '-r' in sys.argv else {site!r}}}))\n"
    )
    program.chmod(0o755)
    return program


FINE: list[dict[str, object]] = [{"name": "numpy", "version": "2.4.0", "vulns": []}]


@pytest.mark.skipif(os.name == "nt", reason="the program is a script")
def test_a_known_hole_stops_the_release(tmp_path: Path) -> None:
    bad: list[dict[str, object]] = [*FINE, {"name": "old", "version": "1", "vulns": ["CVE"]}]
    with pytest.raises(supply.SupplyError, match="old 1"):
        supply.audited(tmp_path, tmp_path, auditor=auditor(tmp_path, ["CVE"], bad))
    assert supply.audited(tmp_path, tmp_path, auditor=auditor(tmp_path, ["CVE"], FINE)) == ""


@pytest.mark.skipif(os.name == "nt", reason="the program is a script")
def test_an_auditor_that_finds_nothing_anywhere_is_no_pass(tmp_path: Path) -> None:
    assert "could not ask" in supply.audited(tmp_path, tmp_path, auditor=auditor(tmp_path, [], FINE))
    unknown: list[dict[str, object]] = [{"name": name, "skip_reason": "not found"} for name in ("own", "onnxsmith")]
    said = supply.audited(tmp_path, tmp_path, ours="onnxsmith", auditor=auditor(tmp_path, ["CVE"], unknown))
    assert said == "1 packages are not in the index: own"


def test_two_builds_that_differ_are_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "a.whl", tmp_path / "b.whl"
    first.write_bytes(b"1")
    second.write_bytes(b"1")
    assert len(supply.same_bytes(first, second)) == 64
    second.write_bytes(b"2")
    with pytest.raises(supply.SupplyError, match="differ"):
        supply.same_bytes(first, second)


def test_every_tool_of_a_release_has_its_hashes() -> None:
    text = (Path(supply.__file__).parent / "release_tools.txt").read_text(encoding="utf-8")
    pinned = [line for line in text.splitlines() if "==" in line and not line.lstrip().startswith("#")]
    blocks = text.split("\n")
    wanted = (Path(supply.__file__).parent / "release_tools.in").read_text(encoding="utf-8").split()
    assert {one.partition(" ")[0] for one in pinned} >= set(wanted)
    for at, line in enumerate(blocks):
        if line in pinned:
            assert "--hash=sha256:" in blocks[at + 1], line
