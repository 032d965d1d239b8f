"""Changes the code in small ways, one at a time, and runs the tests that should notice.

    python tools/mutate.py                      every area, a sample of each
    python tools/mutate.py rules --sample 50    one area, 50 mutants
    python tools/mutate.py save --sample 0      every mutant of an area

A mutant is a change of one expression or statement: another comparison, a negated condition, `and` for `or`, another
number, a statement left out. Tests that fail catch it; a mutant that runs too long counts as caught. The survivors are
printed. Those that change no behaviour are listed in `tools/equivalent_mutants.toml`, each with the reason.

The tests run in forked processes of a copy of the tree, so that heavy libraries are imported once.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Area:
    """Source files, and the tests that should notice a change in them. `{name}` stands for the file's name."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


AREAS = {
    "rules": Area(("rules/**/*.py",), ("tests/rules/test_{name}.py", "tests/contracts/test_rules.py", "tests/rules")),
    "comparison": Area(("comparison/*.py",), ("tests/comparison/test_{name}.py", "tests/comparison")),
    "save": Area(
        ("model/files/save.py",),
        (
            "tests/model/test_{name}.py",
            "tests/model/test_save_atomic.py",
            "tests/model/test_external_data.py",
            "tests/model/test_outputs.py",
            "tests/model/test_sharing.py",
        ),
    ),
    "blame": Area(("simplifier/blame.py",), ("tests/simplifier/test_{name}.py",)),
    "baked": Area(("exporter/graph/baked.py",), ("tests/exporter/test_{name}.py",)),
}
SAMPLE = 60
"""Mutants of an area without `--sample`. A choice: some minutes an area."""
SLOWER = 5
"""Times as long as without a mutant that tests may run, and a minute. A choice: a busy machine is not that slow."""
LIMIT = 1200
"""Seconds for tests without a mutant. A choice: many times what the slowest area needs."""
PRELOADED = ("numpy", "onnx", "onnx_ir", "onnx_shape_inference", "pytest")
"""Libraries that every forked process has at once."""
CHANGED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mutant:
    """One change of a file: the source of the whole file with it, and the changed expression before and after.
    `function` is where it stands, "" outside of functions; `text` is the line of the source."""

    file: Path
    line: int
    function: str
    text: str
    before: str
    after: str
    source: str

    @property
    def key(self) -> tuple[str, ...]:
        """Names the mutant whatever the number of its line is."""
        return str(self.file), self.function, self.text, self.before, self.after


def mutants(file: Path, source: str) -> Iterator[Mutant]:
    """Every mutant of a file."""
    tree = ast.parse(source)
    _forget_texts(tree)
    lines, functions = source.splitlines(), _functions(tree)
    for index, node in enumerate(ast.walk(tree)):
        for change in range(_changes(node)):
            changed = copy.deepcopy(tree)
            place = next(one for number, one in enumerate(ast.walk(changed)) if number == index)
            before = ast.unparse(_line_of(place))
            _apply(changed, place, change)
            after = ast.unparse(_line_of(place))
            if before != after:
                line = getattr(node, "lineno", 0)
                text = lines[line - 1].strip() if line else ""
                made = ast.unparse(ast.fix_missing_locations(changed))
                yield Mutant(file, line, functions.get(node, ""), text, before, after, made)


def _functions(tree: ast.AST) -> dict[ast.AST, str]:
    """The name of the innermost function around each node that stands in one."""
    found: dict[ast.AST, str] = {}
    for node in ast.walk(tree):  # outer functions come first
        if isinstance(node, ast.FunctionDef):
            found |= dict.fromkeys(ast.walk(node), node.name)
    return found


def _forget_texts(tree: ast.AST) -> None:
    """Marks annotations and docstrings, which are not changed."""
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            for inner in ast.walk(getattr(node, name, None) or ast.Pass()):
                inner.fixed = True  # type: ignore[attr-defined]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.fixed = True  # type: ignore[attr-defined]


def _changes(node: ast.AST) -> int:
    """The number of ways in which a node can be changed."""
    if getattr(node, "fixed", False):
        return 0
    match node:
        case ast.Compare(ops=[op]):
            return int(type(op) in CHANGED)
        case ast.BinOp(op=op) | ast.BoolOp(op=op):
            return int(type(op) in CHANGED)
        case ast.If() | ast.IfExp() | ast.While():
            return 1
        case ast.UnaryOp(op=ast.Not()):
            return 1
        case ast.Constant(value=bool() | int()):
            return 1
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            return 1
        case ast.Return(value=value):
            # `return False` becomes `return True`; None in its place says the same to whoever asks whether it is true
            nothing = isinstance(value, ast.Constant) and (value.value is None or value.value is False)
            return int(value is not None and not nothing)
    return 0


def _apply(tree: ast.AST, node: ast.AST, _: int) -> None:
    match node:
        case ast.Compare(ops=[op]):
            node.ops = [CHANGED[type(op)]()]  # type: ignore[list-item]
        case ast.BinOp(op=op) | ast.BoolOp(op=op):
            node.op = CHANGED[type(op)]()  # type: ignore[assignment]
        case ast.If() | ast.IfExp() | ast.While():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.UnaryOp():
            _swap(tree, node, node.operand)
        case ast.Constant(value=bool() as value):
            node.value = not value
        case ast.Constant(value=int() as value):
            node.value = value + 1
        case ast.Return():
            node.value = ast.Constant(None)
        case ast.stmt():
            _swap(tree, node, ast.Pass())


