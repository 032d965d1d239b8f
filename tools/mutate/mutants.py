"""Changes code in small ways: another comparison, a negated condition, another number, a statement left out."""

from __future__ import annotations

import ast
import copy
import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "onnxsmith"
AREAS = {
    "rules": "optimizer/rules/**/*.py",
    "verification": "verification/*.py",
    "files": "graph/files/*.py",
    "exporter": "exporter/**/*.py",
    "editor": "editor/**/*.py",
    "precision": "precision/**/*.py",
}
"""The files of each area: where a fault makes a wrong model, or hides one."""
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
    `place` is the number of the changed node in the file; `function` is where it stands, "" outside of functions;
    `text` is the line of the source."""

    file: str
    place: int
    line: int
    function: str
    text: str
    before: str
    after: str
    source: str

    @property
    def key(self) -> tuple[str, ...]:
        """Names the mutant whatever the number of its line is."""
        return self.file, self.function, self.text, self.before, self.after


def parsed(source: str) -> ast.Module:
    """Returns the tree of a file in which annotations and docstrings are marked: they are not changed."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            for inner in ast.walk(getattr(node, name, None) or ast.Pass()):
                inner.fixed = True  # type: ignore[attr-defined]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.fixed = True  # type: ignore[attr-defined]
    return tree


def places(source: str) -> dict[int, str]:
    """Returns the numbers of the nodes of a file that can be changed, each with the line on which it stands."""
    lines = ["", *source.splitlines()]
    nodes = enumerate(ast.walk(parsed(source)))
    return {number: lines[getattr(node, "lineno", 0)].strip() for number, node in nodes if _can_change(node)}


def mutant(file: str, source: str, place: int) -> Mutant | None:
    """Returns the change of one node; None if it changes nothing."""
    tree = parsed(source)
    changed = copy.deepcopy(tree)
    node, other = (list(ast.walk(one))[place] for one in (tree, changed))
    before = ast.unparse(_shown(other))
    _apply(changed, other)
    after = ast.unparse(_shown(other))
    if before == after:
        return None
    line = getattr(node, "lineno", 0)
    text = source.splitlines()[line - 1].strip() if line else ""
    function = ""
    for outer in ast.walk(tree):  # outer functions come first
        if isinstance(outer, ast.FunctionDef) and any(inner is node for inner in ast.walk(outer)):
            function = outer.name
    return Mutant(file, place, line, function, text, before, after, ast.unparse(ast.fix_missing_locations(changed)))


def mutants(file: str, source: str) -> Iterator[Mutant]:
    """Every mutant of a file."""
    found = (mutant(file, source, place) for place in places(source))
    return (one for one in found if one is not None)


def sampled(counts: Mapping[str, int], seed: int) -> list[Mutant]:
    """Returns so many mutants of each area, without those that change no behaviour."""
    known, found = equivalent(), []
    for area, count in counts.items():
        texts = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.glob(AREAS[area]))}
        every = [(path, place) for path, text in texts.items() for place in places(text)]
        random.Random(f"{seed}/{area}").shuffle(every)
        tried = (mutant(path.relative_to(ROOT).as_posix(), texts[path], place) for path, place in every)
        good = (one for one in tried if one is not None and one.key not in known)
        found += [one for one, _ in zip(good, range(count), strict=False)]
    return found


def equivalent() -> set[tuple[str, ...]]:
    """Returns the mutants that change no behaviour, by their keys."""
    listed = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text(encoding="utf-8"))["mutant"]
    return {tuple(one[part] for part in ("file", "function", "line", "before", "after")) for one in listed}


def marked(source: str, numbers: Mapping[int, Sequence[int]]) -> str:
    """Returns a file that tells when it comes to a node that a mutant changes: `numbers` are the mutants' by place.

    Each function tells its file, too: a constant outside of functions is computed before any test begins.
    """
    tree = parsed(source)
    nodes = list(ast.walk(tree))
    parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
    wanted: dict[ast.AST, list[int]] = {}
    for place, its in numbers.items():
        node: ast.AST = nodes[place]
        above: ast.AST | None = node
        while above is not None and not isinstance(above, ast.pattern):
            above = parents.get(above)
        while above is not None and not isinstance(above, ast.stmt):
            above = parents[above]  # a pattern holds no call: its statement tells
        wanted.setdefault(above or node, []).extend(its)
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            first = node.body[0]
            has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            node.body.insert(int(has_docstring), ast.Expr(_tell(-1)))
    tree = _Marking(wanted).visit(tree)
    after = [place for place, one in enumerate(tree.body) if isinstance(one, ast.ImportFrom) and one.level == 0]
    future = [place for place in after if tree.body[place].module == "__future__"]
    tree.body.insert(future[0] + 1 if future else 1, ast.ImportFrom("onnxsmith_reached", [ast.alias("tell")], 0))
    return ast.unparse(ast.fix_missing_locations(tree))


class _Marking(ast.NodeTransformer):
    def __init__(self, wanted: Mapping[ast.AST, list[int]]) -> None:
        self.wanted = wanted

    def visit(self, node: ast.AST) -> object:
        numbers = self.wanted.get(node)
        node = self.generic_visit(node)
        if numbers is None:
            return node
        if isinstance(node, ast.expr):
            return ast.BoolOp(ast.Or(), [_tell(*numbers), node])  # `tell` returns None
        return [ast.Expr(_tell(*numbers)), node]


def _tell(*numbers: int) -> ast.Call:
    return ast.Call(ast.Name("tell", ast.Load()), [ast.Name("__file__", ast.Load()), *map(ast.Constant, numbers)], [])


def _can_change(node: ast.AST) -> bool:
    if getattr(node, "fixed", False):
        return False
    match node:
        case ast.Compare(ops=[op]):
            return type(op) in CHANGED
        case ast.BinOp(op=op) | ast.BoolOp(op=op):
            return type(op) in CHANGED
        case ast.If() | ast.IfExp() | ast.While() | ast.UnaryOp(op=ast.Not()) | ast.Constant(value=bool() | int()):
            return True
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.Return(value=value):
            # `return False` becomes `return True`; None in its place says the same to whoever asks whether it is true
            nothing = isinstance(value, ast.Constant) and (value.value is None or value.value is False)
            return value is not None and not nothing
    return False


def _apply(tree: ast.AST, node: ast.AST) -> None:
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


def _shown(node: ast.AST) -> ast.AST:
    """What is shown of a change: the expression or the first line of the statement."""
    node = getattr(node, "swapped", node)
    if isinstance(node, ast.If | ast.While):
        return node.test
    return node
