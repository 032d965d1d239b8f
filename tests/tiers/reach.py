"""Lists the test files that a change reaches, the nearest first.

    python -m tests.tiers.reach v0.3.0        what changed since that commit, the working tree included

A change of a module reaches every module that imports it, directly or through others (grimp's graph, which
import-linter uses for the floors), and every test file that imports one of those. A room that finds its members by
walking a folder, and a process that is started with a module's name, name it in a text: a text counts as an import.
A file of the package that is no module, as a page or a template, reaches what the modules reach that name its folder.
A file outside of the package, as a document or a tool, reaches the test files that name it or its folder.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import onnxsmith

ROOT = Path(__file__).parents[2]
_MODULE = re.compile(r"onnxsmith(\.\w+)+")
_STARTED = re.compile(r"-m\W+onnxsmith\b")
_MEMBER = re.compile(r"[a-z0-9-]+/[a-z0-9-]+")
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def changed(base: str, root: Path = ROOT) -> list[str]:
    """Returns the paths that differ from a commit, new files included."""
    return sorted(
        {
            *_git(root, "diff", "--name-only", "-z", base),
            *_git(root, "ls-files", "-z", "--others", "--exclude-standard"),
        }
    )


def _git(root: Path, *arguments: str) -> list[str]:
    found = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True, text=True)
    return [name for name in found.stdout.split("\0") if name]


def reached(paths: Iterable[str], root: Path = ROOT) -> dict[str, int]:
    """Returns the test files that a change of these paths reaches, with the number of imports between."""
    importers = _importers(root)
    distance = {node: 0 for path in paths for node in _nodes(path, root)}
    queue = list(distance)
    for node in queue:  # grows while it is read: the nearest come first
        for importer in importers[node]:
            if importer not in distance:
                distance[importer] = distance[node] + 1
                queue.append(importer)
    return {
        node: far for node, far in distance.items() if Path(node).name.startswith("test_") and (root / node).exists()
    }


def _nodes(path: str, root: Path) -> list[str]:
    """The nodes of the graph that a changed path stands for: a module by its dotted name, a test file by its path."""
    parts = path.split("/")
    if parts[0] == "src" and path.endswith(".py"):
        return [_dotted(parts[1:])]
    if parts[0] == "src":
        return _readers(Path(path), root)
    if parts[0] == "tests" and path.endswith(".py"):
        return [path, *_below_conftest(path, root)]
    return _naming(parts, root)


def _below_conftest(path: str, root: Path) -> list[str]:
    """The test files that may use the fixtures of a `conftest.py`, if that is the file or imports it. What it imports
    of the package does not count: every test would be reached by everything."""
    module, name = path.removesuffix(".py").replace("/", "."), Path(path).stem
    folder = module.rpartition(".")[0]
    imports = re.compile(rf"from {re.escape(module)} import|from {re.escape(folder)} import .*\b{name}\b")
    found = []
    for other, text in _tests(root).items():
        if other.endswith("/conftest.py") and (other == path or imports.search(text)):
            found += [file for file in _tests(root) if file.startswith(other.removesuffix("conftest.py"))]
    return found


def _naming(parts: list[str], root: Path) -> list[str]:
    """The test files that name a file outside of the package: by its own name, or by its top folder in quotes."""
    folder = root.joinpath(*parts).parent
    if parts[0] == "tests":  # data beside test files
        while not (beside := sorted(folder.rglob("test_*.py"))):
            folder = folder.parent
        return [_path(file, root) for file in beside]
    folders = [f'"{parts[0]}"', f'"{parts[0]}/'] if len(parts) > 1 else []
    return [
        path for path, text in _tests(root).items() if parts[-1] in text or any(folder in text for folder in folders)
    ]


def _readers(path: Path, root: Path) -> list[str]:
    """The modules that name the folder of a file which is no module, as `pages`; its package if none does."""
    folder = path.parent
    while not (root / folder.parent / "__init__.py").exists() and len(folder.parts) > 3:
        folder = folder.parent
    source = root / "src"
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(source.rglob("*.py"))}
    named = [file for file, text in texts.items() if f'"{folder.name}"' in text or f'"{folder.name}/' in text]
    return [_dotted(file.relative_to(source).parts) for file in named] or [_dotted(folder.parts[1:])]


@cache
def _tests(root: Path) -> dict[str, str]:
    return {_path(file, root): file.read_text(encoding="utf-8") for file in sorted((root / "tests").rglob("*.py"))}


@cache
def _importers(root: Path) -> Mapping[str, set[str]]:
    """Which modules and test files import each module or file of the tests."""
    import grimp

    graph = grimp.build_graph("onnxsmith", exclude_type_checking_imports=True, cache_dir=None)
    found: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules:
        found[module] |= graph.find_modules_that_directly_import(module)
    source = Path(onnxsmith.__file__).parent
    files = sorted(source.rglob("*.py"))
    trees = {
        _dotted(["onnxsmith", *file.relative_to(source).parts]): ast.parse(file.read_text("utf-8")) for file in files
    }
    members = _members(trees)
    for module, tree in trees.items():
        for other in _in_texts(tree, graph.modules, members):
            if other != module:
                found[other].add(module)
    for path, text in _tests(root).items():
        for other in _imported(text, graph.modules, members, root):
            found[other].add(path)
        parts = path.split("/")
        for module in graph.modules:  # a room's tests stand in the folder of its name
            room = module.split(".")[1:2]
            if room == parts[1:2] and f"test_{module.rpartition('.')[2]}.py" == parts[-1]:
                found[module].add(path)
    return found


def _members(trees: Mapping[str, ast.Module]) -> Mapping[str, set[str]]:
    """The modules by the ids that members in them may have: the folder, and the name of the file or of a class."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, tree in trees.items():
        folder, _, name = module.rpartition(".")
        classes = [_WORD.sub("-", node.name).lower() for node in tree.body if isinstance(node, ast.ClassDef)]
        for own in (name.replace("_", "-"), *classes):
            found[f"{folder.rpartition('.')[2].replace('_', '-')}/{own}"].add(module)
    return found


