"""Builds the release of this version, tries it on each supported Python, and writes its notes. Uploads nothing.

    python -m tools.release [--pythons 3.11 3.12]

Each step prints what it found; the first that fails ends the program with status 1. Without `--pythons` the versions
are those that `pyproject.toml` names in its classifiers. The files lie in `dist` afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.parser import Parser
from pathlib import Path, PurePosixPath

from tools import supply

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
PACKAGE = "onnxsmith"
SMALL = '<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) { a = Neg(x) b = Neg(a) y = Relu(b) }'
WHERE = """
import sys
from importlib.util import find_spec
print(sys.version.split()[0], find_spec("torch"), find_spec("onnxsmith").origin)
"""
GENERATED = {"PKG-INFO", ".gitignore"}
"""What the build puts into a source distribution beside the files of the repository."""


class ReleaseError(Exception):
    """A step found what must not be released."""


def main() -> int:
    """Takes the steps one after the other."""
    parser = argparse.ArgumentParser(description="build and try a release; uploads nothing")
    parser.add_argument("--pythons", nargs="+", metavar="3.N", help="the versions of Python to try it on")
    named = parser.parse_args().pythons
    try:
        number, wanted = version(), named or claimed_pythons(project())
        with step(f"{PACKAGE} {number}: the tree is ready"):
            notes = ready(number)
        with step("build the source distribution, and the wheel from it"):
            sdist, wheel = build(number)
        with step("twine check --strict"):
            run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", sdist, wheel)
        with step("the files that the distributions hold"):
            contents(sdist, wheel, number)
        with step("the wheel that the tree gives is the wheel that the source distribution gives, byte for byte"):
            same_wheel(wheel)
        with step("what is installed with it, and known holes in that"):
            unasked = supplied(wheel, number)
        missing = [one for one in wanted if not tried(one, wheel, number)]
        if len(missing) == len(wanted):
            raise ReleaseError(f"none of the versions of Python was found here: {', '.join(wanted)}")
        with step("release notes"):
            notes += f"\n{materials(number, wheel, sdist)}"
            (DIST / "notes.md").write_text(notes, encoding="utf-8")
            print(f"dist/notes.md: {len(notes.splitlines())} lines")
    except (ReleaseError, supply.SupplyError) as error:
        print(f"FAILED: {error}")
        return 1
    for one in unasked:
        print(f"\nNOT AUDITED: {one}")
    if missing:
        print(f"\nNOT TRIED, because not found here: Python {', '.join(missing)}")
    print("\nNothing was tagged and nothing uploaded. These two commands do it:")
    print(*publishing(number, sdist, wheel), sep="\n")
    return 0


@contextmanager
def step(title: str) -> Iterator[None]:
    """Says what begins, and how long it took."""
    print(f"\n== {title}", flush=True)
    start = time.monotonic()
    yield
    print(f"   {time.monotonic() - start:.0f} s", flush=True)


def publishing(number: str, sdist: Path, wheel: Path) -> list[str]:
    """The two commands that make a release of what was built."""
    files = " ".join(str(path.relative_to(ROOT)) for path in (sdist, wheel))
    return [
        f"  git tag -a v{number} -m '{PACKAGE} {number}' && git push origin v{number}",
        f"  .venv-release/bin/python -m twine upload {files}",
    ]


# The tree


def project() -> Mapping[str, object]:
    """The table `project` of pyproject.toml."""
    table: Mapping[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def claimed_pythons(table: Mapping[str, object]) -> list[str]:
    """The versions that the classifiers name. The first of them has to be the least that may be installed on."""
    classifiers = table["classifiers"]
    assert isinstance(classifiers, list)
    found = [one.rpartition(" ")[2] for one in classifiers if re.fullmatch(r"Programming .* :: 3\.\d+", one)]
    found.sort(key=lambda one: int(one.partition(".")[2]))
    if not found or table["requires-python"] != f">={found[0]}":
        raise ReleaseError(f"requires-python is {table['requires-python']}, the classifiers begin at {found[:1]}")
    return found


def version() -> str:
    """The number in `_version.py`."""
    text = (ROOT / "src" / PACKAGE / "_version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    if found is None:
        raise ReleaseError("_version.py holds no version")
    return found[1]


def ready(number: str) -> str:
    """The release notes, of a tree in which everything is committed and no fragment is left."""
    changed = output("git", "status", "--porcelain").splitlines()
    if changed:
        raise ReleaseError(f"{len(changed)} files differ from the commit, the first is {changed[0][3:]}")
    left = sorted(path.name for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md")
    if left:
        raise ReleaseError(
            f"changelog.d has {len(left)} fragments that CHANGELOG.md does not have: {', '.join(left[:5])}"
        )
    if output("git", "tag", "--list", f"v{number}"):
        raise ReleaseError(f"the tag v{number} is there already: give _version.py the next number")
    notes = notes_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), number)
    print(f"commit {output('git', 'rev-parse', '--short', 'HEAD')}, nothing uncommitted, no fragment left")
    return notes


def notes_of(changelog: str, number: str) -> str:
    """The section of a version, one line a paragraph: where notes are shown, a line end is one."""
    parts = re.split(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)\n", changelog, flags=re.MULTILINE)
    found = [
        (date, text) for name, date, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True) if name == number
    ]
    if len(found) != 1 or not found[0][1].strip():
        raise ReleaseError(
            f"CHANGELOG.md has {len(found)} sections that begin '## {number} (YEAR-MONTH-DAY)', or an empty one"
        )
    ((date, text),) = found
    return f"# {PACKAGE} {number} ({date})\n\n{unwrapped(text.strip())}\n"


def unwrapped(text: str) -> str:
    """Markdown with each paragraph and each item of a list on one line."""
    lines: list[str] = []
    for line in text.splitlines():
        begins = not line.strip() or re.match(r"\s*([-*|#]|\d+\. |```)", line)
        if begins or not lines or not lines[-1] or lines[-1].startswith("#"):
            lines.append(line.rstrip())
        else:
            lines[-1] += " " + line.strip()
    return "\n".join(lines)


# The distributions


def build(number: str) -> tuple[Path, Path]:
    """The source distribution and the wheel that is made of it; `dist` holds nothing older then."""
    shutil.rmtree(DIST, ignore_errors=True)
    output(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(DIST), str(ROOT))
    sdist, wheel = DIST / f"{PACKAGE}-{number}.tar.gz", DIST / f"{PACKAGE}-{number}-py3-none-any.whl"
    built = sorted(path.name for path in DIST.iterdir())
    if built != sorted([sdist.name, wheel.name]):
        raise ReleaseError(f"built was {', '.join(built)}")
    for path in (sdist, wheel):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
    return sdist, wheel


def contents(sdist: Path, wheel: Path, number: str) -> None:
    """Holds what is in the distributions to what git has, and the wheel's description to this version."""
    known = output("git", "ls-files").splitlines()
    inside = [one.removeprefix("src/") for one in known if one.startswith(f"src/{PACKAGE}/")]
    held = files_of(wheel)
    of_the_package = [name for name in held if not name.startswith(f"{PACKAGE}-{number}.dist-info/")]
    complain(wheel, difference(inside, of_the_package))
    for name in (f"{PACKAGE}/py.typed", f"{PACKAGE}/_version.py", f"{PACKAGE}-{number}.dist-info/licenses/LICENSE"):
        if name not in held:
            raise ReleaseError(f"{wheel.name} has no {name}")
    described = Parser().parsestr(held[f"{PACKAGE}-{number}.dist-info/METADATA"].decode())
    if described["Version"] != number:
        raise ReleaseError(f"the wheel says version {described['Version']}")
    pages = [name for name in held if PurePosixPath(name).match(f"{PACKAGE}/viewer/pages/*/*.md")]
    print(f"{wheel.name}: {len(held)} files, all of src/{PACKAGE} and nothing else, {len(pages)} pages")
    sources = [name.partition("/")[2] for name in files_of(sdist)]
    strays = difference(known, [name for name in sources if name not in GENERATED])[1]
    complain(sdist, (difference([f"src/{name}" for name in inside], sources)[0], strays))
    print(f"{sdist.name}: {len(sources)} files, all of the package, none that git does not know")


