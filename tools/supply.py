"""What a release is made of: the same bytes twice, a bill of materials, and whether a known hole is in it.

`tools/release.py` takes these steps. What could not be asked is returned as text, so that the release names it.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

BIN = Path(sys.executable).parent
KNOWN_HOLE = "jinja2==2.10"
"""A release with published holes (CVE-2019-10906 and later). An auditor that finds none there has asked nobody."""


class SupplyError(Exception):
    """A step found what must not be released."""


def digest(path: Path) -> str:
    """Returns the SHA-256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def same_bytes(first: Path, second: Path) -> str:
    """Compares two builds of one wheel, and returns their digest.

    Raises:
        SupplyError: the builds differ.
    """
    found = digest(first), digest(second)
    if found[0] != found[1]:
        raise SupplyError(f"two builds of {first.name} differ: {found[0]} and {found[1]}")
    return found[0]


def bill_of_materials(python: Path, target: Path) -> int:
    """Writes what is installed for `python` as CycloneDX, and returns the number of components.

    Raises:
        SupplyError: nothing is in it.
    """
    asked = [str(BIN / "cyclonedx-py"), "environment", str(python), "--of", "JSON", "--output-reproducible", "-o"]
    done = subprocess.run([*asked, str(target)], capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise SupplyError(f"cyclonedx-py ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    components = json.loads(target.read_text(encoding="utf-8")).get("components", [])
    if not components:
        raise SupplyError(f"{target.name} names no component")
    return len(components)


def audited(site: Path, folder: Path, *, ours: str = "", auditor: Path = BIN / "pip-audit") -> str:
    """Asks the index of Python packages for known holes in what is installed in `site`. Returns why the answer says
    nothing, or "". The package `ours` is not in the index yet. A list in `folder` names one package with a hole: an
    auditor that does not find this one could not ask.

    Raises:
        SupplyError: a package has a known hole.
    """
    trap = folder / "known_hole.txt"
    trap.write_text(f"{KNOWN_HOLE}\n", encoding="utf-8")
    caught, _ = _pip_audit(auditor, ["-r", str(trap), "--no-deps", "--disable-pip"])
    if not caught:
        return f"pip-audit found no hole in {KNOWN_HOLE}, which has some: it could not ask the index"
    holes, skipped = _pip_audit(auditor, ["--path", str(site)])
    if holes:
        raise SupplyError(f"{len(holes)} packages have known holes: {', '.join(holes)}")
    skipped = [one for one in skipped if one != ours]
    return f"{len(skipped)} packages are not in the index: {', '.join(skipped)}" if skipped else ""


def npm_audited(viewer: Path) -> str:
    """Asks the index of npm for known holes in what builds the page of `view`. Returns why there is no answer, or "".

    Raises:
        SupplyError: a package has a known hole.
    """
    asked = ["npm", "audit", "--json"]
    try:
        done = subprocess.run(asked, cwd=viewer, capture_output=True, text=True, check=False, timeout=300)
        counts: Mapping[str, int] = json.loads(done.stdout)["metadata"]["vulnerabilities"]
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        return f"npm audit gave no answer: {type(error).__name__}"
    if counts["total"]:
        raise SupplyError(f"npm audit finds {counts['total']} holes in {viewer.name}")
    return ""


def _pip_audit(auditor: Path, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the packages with a known hole, and the packages that were skipped."""
    asked = [str(auditor), "--format", "json", "--progress-spinner", "off", *arguments]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=600)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return [], []
    holes = [f"{one['name']} {one['version']}" for one in found if one.get("vulns")]
    return holes, [one["name"] for one in found if "skip_reason" in one]