def _in_texts(tree: ast.AST, modules: Iterable[str], members: Mapping[str, set[str]]) -> set[str]:
    """The modules that the texts of a file name, by their path or as a member of a room (`fuse/conv-batchnorm`). A
    package stands for all modules in it."""
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    named = {text for text in texts if _MODULE.fullmatch(text)}
    found = {module for text in texts if _MEMBER.fullmatch(text) for module in members.get(text, ())}
    return found | {
        module for module in modules if any(module == text or module.startswith(f"{text}.") for text in named)
    }


def _imported(text: str, modules: Iterable[str], members: Mapping[str, set[str]], root: Path) -> set[str]:
    """The modules and the files of the tests that a test file imports or names; of the face, the names that it uses."""
    tree, known = ast.parse(text), set(modules)
    found = _in_texts(tree, known, members)
    if _STARTED.search(text):
        found.add("onnxsmith.__main__")
    home: dict[str, str] = onnxsmith._HOME
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "onnxsmith":
            names = [f"onnxsmith.{home[node.attr]}"] if node.attr in home else []
        for name in names:
            file = root / f"{name.replace('.', '/')}.py"
            if name in known and name != "onnxsmith":
                found.add(name)
            elif name.startswith("tests.") and file.exists():
                found.add(_path(file, root))
    return found


def _dotted(parts: Iterable[str]) -> str:
    return ".".join(parts).removesuffix(".py").removesuffix(".__init__")


def _path(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix()


def dealt(distances: Mapping[str, int], piles: int) -> list[str]:
    """Returns the files in as many piles, one behind the other, each with its nearest first: each of several processes
    begins with a pile."""
    order = sorted(distances, key=lambda path: (distances[path], path))
    return [path for pile in range(piles) for path in order[pile::piles]]


def main() -> None:
    base, piles = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    paths = changed(base)
    found = reached(paths)
    sys.stderr.write(f"{len(paths)} files changed since {base} and reach {len(found)} test files\n")
    sys.stdout.write("".join(f"{path}\n" for path in dealt(found, piles)))


if __name__ == "__main__":
    main()