def materials(number: str, *files: Path) -> str:
    """Returns the section of the notes that names the digests of the files and the bill of materials."""
    lines = [f"- `{path.name}`: sha256 `{supply.digest(path)}`" for path in files]
    bill = f"- `{PACKAGE}-{number}.cdx.json` lists what is installed with the extra `cpu` (CycloneDX)."
    return "\n".join(["### Files", "", *lines, bill, ""])


def same_wheel(wheel: Path) -> None:
    """Builds a wheel from the tree and holds it to the one that was made of the source distribution."""
    with tempfile.TemporaryDirectory() as folder:
        output(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, str(ROOT))
        again = Path(folder) / wheel.name
        direct, other = files_of(again), files_of(wheel)
        complain(wheel, difference(direct, other))
        changed = [name for name, content in direct.items() if content != other[name]]
        if changed:
            raise ReleaseError(f"{len(changed)} files differ, the first is {changed[0]}")
        print(f"{len(other)} files, sha256 {supply.same_bytes(wheel, again)} both times")


def supplied(wheel: Path, number: str) -> list[str]:
    """Installs the wheel in an empty environment, writes down what came with it (CycloneDX), and asks for known holes.
    Returns what could not be asked."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        run(sys.executable, "-m", "venv", "--without-pip", home / "environment", cwd=home)
        python = home / "environment" / "bin" / "python"
        run(sys.executable, "-m", "pip", "--python", python, "--quiet", "install", f"{wheel}[cpu]", cwd=home)
        target = DIST / f"{PACKAGE}-{number}.cdx.json"
        print(f"dist/{target.name}: {supply.bill_of_materials(python, target)} components")
        site = Path(output(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home))
        found = supply.audited(site, home, ours=PACKAGE), supply.npm_audited(ROOT / "viewer")
    print("no known hole" if not any(found) else "not everything could be asked")
    return [one for one in found if one]


def files_of(path: Path) -> dict[str, bytes]:
    """The files in a wheel or a source distribution, by name."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(path) as sdist:
        return {one.name: content.read() for one in sdist if (content := sdist.extractfile(one)) is not None}


