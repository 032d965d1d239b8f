"""Reads the source of forward with the linter's checks, before a capture."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from onnxsmith.base import rooms
from onnxsmith.base.report.parts.capture import Finding
from onnxsmith.exporter.factory import is_installed, place
from onnxsmith.exporter.lint._function_reading import Call, IsUsers, Reader, nodes
from onnxsmith.exporter.lint._patch import Patch, patches
from onnxsmith.exporter.lint.base import Check, Code, New, Remark


@dataclass(frozen=True)
class Suspicion:
    """A finding of the linter that counts only if the trace confirms it. `freezes`, `anywhere`, `same` and `axes` are
    as in `lint/base.py`. `span` is the first and the last line of its statement. `code` is its function, and `swaps`
    make the new code of `statements` in it."""

    finding: Finding
    freezes: bool
    anywhere: bool
    span: tuple[int, int]
    same: bool = True
    code: Code | None = None
    swaps: Mapping[ast.AST, New] = field(default_factory=dict)
    axes: Sequence[tuple[str, int]] = ()
    statements: Sequence[ast.stmt] = ()

    @property
    def literals(self) -> tuple[ast.AST, ...]:
        """The numbers that the new code replaces by sizes, in the order of the source. Empty if the finding is about
        something else."""
        nodes = [node for node in self.swaps if isinstance(node, ast.Constant)] if self.anywhere else []
        return tuple(sorted(nodes, key=lambda node: (node.lineno, node.col_offset)))

    def without(self, nodes: Collection[ast.AST]) -> Suspicion:
        """Returns the suspicion with new code that leaves these nodes as they are."""
        swaps = {node: new for node, new in self.swaps.items() if node not in nodes}
        patch = Patch(list(self.statements), swaps)
        return replace(self, finding=replace(self.finding, code=patch.text), swaps=swaps)


@cache
def checks() -> Mapping[str, Check]:
    """Returns the linter's checks, by id."""
    return rooms.members("onnxsmith.exporter.lint", Check)


def read(
    module: object,
    calls: Mapping[int, Call],
    sizes: Mapping[str, Mapping[int, int]],
    is_users: IsUsers = lambda file: not is_installed(file),
) -> list[Suspicion]:
    """Returns the findings of all checks in each function that forward reaches, by file and line, without
    repetitions."""
    found: dict[tuple[str, str], Suspicion] = {}
    for code in Reader(module, calls, sizes, is_users).read():  # type: ignore[arg-type]
        remarks = list(_look(code))
        for suspicion in _suspicions(remarks, code):
            found.setdefault((suspicion.finding.problem.id, suspicion.finding.problem.where), suspicion)
    return sorted(found.values(), key=lambda one: place(one.finding.problem.where))


def patched(module: object, calls: Mapping[int, Call], is_users: IsUsers) -> Iterator[tuple[Code, Remark, Patch]]:
    """Yields the remarks that have a patch, in every function that forward reaches."""
    for code in Reader(module, calls, {}, is_users).read():  # type: ignore[arg-type]
        remarks = list(_look(code))
        found = patches(remarks, code)
        yield from ((code, remark, found[id(remark)]) for remark in remarks if id(remark) in found)


def _look(code: Code) -> Iterator[Remark]:
    for node in nodes(code):
        for check in checks().values():
            if isinstance(node, check.nodes):
                yield from check.look(node, code)
    for node in ast.walk(code.flow.function):
        if isinstance(node, ast.comprehension) and node.iter in code.flow.values:
            for check in checks().values():
                if ast.comprehension in check.nodes:
                    yield from check.look(node, code)


def _suspicions(remarks: Sequence[Remark], code: Code) -> Iterable[Suspicion]:
    patched = patches(remarks, code)
    for remark in remarks:
        line = getattr(remark.node, "lineno", code.flow.function.lineno)
        where = f"{code.file}:{line}"
        finding = Finding(
            replace(remark.problem, where=where),
            remark.weight,
            remark.rung,
            source=linecache.getline(code.file, line).strip(),
        )
        patch = patched.get(id(remark))
        if patch is not None:
            finding = replace(finding, code=patch.text, first=patch.first, last=patch.last)
        statement = code.statement(remark.node)
        span = (statement.lineno, statement.end_lineno or statement.lineno)
        swaps = patch.swaps if patch is not None else {}
        statements = patch.statements if patch is not None else ()
        yield Suspicion(
            finding, remark.freezes, remark.anywhere, span, remark.same, code, swaps, remark.axes, statements
        )