def _swap(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list) and any(one is old for one in value):
                value[:] = [new if one is old else one for one in value]
    old.swapped = new  # type: ignore[attr-defined]


def _line_of(node: ast.AST) -> ast.AST:
    """What is shown of a change: the expression or the first line of the statement."""
    node = getattr(node, "swapped", node)
    if isinstance(node, ast.If | ast.While):
        return node.test
    return node


class Copy:
    """A copy of the tree in which mutants are tried."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("src", "tests", "examples", "docs", "tools"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "Makefile", "CHANGELOG.md"):
            shutil.copy(ROOT / name, folder / name)

    def run(self, tests: list[str], limit: float = LIMIT) -> str:
        """Runs tests in a forked process: `passed`, `failed` or `too long`."""
        pid = os.fork()
        if pid == 0:
            os.setsid()
            _child(self.folder, tests)
        end = time.monotonic() + limit
        while time.monotonic() < end:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return "passed" if status == 0 else "failed"
            time.sleep(0.02)
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return "too long"

    def seconds(self, tests: list[str]) -> float | None:
        """The time that tests take without a mutant; None if they fail."""
        start = time.monotonic()
        return time.monotonic() - start if self.run(tests) == "passed" else None

    def noticed(self, mutant: Mutant, stages: list[tuple[list[str], float]]) -> bool:
        """Runs the tests with the mutant in place of its file, each stage at most as many seconds as stand beside it;
        returns whether one noticed the mutant."""
        path = self.folder / mutant.file
        original = path.read_text(encoding="utf-8")
        try:
            _write(path, mutant.source)
            return any(self.run(tests, limit) != "passed" for tests, limit in stages)
        finally:
            _write(path, original)


def _write(path: Path, text: str) -> None:
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()
    path.write_text(text, encoding="utf-8")


def _child(folder: Path, tests: list[str]) -> None:
    os.chdir(folder)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    sys.dont_write_bytecode = True
    os.environ["PYTHONPATH"] = str(folder / "src")
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.path[:0] = [str(folder / "src"), str(folder)]
    import pytest

    try:
        status = int(pytest.main(["-x", "-q", "-m", "not gpu", *tests]))
    except BaseException:  # noqa: BLE001 — a mutant may raise anything
        status = 1
    os._exit(min(status, 1))


def tests_of(area: Area, file: Path) -> list[list[str]]:
    """The tests of a file, in the order in which they are run until one notices: those of its own name, then the
    area's."""
    own = [test.format(name=file.stem) for test in area.tests if "{name}" in test]
    general = [test for test in area.tests if "{name}" not in test]
    return [found for found in ([test for test in own if (ROOT / test).exists()], general) if found]


def equivalent() -> set[tuple[str, ...]]:
    """The mutants that change no behaviour."""
    file = Path(__file__).parent / "equivalent_mutants.toml"
    listed = tomllib.loads(file.read_text(encoding="utf-8")).get("mutant", []) if file.exists() else []
    return {tuple(one[part] for part in ("file", "function", "line", "before", "after")) for one in listed}


def measured(name: str, area: Area, tree: Copy, sample: int, seed: int) -> bool:
    """Tries a sample of an area's mutants and prints the survivors; returns whether 90% are caught."""
    files = sorted(path for pattern in area.sources for path in (ROOT / "src/onnxsmith").glob(pattern))
    known = equivalent()
    found: list[Mutant] = []
    for path in files:
        file = path.relative_to(ROOT)
        found += [one for one in mutants(file, path.read_text(encoding="utf-8")) if one.key not in known]
    chosen = random.Random(seed).sample(found, min(sample or len(found), len(found)))
    sound: dict[tuple[str, ...], float | None] = {}
    came = Counter[str]()
    for mutant in chosen:
        stages = tests_of(area, mutant.file)
        for tests in stages:
            if tuple(tests) not in sound:
                sound[tuple(tests)] = tree.seconds(tests)
        took = [sound[tuple(tests)] for tests in stages]
        if None in took:
            came["not tried: the tests fail without a mutant"] += 1
            continue
        limits = [SLOWER * (one or 0.0) + 60 for one in took]
        noticed = tree.noticed(mutant, list(zip(stages, limits, strict=True)))
        came["caught" if noticed else "survived"] += 1
        if not noticed:
            print(f"  survived: {mutant.file}:{mutant.line}: {mutant.before} → {mutant.after}", flush=True)
            print(f"            {mutant.function}: {mutant.text}", flush=True)
    tried = came["caught"] + came["survived"]
    share = came["caught"] / tried if tried else 0.0
    rest = "".join(f", {count} {what}" for what, count in came.items() if what.startswith("not"))
    print(f"{name}: {came['caught']} of {tried} caught ({share:.0%}), of {len(found)} mutants{rest}", flush=True)
    return share >= 0.9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"{', '.join(AREAS)}; all if left out")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="mutants of each area; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for library in PRELOADED:
        importlib.import_module(library)
    with tempfile.TemporaryDirectory() as folder:
        tree = Copy(Path(folder))
        good = [measured(one, AREAS[one], tree, given.sample, given.seed) for one in given.areas or AREAS]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