def difference(wanted: Iterable[str], found: Iterable[str]) -> tuple[list[str], list[str]]:
    """What is missing, and what should not be there."""
    first, second = set(wanted), set(found)
    return sorted(first - second), sorted(second - first)


def complain(where: Path, differ: tuple[Sequence[str], Sequence[str]]) -> None:
    """Raises where a file is missing or too much."""
    for names, said in zip(differ, ("lacks", "should not have"), strict=True):
        if names:
            raise ReleaseError(f"{where.name} {said} {len(names)} files: {', '.join(names[:5])}")


# The wheel in use


def tried(python: str, wheel: Path, number: str) -> bool:
    """Installs the wheel in an empty environment of that Python and uses it; False where that Python is missing."""
    with step(f"Python {python}: install, and use outside of the tree"):
        interpreter = find_python(python)
        if interpreter is None:
            print(f"MISSING: no Python {python} was found here, so it was not tried")
            return False
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            run(interpreter, "-m", "venv", home / "environment", cwd=home)
            bin_ = home / "environment" / "bin"
            pip = (bin_ / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
            run(*pip, "install", f"{wheel}[cpu]", cwd=home)
            run(*pip, "check", cwd=home)
            smoke(bin_, home, number)
    return True


def smoke(bin_: Path, home: Path, number: str) -> None:
    """Uses what is installed: the version, `doctor`, a page, and a model that is written, simplified and compared."""
    work, command, python = home / "work", str(bin_ / PACKAGE), str(bin_ / "python")
    work.mkdir()
    env = {"PATH": os.defpath, "HOME": str(home)}
    first = output(python, "-c", WHERE, cwd=work, env=env)
    interpreter, torch, origin = first.split(" ", 2)
    if torch != "None" or not Path(origin).is_relative_to(home.resolve()):
        raise ReleaseError(f"not the wheel alone: torch is {torch}, {PACKAGE} is {origin}")
    for start in ([command], [python, "-m", PACKAGE]):
        said = output(*start, "--version", cwd=work, env=env)
        if said != f"{PACKAGE} {number}":
            raise ReleaseError(f"{' '.join(start)} --version says {said!r}")
    output(command, "doctor", cwd=work, env=env)
    output(command, "explain", "model/truncated", cwd=work, env=env)
    (work / "small.onnxtxt").write_text(SMALL + "\n", encoding="utf-8")
    report = json.loads(output(command, "simplify", "small.onnxtxt", "-o", "small.onnx", "--json", cwd=work, env=env))
    (verified,) = (part for part in report["parts"] if part["kind"] == "verification")
    if report["verdict"] != "done" or not verified["equal"] or " on onnxruntime " not in verified["candidate"]:
        raise ReleaseError(f"simplify: {report['headline']}, {verified['candidate']}")
    output(python, "-m", PACKAGE, "compare", "small.onnxtxt", "small.onnx", cwd=work, env=env)
    print(
        f"Python {interpreter}, without torch: --version, doctor, explain, simplify and compare; {report['headline']}"
    )


def find_python(python: str) -> str | None:
    """An interpreter of that version: this one, one on the path, or one of pyenv; None when there is none that runs."""
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{python}.*/bin/python"))
    for place in [sys.executable, shutil.which(f"python{python}"), *map(str, reversed(installed))]:
        if place is not None and _version_of(place) == python:
            return place
    return None


def _version_of(interpreter: str) -> str | None:
    asked = [interpreter, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False)
    return said.stdout.strip() if said.returncode == 0 else None


# Commands


def output(*command: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """What a command says on standard output; raises `ReleaseError` with the end of what it says when it fails."""
    done = subprocess.run(
        command, cwd=cwd, env=env or clean(), capture_output=True, text=True, check=False, timeout=1800
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-4000:]
        raise ReleaseError(f"{' '.join(command)} ended with {done.returncode}:\n{said}")
    return done.stdout.strip()


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Runs a command and shows what it says."""
    said = output(*map(str, command), cwd=cwd)
    if said:
        print(said)


def clean() -> dict[str, str]:
    """The environment without what points at a checkout."""
    return {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    }


if __name__ == "__main__":
    raise SystemExit(main())
